"""The search that chose the numbers of the paper GPT: `python benchmarks/paper_gpt.py [--best 10]`.

The jobs of the weights are given (see `byhand.book.lessons.examples.paper_gpt`); the search varies how strong each
is, among numbers that are short on paper, and the numbers of the places. A candidate must

    be right       the right word has p of at least 0.7 at each position
    need both      without attention, or without the MLP, `pain` is still likelier than `gain` at the second `no`
    teach          the loss is at least 0.2, the greatest gradient between 0.1 and 0.5, and one update lowers the loss
    find it        the second `no` gives `pain` 0.6 to 0.9 of its weight

Of those, the one that is shortest to write is best: fewest fractions, then the one with the most left to learn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from byhand.book.lessons.examples.paper_gpt import CONFIG, RATE, TEXT, WEIGHTS, model_of
from byhand.book.numbers.closed_form import array
from byhand.equations.softmax import softmax
from byhand.optim import AdamW
from byhand.tracing.trace import Trace

TOKENS, TARGETS = [TEXT[:-1]], [TEXT[1:]]
HALF = Fraction(1, 2)
PLACES = ((0, HALF, 1), (1, HALF, 0), (-1, 0, 1), (1, 0, -1), (1, Fraction(1, 3), -Fraction(1, 3)))
STRENGTHS = {
    "looked": (HALF, 1, 2),
    "passed": (HALF, 1),
    "written": (HALF, 1),
    "needed": (0, HALF, 1),
    "said": (HALF, 1, 2),
}


def candidates() -> Iterator[tuple[dict[str, Any], int]]:
    """Yield weights, and how many of their strengths are fractions."""
    base = {name: array(w) for name, w in WEIGHTS.items()}
    for places, *found in product(PLACES, *STRENGTHS.values()):
        looked, passed, written, needed, said = map(float, found)
        weights = {name: np.sign(w) for name, w in base.items()}
        weights["wpe"][:, 3] = list(map(float, places))
        weights["blocks.0.attn.w_qkv"][:, :4] *= looked
        weights["blocks.0.attn.w_proj"] *= passed
        weights["blocks.0.mlp.w_out"] *= written
        weights["blocks.0.mlp.b_fc"] *= needed
        weights["lm_head.w"] *= said
        fractions = sum(Fraction(x).denominator > 1 for x in (*places, *found))
        yield weights, fractions


def chances(weights: dict[str, Any], without: str = "") -> np.ndarray:
    """Return the probabilities of the next word (T, V), one weight set to 0 if it is named."""
    model = model_of(CONFIG, {name: w * 0 if name == without else w.copy() for name, w in weights.items()})
    return softmax.forward(model.forward_logits(TOKENS).data[0])[0]


def loss_of(weights: dict[str, Any]) -> float | None:
    """Return the loss of a candidate that meets every condition."""
    p = chances(weights)
    right = p[np.arange(3), TARGETS[0]]
    if (p.argmax(-1) != TARGETS[0]).any() or right.min() < 0.7:
        return None
    for part in ("blocks.0.attn.w_proj", "blocks.0.mlp.w_out"):
        alone = chances(weights, part)[-1]
        if alone[1] <= alone[2]:
            return None
    model = model_of(CONFIG, {name: w.copy() for name, w in weights.items()})
    trace = Trace.of(lambda: model.loss(TOKENS, TARGETS))
    before = trace.result.data.item()
    greatest = max(np.abs(trace.backward().by_name[name]).max() for name in weights)
    if (
        before < 0.2
        or not 0.6 <= trace.values["blocks.0.attn.weights"][0, 0, 2, 1] <= 0.9
        or not 0.1 <= greatest <= 0.5
    ):
        return None
    model.loss(TOKENS, TARGETS).backward()
    AdamW(lr=RATE).step(model.parameters())
    return before if model.loss(TOKENS, TARGETS).item() < before else None


def main() -> None:
    """Print the best candidates, and which of them the lesson uses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--best", type=int, default=10, help="how many are printed")
    asked = parser.parse_args()
    used, found, tried = {name: array(w) for name, w in WEIGHTS.items()}, [], 0
    for weights, fractions in candidates():
        tried += 1
        loss = loss_of(weights)
        if loss is not None:
            is_used = all(np.array_equal(weights[name], used[name]) for name in used)
            found.append((fractions, loss, is_used, weights))
    found.sort(key=lambda one: (one[0], -one[1]))
    print(f"{tried} tried, {len(found)} meet every condition")
    for rank, (fractions, loss, is_used, w) in enumerate(found, 1):
        if rank > asked.best and not is_used:
            continue
        strong = {"W_Q": w["blocks.0.attn.w_qkv"][:, :4]} | {
            name.removeprefix("blocks.0."): w[name]
            for name in ("blocks.0.attn.w_proj", "blocks.0.mlp.w_out", "blocks.0.mlp.b_fc", "lm_head.w")
        }
        strengths = ", ".join(f"{name} {np.abs(x).max():.3g}" for name, x in strong.items())
        places = " ".join(f"{x:.3g}" for x in w["wpe"][:, 3])
        print(f"{rank}. loss {loss:.4f}, {fractions} fractions: places {places}; {strengths}{'  <- used' * is_used}")


if __name__ == "__main__":
    main()
