"""Generated tables of one number nudged, and of all that is made from it in turn: the rates of LayerNorm and GELU."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from byhand.book.lessons.examples import make
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pages.blocks.arrays import matrix_of
from byhand.book.pages.blocks.markdown import block, display_lines, table
from byhand.book.words.language import Words

NUDGE = 0.01
SHIFT, CUBIC = math.sqrt(2 / math.pi), 0.044715  # of GELU, as its entry writes them


def _row() -> np.ndarray:
    return np.asarray(make("layer-norm").steps[0].inputs[0].data, dtype=float).reshape(-1)


def _norm(first: float) -> dict[str, float]:
    """Return what LayerNorm makes of its example's row with this first number, in order."""
    x = np.array([first, *_row()[1:]])
    centred = x - x.mean()
    variance = float((centred**2).mean())
    made = {"μ": float(x.mean()), "σ²": variance, "σ": math.sqrt(variance)}
    return made | {f"x_norm[{j}]": float(number) / math.sqrt(variance) for j, number in enumerate(centred)}


def _norm_rules() -> list[str]:
    x, made = _row(), _norm(_row()[0])
    c, n = x.size, [made[f"x_norm[{j}]"] for j in range(x.size)]
    variance = 2 * (x[0] - made["μ"]) / c
    rules = [f"1 / {c}", f"2 × ({decimal(x[0])} − {decimal(made['μ'])}) / {c}"]
    rules.append(f"{decimal(variance)} / (2 × {decimal(made['σ'])})")
    for j in range(c):
        both = f"{_held(n[0])} × {_held(n[j])}"
        rules.append(f"({1 if j == 0 else 0} − 1 / {c} − {both} / {c}) / {decimal(made['σ'])}")
    return rules


def _held(x: float) -> str:
    return decimal(x) if x >= 0 else f"({decimal(x)})"


def _gelu(g: float) -> dict[str, float]:
    """Return what GELU makes of a number on its way, in order."""
    u = SHIFT * (g + CUBIC * g**3)
    return {"G³": g**3, "u": u, "tanh u": math.tanh(u), "F": g / 2 * (1 + math.tanh(u))}


def _gelu_rules() -> list[str]:
    bent = _gelu(1.0)["tanh u"]
    of_u = SHIFT * (1 + CUBIC * 3)
    of_tanh = (1 - bent**2) * of_u
    return [
        "3 × 1 × 1",
        f"{decimal(SHIFT)} × (1 + {decimal(CUBIC)} × 3)",
        f"(1 − {decimal(bent)} × {decimal(bent)}) × {decimal(of_u)}",
        f"(1 + {decimal(bent)}) / 2 + 1 / 2 × {decimal(of_tanh)}",
    ]


CHAINS: dict[str, tuple[Callable[[float], dict[str, float]], Callable[[], list[str]]]] = {
    "layer_norm": (_norm, _norm_rules),
    "gelu": (_gelu, _gelu_rules),
}


@block
def chained(page: Path, lang: str, name: str) -> str:
    """A number nudged both ways, the first of LayerNorm's row or a G of 1, and each number made from it."""
    made, rules = CHAINS[name]
    before, more, less = (made(1 + step) for step in (0, NUDGE, -NUDGE))
    rows = []
    for (label, value), rule in zip(before.items(), rules(), strict=True):
        both = f"{more[label]:.8f} <br> {less[label]:.8f}".replace("-", "−")
        rate = decimal((more[label] - less[label]) / (2 * NUDGE), 4)
        rows.append((f"`{label}`", f"`{decimal(value)}`", both, f"`{rate}`", f"`{rule}`"))
    head = Words(
        f"Number|Value|With {NUDGE:g} more, and less|Difference / {2 * NUDGE:g}|By the rules",
        f"数|值|增大、减小 {NUDGE:g} 时|差 / {2 * NUDGE:g}|按规则",
    )
    given = f"{display_lines([f'x = {matrix_of(_row())}'])}\n\n" if name == "layer_norm" else ""
    return given + table(head, rows, lang)
