"""Activations as curves, their slopes, and the difference between GELU's two forms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart
from byhand.book.pictures.scene.marks import Mark, OnChart, Polyline
from byhand.book.words.language import Words
from byhand.engine import Equation
from byhand.equations.gelu import gelu
from byhand.equations.gelu_exact import gelu_exact
from byhand.equations.relu import relu
from byhand.equations.silu import silu

LIMIT, POINTS = 4.0, 161  # from -4 to 4 in steps of 0.05
XS = np.round(np.linspace(-LIMIT, LIMIT, POINTS), 9)
AT = np.arange(-2.0, 3.0)  # places whose numbers are said


def values(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the activation of numbers."""
    return equation.forward(xs)[0]


def slopes(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the derivative at numbers, by the vjp of a cotangent of 1."""
    return equation.vjp(equation.forward(xs)[1], np.ones_like(xs))[0]


def between(xs: np.ndarray) -> np.ndarray:
    """Return the tanh form of GELU less the exact one, in units of 0.0001."""
    return 10_000 * (values(gelu, xs) - values(gelu_exact, xs))


def _plot(marks: Sequence[OnChart], high: float, ys: tuple[float, float], y_ticks: Sequence[float],
          said_at: np.ndarray = AT) -> Chart:  # fmt: skip
    return Chart((-LIMIT, LIMIT), ys, marks, high, range(-4, 5), y_ticks, "x", said_at=said_at)


def _mark(name: str, equation: Equation, x: float, place: str) -> Mark:
    y = float(values(equation, np.asarray([x]))[0])
    return Mark(x, y, f"{name}({decimal(x)}) = {decimal(round(y, 3))}", place)


@scene("GELU and ReLU as curves", "GELU 与 ReLU 的曲线")
def gelu_relu() -> Chart:
    """Both functions from -4 to 4, with GELU at -1 and 1."""
    marks = _mark("GELU", gelu, -1, "below"), _mark("GELU", gelu, 1, "below right")
    smooth = Words("GELU: bends smoothly", "GELU：光滑过渡")
    line = Polyline(XS, values(relu, XS), RUST, "ReLU = max(x, 0)")
    return _plot([line, Polyline(XS, values(gelu, XS), BLUE, smooth), *marks], 220, (-0.6, LIMIT), range(5))


@scene("Slopes of GELU and ReLU", "GELU 与 ReLU 的斜率")
def gelu_relu_slopes() -> Chart:
    """Both derivatives from -4 to 4; that of ReLU jumps at 0."""
    xs = np.insert(XS, POINTS // 2 + 1, [1e-9, 2e-9])
    jump = Polyline(xs, np.where(xs == 1e-9, np.nan, slopes(relu, xs)), RUST,
                    Words("slope of ReLU: 0 or 1", "ReLU 的斜率：0 或 1"))  # fmt: skip
    curve = Polyline(XS, slopes(gelu, XS), BLUE, Words("slope of GELU", "GELU 的斜率"))
    marks = [
        Mark(x, y := float(slopes(gelu, np.asarray([x]))[0]), f"x = {decimal(x)}: {decimal(round(y, 3))}", place)
        for x, place in ((0.0, "right"), (1.0, "above"), (-1.0, "below right"))
    ]
    return _plot([jump, curve, *marks], 190, (-0.25, 1.25), (0, 0.5, 1))


@scene("SiLU, GELU and ReLU as curves", "SiLU、GELU 与 ReLU 的曲线")
def silu_gelu_relu() -> Chart:
    """Three functions from -4 to 4, with the lowest point of SiLU."""
    drawn = (silu, BLUE, "SiLU"), (gelu_exact, GREEN, "GELU"), (relu, RUST, "ReLU")
    curves = [Polyline(XS, values(equation, XS), colour, name) for equation, colour, name in drawn]
    least = float(XS[np.argmin(values(silu, XS))])
    return _plot([*curves, _mark("SiLU", silu, least, "below")], 220, (-1.0, LIMIT), range(5))


@scene("The tanh form of GELU less the exact form", "GELU 的 tanh 形式减去精确形式")
def gelu_forms() -> Chart:
    """The tanh form less the exact one from -4 to 4, with its largest value."""
    ys = between(XS)
    far = int(np.argmax(np.where(XS > 0, np.abs(ys), 0)))
    curve = Polyline(XS, ys, words=Words("tanh form − exact form, × 10⁻⁴", "tanh 形式 − 精确形式，× 10⁻⁴"))
    mark = Mark(XS[far], ys[far], f"x = {decimal(float(XS[far]))}: {decimal(float(ys[far]) / 10_000, 2)}", "left")
    return _plot([curve, mark], 170, (-3.0, 7.0), (-2, 0, 2, 4, 6), np.arange(5.0))
