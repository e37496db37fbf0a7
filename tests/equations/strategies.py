"""What the equations are tried on: small shapes with many size-1 axes, and arrays in every memory layout."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

lengths = st.integers(1, 4)
seeds = st.integers(0, 2**32 - 1)


class Case:
    """The inputs of one application of an equation, in float64, and its static settings."""

    def __init__(self, *inputs: np.ndarray, **static: Any) -> None:
        self.inputs = tuple(map(np.asarray, inputs))
        self.static = static

    def __repr__(self) -> str:
        return f"Case({', '.join(map(repr, self.inputs))}, **{self.static})"

    def cast(self, dtype: Any) -> Case:
        """Return the case with its floating-point inputs in another precision and the same memory layout."""
        return Case(*(x.astype(dtype, order="K") if x.dtype.kind == "f" else x for x in self.inputs), **self.static)


def row_major(x: np.ndarray) -> np.ndarray:
    return x


def column_major(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, order="F")


def strided(x: np.ndarray) -> np.ndarray:
    """The same numbers, but with another one between any two neighbours of the last axis."""
    wide = np.full((*x.shape, 2), 1, x.dtype)
    wide[..., 0] = x
    return wide[..., 0]


def backwards(x: np.ndarray) -> np.ndarray:
    """The same numbers, laid out from the last to the first."""
    return np.flip(np.flip(x).copy())


LAYOUTS = (row_major, column_major, strided, backwards)


def shapes(least: int = 0, most: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes with `least` to `most` axes."""
    return st.lists(lengths, min_size=least, max_size=most).map(tuple)


@st.composite
def arrays(draw: Any, *shape: int, gap: float = 0.0) -> np.ndarray:
    """Standard normal numbers in any layout, at least `gap` away from zero."""
    x = np.asarray(np.random.default_rng(draw(seeds)).standard_normal(shape))
    return draw(st.sampled_from(LAYOUTS))(np.asarray(x + np.copysign(gap, x)))


@st.composite
def distinct(draw: Any, *shape: int) -> np.ndarray:
    """Numbers that are pairwise different by about 0.1 or more in each row, in random order, in any layout."""
    rng = np.random.default_rng(draw(seeds))
    x = rng.permuted(np.broadcast_to(0.3 * np.arange(shape[-1]), shape), axis=-1) + 0.05 * rng.standard_normal(shape)
    return draw(st.sampled_from(LAYOUTS))(x)


@st.composite
def integers(draw: Any, *shape: int, below: int) -> np.ndarray:
    """Integers from 0 to below - 1 in any layout; with few to choose from, many repeat."""
    x = np.asarray(np.random.default_rng(draw(seeds)).integers(0, below, shape))
    return draw(st.sampled_from(LAYOUTS))(x)


@st.composite
def broadcasting_to(draw: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to `shape`: leading axes dropped, some of the others 1."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(draw(st.sampled_from((1, n))) for n in kept)
