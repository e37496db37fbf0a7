"""Activations as curves, their slopes, and the difference between GELU's two forms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.canvas import BLUE, GREEN, RUST
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.charts import Chart, Mark, Polyline
from byhand.book.words.language import Said, Words
from byhand.engine import Equation
from byhand.equations.gelu import gelu
from byhand.equations.gelu_exact import gelu_exact
from byhand.equations.relu import relu
from byhand.equations.silu import silu

LIMIT, POINTS = 4.0, 161  # from -4 to 4 in steps of 0.05
XS = np.linspace(-LIMIT, LIMIT, POINTS)
AT = np.asarray([-2.0, -1.0, 0.0, 1.0, 2.0])  # places whose numbers are said


def values(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the activation of numbers."""
    return equation.forward(xs)[0]


def slopes(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the derivative at numbers, by the vjp of a cotangent of 1."""
    return equation.vjp(equation.forward(xs)[1], np.ones_like(xs))[0]


def between(xs: np.ndarray) -> np.ndarray:
    """Return the tanh form of GELU less the exact one, in units of 0.0001."""
    return 10_000 * (values(gelu, xs) - values(gelu_exact, xs))


def _plot(marks: Sequence[Polyline | Mark], high: float, ys: tuple[float, float], y_ticks: Sequence[float]) -> Chart:
    return Chart((-LIMIT, LIMIT), ys, marks, high, range(-4, 5), y_ticks, "x")


def _curve(equation: Equation, colour: str, words: Said) -> Polyline:
    return Polyline(XS, values(equation, XS), colour, words, values(equation, AT).tolist())


def _mark(name: str, equation: Equation, x: float, place: str) -> Mark:
    y = float(values(equation, np.asarray([x]))[0])
    return Mark(x, y, f"{name}({decimal(x)}) = {decimal(round(y, 3))}", place)


@scene(
    Words("GELU and ReLU", "GELU 与 ReLU"),
    Words("Curves of GELU and ReLU at x = −2, −1, 0, 1, 2. ", "GELU 与 ReLU 的曲线，在 x = −2、−1、0、1、2 处的值。"),
)
def gelu_relu() -> Chart:
    """Both functions from -4 to 4, with GELU at -1 and 1."""
    curves = (
        _curve(relu, RUST, Words("ReLU: max(x, 0)", "ReLU：max(x, 0)")),
        _curve(gelu, BLUE, Words("GELU: bends smoothly", "GELU：光滑过渡")),
    )
    marks = _mark("GELU", gelu, -1, "below"), _mark("GELU", gelu, 1, "below right")
    return _plot((*curves, *marks), 220, (-0.6, LIMIT), range(5))


@scene(
    Words("Slopes of GELU and ReLU", "GELU 与 ReLU 的斜率"),
    Words(
        "Derivatives of GELU and ReLU at x = −2, −1, 0, 1, 2. ", "GELU 与 ReLU 的导数在 x = −2、−1、0、1、2 处的值。"
    ),
)
def gelu_relu_slopes() -> Chart:
    """Both derivatives from -4 to 4; that of ReLU jumps at 0."""
    sides = np.asarray([-LIMIT, 0.0, 0.0, np.nextafter(0.0, 1.0), LIMIT])
    steps = np.where([0, 0, 1, 0, 0], np.nan, slopes(relu, sides))
    curves = (
        Polyline(
            sides, steps, RUST, Words("slope of ReLU: 0 or 1", "ReLU 的斜率：0 或 1"), slopes(relu, AT).tolist()
        ),
        Polyline(XS, slopes(gelu, XS), BLUE, Words("slope of GELU", "GELU 的斜率"), slopes(gelu, AT).tolist()),
    )
    places = {0.0: "right", 1.0: "above", -1.0: "below left"}
    found = {x: float(slopes(gelu, np.asarray([x]))[0]) for x in places}
    marks = (Mark(x, y, decimal(round(y, 3)), places[x], says=_slope(x, y)) for x, y in found.items())
    return _plot((*curves, *marks), 190, (-0.25, 1.25), (0, 0.5, 1))


def _slope(x: float, y: float) -> Words:
    said = f"{decimal(round(y, 3))}"
    return Words(f"GELU at {decimal(x)}: {said}", f"GELU 在 {decimal(x)} 处：{said}")


@scene(
    Words("SiLU, GELU and ReLU", "SiLU、GELU 与 ReLU"),
    Words(
        "Curves of SiLU, GELU and ReLU at x = −2, −1, 0, 1, 2. ",
        "SiLU、GELU 与 ReLU 的曲线，在 x = −2、−1、0、1、2 处的值。",
    ),
)
def silu_gelu_relu() -> Chart:
    """Three functions from -4 to 4, with the lowest point of SiLU."""
    curves = _curve(silu, BLUE, "SiLU"), _curve(gelu_exact, GREEN, "GELU"), _curve(relu, RUST, "ReLU")
    least = float(round(XS[np.argmin(values(silu, XS))], 9))
    return _plot((*curves, _mark("SiLU", silu, least, "below")), 220, (-1.0, LIMIT), range(5))


@scene(
    Words("The two forms of GELU", "GELU 的两种形式"),
    Words(
        "GELU in its tanh form less the exact form, in units of 0.0001, at x = 0, 1, 2, 3, 4. ",
        "GELU 的 tanh 形式减去精确形式，以 0.0001 为单位，在 x = 0、1、2、3、4 处的值。",
    ),
)
def gelu_forms() -> Chart:
    """The tanh form less the exact one from -4 to 4, with its largest value."""
    ys = between(XS)
    far = int(np.argmax(np.abs(ys[XS > 0]))) + int((XS <= 0).sum())
    x, y = float(round(XS[far], 9)), float(ys[far])
    words = Words("tanh form − exact form, × 10⁻⁴", "tanh 形式 − 精确形式，× 10⁻⁴")
    curve = Polyline(XS, ys, words=words, numbers=between(np.arange(5.0)).tolist())
    mark = Mark(x, y, f"x = {decimal(x)}: {decimal(y / 10_000, 2)}", "left")
    return _plot((curve, mark), 170, (-3.0, 7.0), (-2, 0, 2, 4, 6))
