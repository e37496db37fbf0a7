"""Activations as curves, their slopes as their derivatives give them, and what lies between GELU's two forms."""

from __future__ import annotations

import numpy as np

from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.alt import row, sentence
from byhand.book.pictures.axes import BLUE, GREEN, RUST, Axes, legend
from byhand.book.pictures.canvas import Canvas
from byhand.book.pictures.picture import picture
from byhand.book.words.language import Words
from byhand.engine import Equation
from byhand.equations.gelu import gelu
from byhand.equations.gelu_exact import gelu_exact
from byhand.equations.relu import relu
from byhand.equations.silu import silu

LIMIT, POINTS = 4.0, 161  # from -4 to 4 in steps of 0.05
AT = (-2.0, -1.0, 0.0, 1.0, 2.0)  # where numbers are said


def values(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the activation of numbers."""
    return equation.forward(xs)[0]


def slopes(equation: Equation, xs: np.ndarray) -> np.ndarray:
    """Return the derivative at numbers: what comes back for a cotangent of 1."""
    return equation.vjp(equation.forward(xs)[1], np.ones_like(xs))[0]


def values_in_words(lang: str) -> str:
    """Say both functions at five places."""
    start = Words(
        "Curves of GELU and ReLU at x = −2, −1, 0, 1, 2. ", "GELU 与 ReLU 的曲线，在 x = −2、−1、0、1、2 处的值。"
    )
    found = {name: values(equation, np.asarray(AT)) for name, equation in (("GELU", gelu), ("ReLU", relu))}
    return sentence(lang, start, (row(lang, name, y) for name, y in found.items()))


def slopes_in_words(lang: str) -> str:
    """Say both slopes at five places."""
    start = Words(
        "Derivatives of GELU and ReLU at x = −2, −1, 0, 1, 2. ", "GELU 与 ReLU 的导数在 x = −2、−1、0、1、2 处的值。"
    )
    found = {name: slopes(equation, np.asarray(AT)) for name, equation in (("GELU", gelu), ("ReLU", relu))}
    return sentence(lang, start, (row(lang, name, y) for name, y in found.items()))


def gates_in_words(lang: str) -> str:
    """Say SiLU, GELU and ReLU at five places."""
    start = Words(
        "Curves of SiLU, GELU and ReLU at x = −2, −1, 0, 1, 2. ",
        "SiLU、GELU 与 ReLU 的曲线，在 x = −2、−1、0、1、2 处的值。",
    )
    found = {name: values(equation, np.asarray(AT)) for name, equation in GATES.items()}
    return sentence(lang, start, (row(lang, name, y) for name, y in found.items()))


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


GATES = {"SiLU": silu, "GELU": gelu_exact, "ReLU": relu}


@picture(Words("GELU and ReLU", "GELU 与 ReLU"), values_in_words)
def gelu_relu(canvas: Canvas) -> None:
    """Both functions from -4 to 4, with GELU at -1 and 1."""
    xs = np.linspace(-LIMIT, LIMIT, POINTS)
    axes = Axes(canvas, 30, 14, 356, 220, (-LIMIT, LIMIT), (-0.6, LIMIT))
    axes.x_ticks(range(-4, 5), "x")
    axes.y_ticks(range(5))
    axes.zero()
    axes.curve(xs, values(relu, xs), RUST)
    axes.curve(xs, values(gelu, xs), BLUE)
    for at, dx, dy, anchor in ((-1.0, 0, 18, "middle"), (1.0, 12, 12, "start")):
        y = float(values(gelu, np.asarray([at]))[0])
        axes.point(at, y, BLUE, f"GELU({decimal(at)}) = {decimal(round(y, 3))}", at=anchor, dx=dx, dy=dy)
    legend(canvas, 60, 50, Words("GELU: bends smoothly", "GELU：光滑过渡"), BLUE)
    legend(canvas, 60, 72, Words("ReLU: max(x, 0)", "ReLU：max(x, 0)"), RUST)
    canvas.y = axes.bottom + 36


@picture(Words("Slopes of GELU and ReLU", "GELU 与 ReLU 的斜率"), slopes_in_words)
def gelu_relu_slopes(canvas: Canvas) -> None:
    """Both derivatives from -4 to 4."""
    xs = np.linspace(-LIMIT, LIMIT, POINTS)
    axes = Axes(canvas, 36, 14, 350, 190, (-LIMIT, LIMIT), (-0.25, 1.25))
    axes.x_ticks(range(-4, 5), "x")
    axes.y_ticks((0, 0.5, 1))
    axes.zero()
    below, above = np.asarray([-LIMIT, 0.0]), np.asarray([np.nextafter(0.0, 1.0), LIMIT])
    axes.curve(below, slopes(relu, below), RUST)
    axes.curve(above, slopes(relu, above), RUST)
    axes.curve(xs, slopes(gelu, xs), BLUE)
    for at, dx, dy in ((0.0, 10, 4), (1.0, 2, -9), (-1.0, -30, 18)):
        y = float(slopes(gelu, np.asarray([at]))[0])
        axes.point(at, y, BLUE, decimal(round(y, 3)), dx=dx, dy=dy)
    legend(canvas, 52, 46, Words("slope of GELU", "GELU 的斜率"), BLUE)
    legend(canvas, 52, 68, Words("slope of ReLU: 0 or 1", "ReLU 的斜率：0 或 1"), RUST)
    canvas.y = axes.bottom + 36


@picture(Words("SiLU, GELU and ReLU", "SiLU、GELU 与 ReLU"), gates_in_words)
def silu_gelu_relu(canvas: Canvas) -> None:
    """Three functions from -4 to 4, with the lowest point of SiLU."""
    xs = np.linspace(-LIMIT, LIMIT, POINTS)
    axes = Axes(canvas, 30, 14, 356, 220, (-LIMIT, LIMIT), (-1.0, LIMIT))
    axes.x_ticks(range(-4, 5), "x")
    axes.y_ticks(range(5))
    axes.zero()
    for (name, equation), colour in zip(GATES.items(), (BLUE, GREEN, RUST), strict=True):
        axes.curve(xs, values(equation, xs), colour)
        legend(canvas, 60, {"SiLU": 50, "GELU": 72, "ReLU": 94}[name], name, colour)
    least = int(np.argmin(values(silu, xs)))
    x, y = float(xs[least]), float(values(silu, xs)[least])
    axes.point(x, y, BLUE, f"SiLU({decimal(x)}) = {decimal(round(y, 3))}", at="middle", dx=0, dy=19)
    canvas.y = axes.bottom + 36


@picture(Words("The two forms of GELU", "GELU 的两种形式"), between_in_words)
def gelu_forms(canvas: Canvas) -> None:
    """The tanh form less the exact one from -4 to 4, with its largest value."""
    xs = np.linspace(-LIMIT, LIMIT, POINTS)
    ys = between(xs)
    axes = Axes(canvas, 36, 14, 350, 170, (-LIMIT, LIMIT), (-3.0, 7.0))
    axes.x_ticks(range(-4, 5), "x")
    axes.y_ticks((-2, 0, 2, 4, 6))
    axes.zero()
    axes.curve(xs, ys)
    far = int(np.argmax(np.abs(ys[xs > 0]))) + int((xs <= 0).sum())
    x, y = float(xs[far]), float(ys[far])
    axes.point(x, y, BLUE, f"x = {decimal(x)}: {decimal(y / 10_000, 2)}", at="end", dx=-10, dy=4)
    legend(canvas, 110, 28, Words("tanh form − exact form, × 10⁻⁴", "tanh 形式 − 精确形式，× 10⁻⁴"), BLUE)
    canvas.y = axes.bottom + 36
