"""Training: a step's loss and gradients as a program for each size of share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.engine.graph.record import record
from byhand.engine.node import Variable
from byhand.errors import ConfigError
from byhand.runtimes.loops.lower.fusion import emit_groups, groups_of, rules_of
from byhand.runtimes.loops.pattern.rules import Group, Rule
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.products import UNROUNDED, Products


@dataclass(frozen=True)
class Lowering:
    """Options of lowering.

    backward  with gradients, else the loss alone
    products  rounding and kernel of the linear layers' products
    rules     fusion rules; training's if not given
    tiles     register tiles, not BLAS, multiply float32
    """

    backward: bool
    products: Products = UNROUNDED
    rules: tuple[Rule, ...] | None = None
    tiles: bool = False


def split(batch: int, shares: int) -> list[int]:
    """Return the number of rows of each share: as equal as possible, none empty."""
    shares = min(shares, batch)
    return [batch // shares + (i < batch % shares) for i in range(shares)]


def programs(
    compute: Callable[..., Variable],
    inputs: Mapping[str, tuple[int, ...]],
    sizes: Sequence[int],
    parameters: Mapping[str, Variable],
    how: Lowering,
) -> list[Builder]:
    """Return each share's program, compute(**inputs) on its number of rows; shares of equal size have the same one.

    inputs  shapes, batch first
    """
    made: dict[int, Builder] = {}
    for size in dict.fromkeys(sizes):
        arrays: dict[str, Any] = {k: np.zeros((size, *shape[1:]), np.int64) for k, shape in inputs.items()}
        graph = record(compute, **arrays)
        made[size] = Builder(graph, parameters, how.products, how.tiles, trains=how.backward)
        emit_groups(made[size], _checked(groups_of(graph, how.rules or rules_of("train"))))
    return [made[size] for size in sizes]


def _checked(groups: list[Group]) -> list[Group]:
    if not groups[-1].rule.is_loss:
        losses = ", ".join(sorted({rule.ends for rule in rules_of("train") if rule.is_loss}))
        end = groups[-1].nodes[-1].equation.name
        raise ConfigError(
            f"a plan must end in a loss that has kernels ({losses}), not in {end}. Use the numpy runtime."
        )
    return groups
