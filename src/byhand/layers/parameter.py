"""Parameters as layers declare them: shape, initial numbers, decay."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

STD = 0.02  # of initial tables and weights


@dataclass(frozen=True, slots=True)
class Parameter:
    """One array that is learned. Weights are [in, out].

    mean, std  of the normal distribution that its initial numbers are drawn from
    decays     whether weight decay acts on it, where not everything decays
    """

    shape: tuple[int, ...]
    mean: float = 0.0
    std: float = 0.0
    decays: bool = False


Tree = dict[str, Any]  # by name: what belongs to a parameter, or the tree of a layer inside


def weight(*shape: int, std: float = STD) -> Parameter:
    """Return a weight or a table: drawn from N(0, std^2), and it decays."""
    return Parameter(shape, std=std, decays=True)


def zeros(*shape: int) -> Parameter:
    """Return a bias."""
    return Parameter(shape)


def ones(*shape: int) -> Parameter:
    """Return a gain."""
    return Parameter(shape, mean=1.0)


def residual_std(n_layers: int) -> float:
    """Return the std of the 2 L projections whose results are added to the residual stream.

    Their sum then has a variance that does not grow with depth. Source: Radford et al. 2019, section 2.3.
    """
    return STD / math.sqrt(2 * n_layers)


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the tree's leaves by dotted name, in order: {"attn": {"w": x}} becomes {"attn.w": x}."""
    found: dict[str, Any] = {}
    for name, inner in tree.items():
        found |= flat(inner, f"{prefix}{name}.") if isinstance(inner, Mapping) else {prefix + name: inner}
    return found


def named(tree: Mapping[str, Any], leaf: Callable[[str], Any], prefix: str = "") -> Tree:
    """Return a tree of the same form that holds leaf(dotted name) for each leaf."""
    return {
        name: named(inner, leaf, f"{prefix}{name}.") if isinstance(inner, Mapping) else leaf(prefix + name)
        for name, inner in tree.items()
    }
