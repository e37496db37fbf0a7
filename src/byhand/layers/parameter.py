"""Parameters as declared by layers: shape, initialisation, decay."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from byhand.config import Group

STD = 0.02  # of initial tables and weights


@dataclass(frozen=True, slots=True)
class Parameter:
    """One learned array. Weights are [in, out].

    mean, std  of its initial normal distribution
    decays     whether weight decay acts on it with decay="matrices"
    axes       the meaning of each axis: "vocab", "positions", "width" (of the residual stream), "heads" (columns of
               all heads), "head" (of one), "hidden" (of the MLP) or "rank" (of an adapter); a mesh shards arrays
               along these
    packed     number of arrays of one shape that are concatenated along the last axis
    group      the optimizer's group, with its own learning rate and update rule
    trained    whether training changes it; a frozen one has no gradient, no optimizer state, and no part in the
               gradients' norm
    """

    shape: tuple[int, ...]
    mean: float = 0.0
    std: float = 0.0
    decays: bool = False
    axes: tuple[str, ...] = ()
    packed: int = 1
    group: Group = "vectors"
    trained: bool = True


Arrays = Mapping[str, Any]  # by parameter name
Tree = dict[str, Any]  # by name: a leaf for each parameter, a subtree for each inner layer
Axis = tuple[str, int]  # an axis's meaning and length


def weight(*axes: Axis, std: float = STD, packed: int = 1, group: Group = "matrices") -> Parameter:
    """Return a weight or a table: drawn from N(0, std^2), with decay."""
    return Parameter(_shape(axes, packed), std=std, decays=True, axes=_names(axes), packed=packed, group=group)


def zeros(*axes: Axis, packed: int = 1) -> Parameter:
    """Return a bias."""
    return Parameter(_shape(axes, packed), axes=_names(axes), packed=packed)


def ones(*axes: Axis) -> Parameter:
    """Return a gain."""
    return Parameter(_shape(axes, 1), mean=1.0, axes=_names(axes))


def _shape(axes: tuple[Axis, ...], packed: int) -> tuple[int, ...]:
    *outer, last = (length for _, length in axes)
    return (*outer, packed * last)


def _names(axes: tuple[Axis, ...]) -> tuple[str, ...]:
    return tuple(name for name, _ in axes)


def residual_std(n_layers: int) -> float:
    """Return the std of the 2 L projections that write to the residual stream.

    The variance of their sum then does not grow with depth. Source: Radford et al. 2019, section 2.3.
    """
    return STD / math.sqrt(2 * n_layers)


def given(p: Tree, name: str) -> list[Any]:
    """Return an optional parameter as a list of one or none."""
    return [p[name]] if name in p else []


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten a tree to its leaves by dotted name, in order: {"attn": {"w": x}} becomes {"attn.w": x}."""
    found: dict[str, Any] = {}
    for name, inner in tree.items():
        found |= flat(inner, f"{prefix}{name}.") if isinstance(inner, Mapping) else {prefix + name: inner}
    return found


def map_tree(tree: Mapping[str, Any], leaf: Callable[[str], Any], prefix: str = "") -> Tree:
    """Map `leaf` over the dotted names of a tree's leaves."""
    return {
        name: map_tree(inner, leaf, f"{prefix}{name}.") if isinstance(inner, Mapping) else leaf(prefix + name)
        for name, inner in tree.items()
    }
