"""The curves of `byhand break`: a small model trained with each mistake of the catalogue, and without.

`byhand/book/practice/curves.json` has a line for each. Only lines whose mistake or settings changed are computed
again, about a second each; tests compute none.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from random import Random
from typing import Any

import numpy as np

from byhand.book.port import model
from byhand.book.practice.catalogue import Planted, catalogue
from byhand.book.practice.effects import CURVES, PER_POINT
from byhand.book.practice.planting import planted
from byhand.config import ModelConfig
from byhand.model import TinyGPT

NAMES, COLOURS = ("ann", "ben", "cem", "dana", "eva", "finn"), ("red", "blue", "green", "white")
THINGS = ("cup", "hat", "book", "ball", "coat", "pen")
WORDS = (".", *NAMES, *COLOURS, *THINGS)
BATCH, LENGTH, STEPS, TESTS, SEEDS = 8, 7, 160, 8, (1, 2, 3)
SETTINGS = {"lr": 0.02, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1, "decay": "matrices"}
FLOOR = math.log(len(COLOURS) * len(THINGS)) / LENGTH  # of a perfect model: of seven targets two cannot be known
UNTRAINED = {
    f"byhand.book.port.{name}" for name in ("model:states", "model:filled", "model:rate", "microgpt:in_order")
}
CONFIGS = {
    name: replace(config, vocab_size=len(WORDS), seq_len=LENGTH, d_model=24, d_ff=48, norm_eps=1e-5)
    for name, config in model.CONFIGS.items()
}


def sentences(draw: Random) -> Iterator[int]:
    """Yield tokens of a text that says everything twice: "ann red cup . ann red cup ."."""
    while True:
        said = [draw.choice(NAMES), draw.choice(COLOURS), draw.choice(THINGS), "."]
        yield from map(WORDS.index, 2 * said)


def batches(seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield tokens and targets, as `arranged` reads them from the text."""
    draw = Random(seed)
    while True:
        yield model.arranged(
            [*chain(*(islice(sentences(draw), LENGTH + 1) for _ in range(BATCH)))], BATCH, LENGTH + 1
        )


def curve(config: ModelConfig, mistake: Planted | None = None, seed: int = 1) -> dict[str, Any]:
    """Return what training leads to: the first loss, means of the loss, and the loss of text not trained on.

    `own` is that loss as the program with the mistake computes it, `right` as a right program does.
    """
    net = TinyGPT(config, seed)
    with planted(*[mistake] if mistake else ()), np.errstate(all="ignore"):
        losses = [*islice(model.trained(net, batches(seed), SETTINGS), 0, 2 * STEPS, 2)]
        own = tested(net)
    with np.errstate(all="ignore"):
        right = tested(net)
    means = np.asarray(losses).reshape(-1, PER_POINT).mean(axis=1)
    return {"first": kept(losses[0]), "losses": [*map(kept, means)], "own": kept(own), "right": kept(right)}


def tested(net: TinyGPT) -> float:
    """Return the mean loss of batches that no seed trains on."""
    return float(np.mean([net.loss(*batch).item() for batch in islice(batches(0), TESTS)]))


def kept(loss: float) -> float | None:
    """Return four digits after the point; None if the loss is not finite."""
    return round(float(loss), 4) if np.isfinite(loss) and abs(loss) < 1e9 else None


def digest(config: ModelConfig | None, *what: object) -> str:
    """Return a digest of the settings and of what is trained."""
    chosen = config and {
        name: value for name, value in vars(config).items() if value != getattr(ModelConfig, name, None)
    }
    what = (chosen, *what)
    return hashlib.sha256(repr((BATCH, LENGTH, STEPS, TESTS, SETTINGS, WORDS, *what)).encode()).hexdigest()[:12]


def text(table: str, compute: bool = True) -> str:
    """Return the text of `curves.json`, given that of `table.json`, which says what each model can show.

    Without `compute` it is empty if a line is stale.
    """
    there = json.loads(CURVES.read_text(encoding="utf-8")) if CURVES.is_file() else {"right": {}, "mistakes": {}}
    moved = [row[-1] for row in json.loads(table)["mistakes"]] if table else []
    right = {name: there["right"].get(name, {}) for name in CONFIGS}
    made = {mistake.name: there["mistakes"].get(mistake.name, {}) for mistake in catalogue()}
    wanted: list[tuple[dict[str, Any], str, str, str, Planted | None]] = [
        (right, name, name, digest(config), None) for name, config in CONFIGS.items()
    ]
    for mistake, shows in zip(catalogue(), moved, strict=True):
        name = "" if mistake.where in UNTRAINED else next(iter(shows))
        wanted.append(
            (made, mistake.name, name, digest(CONFIGS.get(name), mistake.where, mistake.old, mistake.new), mistake)
        )
    for lines, key, name, of, mistake in wanted:
        if lines[key].get("of") == of:
            continue
        if not compute:
            return ""
        lines[key] = {"of": of} if not name else {"of": of, "model": name} | curve(CONFIGS[name], mistake)
        if not mistake:
            lines[key]["seeds"] = [curve(CONFIGS[name], seed=seed)["own"] for seed in SEEDS]
        _keep(right, made)
    return said(right, made)


def _keep(right: dict[str, Any], made: dict[str, Any]) -> None:
    """Write down what there is, so that an interrupted build goes on from there."""
    CURVES.write_text(said(right, made), encoding="utf-8", newline="\n")


def said(right: dict[str, Any], made: dict[str, Any]) -> str:
    """Return lines of JSON."""
    parts = (f'"{name}": {{\n{_lines(rows)}\n}}' for name, rows in (("right", right), ("mistakes", made)))
    bounds = f'"chance": {round(math.log(len(WORDS)), 4)}, "floor": {round(FLOOR, 4)}'
    return f"{{{bounds},\n" + ",\n".join(parts) + "\n}\n"


def _lines(rows: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in rows.items())
