"""What the page asks: numbers nudged in LayerNorm, in GELU and in the paper GPT."""

import math

import numpy as np

from byhand.book.lessons.examples.paper_gpt import CONFIG, WEIGHTS, model_of
from byhand.book.lessons.letters import called as letter_of
from byhand.book.numbers import closed_form
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.passes import TARGETS, TOKENS, pass_of
from pages.answers.lessons import lesson_arrays

SHIFT, CUBIC = math.sqrt(2 / math.pi), 0.044715  # of GELU, as its entry writes them


def _row() -> np.ndarray:
    return lesson_arrays("layer-norm")["x"].astype(float).ravel()


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


def chained(name: str, step: float) -> list[tuple[str, float, float, float, str]]:
    """Return each number made from LayerNorm's first, or from a G of 1: label, value, nudged up, down, rule."""
    made, rules = {"layer_norm": (_norm, _norm_rules), "gelu": (_gelu, _gelu_rules)}[name]
    before, more, less = (made(1 + by) for by in (0, step, -step))
    return [
        (label, before[label], more[label], less[label], rule) for label, rule in zip(before, rules(), strict=True)
    ]


def paper_nudged(name: str, index: tuple[int, ...], step: float) -> tuple[float, float, float]:
    """Return the gradient of a weight of the paper GPT, and the losses with it larger and smaller by `step`."""

    def loss(by: float) -> float:
        weights = {own: closed_form.array(w) for own, w in WEIGHTS.items()}
        weights[name][index] += by
        return model_of(CONFIG, weights).loss([TOKENS], [TARGETS]).item()

    return float(pass_of("paper-gpt").by_name[name][index]), loss(step), loss(-step)
