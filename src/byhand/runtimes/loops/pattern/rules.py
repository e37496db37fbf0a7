"""Rules: which applications of equations become one group, by which kernels, and why it pays.

A rule stands in the file of the kernels that it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from byhand.engine import Node
from byhand.engine.graph.record import Graph
from byhand.runtimes.loops.program.builder import Builder

Stage = Literal["train", "fill", "decode"]


@dataclass(frozen=True)
class Group:
    """Applications that one rule handles together, in the graph's order."""

    rule: Rule
    nodes: tuple[Node, ...]


Emit = Callable[[Builder, Group], None]
Matched = tuple[Any, ...] | None


@dataclass(frozen=True)
class Rule:
    """How a group of applications becomes calls.

    covers    the equations, in order: a tuple holds alternatives, "" among them says that there may be none. The rule
              is tried where the last one was applied
    kernel    the kernel that computes the last one
    stages    the plans that it serves: training and losses, filling the KV cache, decoding
    match     the applications of the group whose last one is this, or None; not needed for an equation alone
    backward  the calls of the backward pass, for training
    reason    why it is faster; "" for the kernels of one equation alone
    part_of   the composite equation whose parts these are
    is_loss   it adds to the loss, so a plan of training may end in it
    """

    name: str
    covers: tuple[str | tuple[str, ...], ...]
    kernel: str
    stages: tuple[Stage, ...]
    forward: Emit
    backward: Emit | None = None
    match: Callable[[Any, Graph], Matched] | None = None
    reason: str = ""
    part_of: str = ""
    is_loss: bool = False

    @property
    def names(self) -> frozenset[str]:
        """All equations that it may cover."""
        return frozenset(name for one in self.covers for name in ([one] if isinstance(one, str) else one) if name)

    @property
    def ends(self) -> str:
        """The last equation."""
        last = self.covers[-1]
        assert isinstance(last, str), f"{self.name} must end in one equation"
        return last


registered: list[Rule] = []  # filled when the kernels' files are imported


def register(rule: Rule) -> None:
    """Add a rule; those of one stage have different names."""
    if any(rule.name == other.name and set(rule.stages) & set(other.stages) for other in registered):
        raise ValueError(f"two rules are called {rule.name}")
    registered.append(rule)
