"""Regions: offsets of parameters, optimizer state, averages and gradients in the one flat memory of a run.

    parameters, frozen ones last | state, by kind | averages | gradients of each share | workspace of the plans

Parameters that are updated alike are contiguous, and so is their state of each kind: an update is a few ranges for
each thread. Averages exist if the optimizer keeps them. Frozen parameters have no other region.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby

from byhand.engine import Tensor
from byhand.optim import Optimizer
from byhand.update_rules import UpdateRule

ALIGN = 16  # float32 in a cache line: every array begins on one
AVERAGE = "average"  # a kind, besides those of state


def padded(n: int) -> int:
    """Return n rounded up to whole cache lines."""
    return -(-n // ALIGN) * ALIGN


@dataclass(frozen=True)
class Alike:
    """A contiguous range of parameters that are updated alike, from offset `first` to before `last`.

    rules  by parameter; they differ only in shapes and packing
    state  start of their state, by kind
    """

    first: int
    last: int
    rules: Mapping[str, UpdateRule]
    state: dict[str, int] = field(default_factory=dict)

    @property
    def rule(self) -> UpdateRule:
        """The first parameter's rule."""
        return next(iter(self.rules.values()))


class Regions:
    """Offsets, in float32.

    Without `training` there are only the parameters and the workspace. The optimizer has each parameter's rule.

    shapes     of the parameters, by name
    place      each parameter's offset in a region of parameters or gradients
    size       of such a region without frozen parameters
    groups     parameters that are updated alike, in order; none without an optimizer
    averages   start of the averages; 0: none
    workspace  start of the plans' memory
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], shares: int, training: bool = True, optimizer: Optimizer | None = None
    ) -> None:
        self.shapes = {name: tuple(p.shape) for name, p in parameters.items()}
        self.shares = shares
        self.place: dict[str, int] = {}
        trained = {name: p for name, p in parameters.items() if not p.frozen}
        rules = {name: optimizer.rule(name, p) for name, p in trained.items()} if optimizer else {}
        ordered = sorted(rules, key=lambda name: _kind(rules[name])) or list(trained)  # stable
        end = self.size = 0 if training else ALIGN  # kernels take 0 for "no array": no bias may lie there
        for name in (*ordered, *(name for name, p in parameters.items() if p.frozen)):
            self.place[name] = end
            end += padded(math.prod(self.shapes[name]))
            self.size = end if name in trained else self.size
        self.groups = [
            self._alike({name: rules[name] for name in names})
            for _, names in groupby(ordered if rules else (), lambda name: _kind(rules[name]))
        ]
        for kind in dict.fromkeys(kind for group in self.groups for kind in group.rule.state):
            for group in self.groups:
                if kind in group.rule.state:
                    group.state[kind] = end
                    end += group.last - group.first
        self.averages = 0
        if optimizer and optimizer.settings.ema:
            self.averages, end = end, end + self.size
        self.gradients = end
        self.workspace = end + shares * self.size if training else end

    def _alike(self, rules: Mapping[str, UpdateRule]) -> Alike:
        *_, last = rules
        return Alike(self.place[next(iter(rules))], self.place[last] + padded(math.prod(self.shapes[last])), rules)

    def kept(self, name: str) -> dict[str, int]:
        """Return the offsets of a parameter's state and average, by kind."""
        if (place := self.place[name]) >= self.size:
            return {}
        group = next((group for group in self.groups if name in group.rules), None)
        found = {kind: start + place - group.first for kind, start in group.state.items()} if group else {}
        return found | ({AVERAGE: self.averages + place} if self.averages else {})


def _kind(rule: UpdateRule) -> tuple[bool, str, bool, float]:
    """Return the sort key of parameters; those that are updated alike share it."""
    of_all = rule.equation.inputs[0].shape == "(...)"  # updates of matrices come first
    return of_all, rule.equation.name, not rule.parameter.decays, 0.0 if rule.scale == 1 else rule.scale
