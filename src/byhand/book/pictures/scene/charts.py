"""Charts: curves, bars and points over two scales, declared as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.book.pictures.canvas import BLUE, GREY, Point
from byhand.book.pictures.scene.elements import Figure
from byhand.book.words.language import Said, Words


@dataclass(frozen=True)
class Polyline:
    """A line through points, broken at NaN, whose name the plot's key explains."""

    xs: Any
    ys: Any
    colour: str = BLUE
    words: Said = ""
    dashed: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars from 0 to each value, at 0, 1, 2, ..., with numbers beyond their ends or the given words."""

    values: Numbers
    colour: str = BLUE
    digits: int = 3
    words: Sequence[Said] | None = None
    part: float = 0.55  # of the room for each
    most: float = 50  # pixels


@dataclass(frozen=True)
class Mark:
    """A dot at a number with words beside it: right, left, above, below, or two of them such as `above right`."""

    x: float
    y: float
    words: Said = ""
    place: str = "right"
    colour: str = BLUE
    says: Said | None = None
    number: str = ""  # within the dot


@dataclass(frozen=True)
class Level:
    """A line from edge to edge, with words beside it or below its right end."""

    y: float
    words: Said = ""
    colour: str = GREY
    dashed: bool = False
    beside: bool = False


@dataclass(frozen=True)
class Dots:
    """Points of a cloud, spread over a few heights so that they can be told apart."""

    xs: Numbers
    colour: str = BLUE


@dataclass(frozen=True)
class Vector:
    """An arrow from the origin to a point."""

    tip: Point
    colour: str = BLUE
    thick: float = 2


@dataclass(frozen=True)
class Circle:
    """A dashed circle around the origin."""

    radius: float
    colour: str = BLUE


OnChart = Polyline | Bars | Mark | Level | Dots | Vector | Circle
Ticks = Sequence[float] | Mapping[int, Said] | Mapping[int, str] | Mapping[int, Words]
Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Chart(Figure):
    """Curves, bars and points over two scales; `high` pixels from the lowest to the highest number.

    said_at  places whose numbers the alternative text has of each curve
    """

    xs: tuple[float, float]
    ys: tuple[float, float]
    marks: Sequence[OnChart]
    high: float
    x_ticks: Ticks = ()
    y_ticks: Ticks = ()
    x_words: Said = ""
    wide: float = 0
    lines: bool = True  # faint ones across the plot at each tick of x
    zero: bool = True  # the line at height 0
    said_at: Numbers = ()
