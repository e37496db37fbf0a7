"""Rules: group applications of equations, choose their kernels, and say why that is faster.

A rule is in the file of the kernels it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from byhand.engine import Node
from byhand.engine.graph.record import Graph
from byhand.runtimes.loops.pattern.language import Applied, applications, names_in, parsed
from byhand.runtimes.loops.pattern.matching import matched
from byhand.runtimes.loops.program.builder import Builder

Stage = Literal["train", "fill", "decode"]


@dataclass(frozen=True)
class Group:
    """Applications that one rule lowers together, each after its inputs."""

    rule: Rule
    nodes: tuple[Node, ...]

    def of(self, name: str) -> tuple[Node, ...]:
        """Return the applications of an equation."""
        return tuple(node for node in self.nodes if node.equation.name == name)


Emit = Callable[[Builder, Group], None]


@dataclass(frozen=True)
class Rule:
    """Lowers a group of applications to calls.

    pattern   the applications, the last one outermost (see `language`); "" matches nothing
    kernel    the kernel that computes the last one
    stages    the plans that use it: training and losses, prefill, decoding
    where     a condition that a pattern cannot express
    backward  the calls of the backward pass, for training
    reason    why it is faster; "" for kernels of a single equation
    part_of   the composite equation that these are parts of
    is_loss   it adds to the loss, so a training plan may end in it
    """

    name: str
    pattern: str
    kernel: str
    stages: tuple[Stage, ...]
    forward: Emit
    backward: Emit | None = None
    where: Callable[[Group, Graph], bool] | None = None
    reason: str = ""
    part_of: str = ""
    is_loss: bool = False

    @cached_property
    def applied(self) -> Applied:
        """The pattern, parsed."""
        return parsed(self.pattern)

    @property
    def names(self) -> frozenset[str]:
        """All equations it may cover."""
        return frozenset(names_in(self.applied))

    @property
    def ends(self) -> str:
        """The last equation."""
        return self.applied.names[0]

    @property
    def size(self) -> int:
        """The maximum number of applications it covers."""
        return len(applications(self.applied))

    def match(self, node: Node, graph: Graph) -> Group | None:
        """Return the group that ends in this application, or None."""
        nodes = matched(self.applied, node, graph)
        group = Group(self, nodes) if nodes else None
        return group if group and (self.where is None or self.where(group, graph)) else None


registered: list[Rule] = []  # filled when the kernels' files are imported


def register(rule: Rule) -> None:
    """Add a rule; names are unique within a stage."""
    if any(rule.name == other.name and set(rule.stages) & set(other.stages) for other in registered):
        raise ValueError(f"two rules are called {rule.name}")
    registered.append(rule)
