"""Two explorers as parts of the site, of the GPT on paper and of a trained one, and the doors from equations' pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from byhand.book.port.microgpt import MicroRun
from byhand.exploring import paper, static
from byhand.exploring.view import Subject, View

FOLDER, TRAINED = "explore", "names"
NAME, END = "nuvo", "\n"  # that the trained model reads; a name begins and ends with a new line
MAPS = ("q", "k", "weights")  # of the door's picture


@cache
def view() -> View:
    """Return the pass that the explorer shows: the text, and the word that follows it."""
    subject = paper.subject()
    tokens = subject.encode(paper.PROMPT.encode())
    return View(subject, tokens, [*tokens[1:], *subject.encode(paper.NEXT.encode())])


def write(site: Path) -> None:
    """Write both explorers into the site."""
    static.write(view(), site / FOLDER, paper.PROMPT, paper.NEXT)
    static.write(trained(), site / TRAINED, END + NAME, END)


@cache
def trained() -> View:
    """Return a pass of microgpt, trained on its names: 4,000 weights, which take a few seconds."""
    run = MicroRun()
    steps = sum(1 for _ in run.losses())
    letters = run.letters + END

    def encode(text: bytes) -> list[int]:
        return [letters.index(letter) for letter in text.decode()]

    texts = {i: letter.encode() for i, letter in enumerate(letters)}
    tokens = encode((END + NAME + END).encode())
    subject = Subject("names", steps, run.model, encode, texts, "token")
    return View(subject, tokens[:-1], tokens[1:])


@cache
def places() -> dict[str, str]:
    """Return the first number that each equation makes in the pass, as `explain` calls it."""
    found: dict[str, str] = {}
    for name, (use, _) in view().questions.trace.made.items():
        axes = len(view().questions.array(name, False).shape)
        found.setdefault(use.equation.name, f"{name}[{','.join('0' * axes)}]" if axes else name)
    return found


def has(site: Path, address: str) -> bool:
    """Return whether the written explorer has the number of an address: `#/NAME[0,0]`."""
    name, _, index = address.removeprefix("/").removesuffix("]").partition("[")
    file = site / FOLDER / "data" / "answer" / f"{name}.json"
    return file.is_file() and index in json.loads(file.read_text(encoding="utf-8"))


def heat_maps() -> list[list[list[Any]]]:
    """Return queries, keys and weights for a picture: rows of [sign, strength]."""
    arrays = (view().questions.array(f"blocks.0.attn.{name}", False)[0, 0] for name in MAPS)
    return [list(_strengths(array)) for array in arrays]


def _strengths(array: np.ndarray) -> Iterator[list[Any]]:
    most = np.abs(array).max()
    for row in array.tolist():
        yield [("neg" if x < 0 else "pos", round((abs(x) / most) ** 0.6, 2)) for x in row]
