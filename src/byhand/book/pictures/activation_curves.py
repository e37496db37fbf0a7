"""Activations as curves, their slopes, and the difference between GELU's two forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.axes import Axes, legend
from byhand.book.pictures.canvas import BLUE, GREEN, RUST, Canvas
from byhand.book.pictures.picture import picture, row, sentence
from byhand.book.words.language import Words
from byhand.engine import Equation
from byhand.equations.gelu import gelu
from byhand.equations.gelu_exact import gelu_exact
from byhand.equations.relu import relu
from byhand.equations.silu import silu

LIMIT, POINTS = 4.0, 161  # from -4 to 4 in steps of 0.05
AT = (-2.0, -1.0, 0.0, 1.0, 2.0)  # places whose numbers are said


def values(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the activation of numbers."""
    return equation.forward(xs)[0]


def slopes(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the derivative at numbers, by the vjp of a cotangent of 1."""
    return equation.vjp(equation.forward(xs)[1], np.ones_like(xs))[0]


PAIR = {"GELU": gelu, "ReLU": relu}
GATES = {"SiLU": silu, "GELU": gelu_exact, "ReLU": relu}


def in_words(
    start: Words, of: Callable[[Equation, np.ndarray], np.ndarray], equations: dict[str, Equation]
) -> Callable[[str], str]:
    """Return a function that says the values or the slopes of equations at five places."""

    def said(lang: str) -> str:
        return sentence(lang, start, (row(lang, name, of(each, np.asarray(AT))) for name, each in equations.items()))

    return said


def between(xs: np.ndarray) -> np.ndarray:
    """Return the tanh form of GELU less the exact one, in units of 0.0001."""
    return 10_000 * (values(gelu, xs) - values(gelu_exact, xs))


def between_in_words(lang: str) -> str:
    """Say the difference at five places."""
    start = Words(
        "GELU in its tanh form less the exact form, in units of 0.0001, at x = 0, 1, 2, 3, 4. ",
        "GELU 的 tanh 形式减去精确形式，以 0.0001 为单位，在 x = 0、1、2、3、4 处的值。",
    )
    return sentence(lang, start, [row(lang, Words("Difference", "差"), between(np.arange(5.0)))])


XS = np.linspace(-LIMIT, LIMIT, POINTS)


def _axes(canvas: Canvas, left: float, height: float, ys: tuple[float, float], ticks: Iterable[float]) -> Axes:
    """Return axes from -4 to 4, and move below their labels."""
    axes = Axes(canvas, left, 14, 386 - left, height, (-LIMIT, LIMIT), ys)
    axes.x_ticks(range(-4, 5), "x")
    axes.y_ticks(ticks)
    axes.zero()
    canvas.y = axes.bottom + 36
    return axes


@picture(
    Words("GELU and ReLU", "GELU 与 ReLU"),
    in_words(
        Words(
            "Curves of GELU and ReLU at x = −2, −1, 0, 1, 2. ",
            "GELU 与 ReLU 的曲线，在 x = −2、−1、0、1、2 处的值。",
        ),
        values,
        PAIR,
    ),
)
def gelu_relu(canvas: Canvas) -> None:
    """Both functions from -4 to 4, with GELU at -1 and 1."""
    axes = _axes(canvas, 30, 220, (-0.6, LIMIT), range(5))
    axes.curve(XS, values(relu, XS), RUST)
    axes.curve(XS, values(gelu, XS), BLUE)
    for at, dx, dy, anchor in ((-1.0, 0, 18, "middle"), (1.0, 12, 12, "start")):
        y = float(values(gelu, np.asarray([at]))[0])
        axes.point(at, y, BLUE, f"GELU({decimal(at)}) = {decimal(round(y, 3))}", at=anchor, dx=dx, dy=dy)
    legend(canvas, 60, 50, Words("GELU: bends smoothly", "GELU：光滑过渡"), BLUE)
    legend(canvas, 60, 72, Words("ReLU: max(x, 0)", "ReLU：max(x, 0)"), RUST)


@picture(
    Words("Slopes of GELU and ReLU", "GELU 与 ReLU 的斜率"),
    in_words(
        Words(
            "Derivatives of GELU and ReLU at x = −2, −1, 0, 1, 2. ",
            "GELU 与 ReLU 的导数在 x = −2、−1、0、1、2 处的值。",
        ),
        slopes,
        PAIR,
    ),
)
def gelu_relu_slopes(canvas: Canvas) -> None:
    """Both derivatives from -4 to 4."""
    axes = _axes(canvas, 36, 190, (-0.25, 1.25), (0, 0.5, 1))
    for side in ([-LIMIT, 0.0], [np.nextafter(0.0, 1.0), LIMIT]):
        axes.curve(side, slopes(relu, np.asarray(side)), RUST)
    axes.curve(XS, slopes(gelu, XS), BLUE)
    for at, dx, dy in ((0.0, 10, 4), (1.0, 2, -9), (-1.0, -30, 18)):
        y = float(slopes(gelu, np.asarray([at]))[0])
        axes.point(at, y, BLUE, decimal(round(y, 3)), dx=dx, dy=dy)
    legend(canvas, 52, 46, Words("slope of GELU", "GELU 的斜率"), BLUE)
    legend(canvas, 52, 68, Words("slope of ReLU: 0 or 1", "ReLU 的斜率：0 或 1"), RUST)


@picture(
    Words("SiLU, GELU and ReLU", "SiLU、GELU 与 ReLU"),
    in_words(
        Words(
            "Curves of SiLU, GELU and ReLU at x = −2, −1, 0, 1, 2. ",
            "SiLU、GELU 与 ReLU 的曲线，在 x = −2、−1、0、1、2 处的值。",
        ),
        values,
        GATES,
    ),
)
def silu_gelu_relu(canvas: Canvas) -> None:
    """Three functions from -4 to 4, with the lowest point of SiLU."""
    axes = _axes(canvas, 30, 220, (-1.0, LIMIT), range(5))
    for (name, equation), colour, y in zip(GATES.items(), (BLUE, GREEN, RUST), (50, 72, 94), strict=True):
        axes.curve(XS, values(equation, XS), colour)
        legend(canvas, 60, y, name, colour)
    least = int(np.argmin(values(silu, XS)))
    x, y = float(XS[least]), float(values(silu, XS)[least])
    axes.point(x, y, BLUE, f"SiLU({decimal(x)}) = {decimal(round(y, 3))}", at="middle", dx=0, dy=19)


@picture(Words("The two forms of GELU", "GELU 的两种形式"), between_in_words)
def gelu_forms(canvas: Canvas) -> None:
    """The tanh form less the exact one from -4 to 4, with its largest value."""
    ys = between(XS)
    axes = _axes(canvas, 36, 170, (-3.0, 7.0), (-2, 0, 2, 4, 6))
    axes.curve(XS, ys)
    far = int(np.argmax(np.abs(ys[XS > 0]))) + int((XS <= 0).sum())
    x, y = float(XS[far]), float(ys[far])
    axes.point(x, y, BLUE, f"x = {decimal(x)}: {decimal(y / 10_000, 2)}", at="end", dx=-10, dy=4)
    legend(canvas, 110, 28, Words("tanh form − exact form, × 10⁻⁴", "tanh 形式 − 精确形式，× 10⁻⁴"), BLUE)
