"""A page without a server: the answers of one pass, each computed beforehand, beside the page's files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from byhand.engine.terms import indices
from byhand.errors import DataError
from byhand.exploring.regions import regions
from byhand.exploring.view import View
from byhand.files import writing

MOST = 50_000  # numbers, of which each has an answer
DETAILED = 5_000  # up to so many, each gradient has a central difference and each sum many terms
TERMS, FEWER = 64, 8  # of a sum
KEPT = ("value", "terms", "note", "central_difference")  # of an answer; the page has the rest in other files
PAGE = "explore.html"
BEGINS = ('"/web/', '"web/'), ("<html ", "<html data-static ")  # a page may lie anywhere


def write(view: View, folder: Path, prompt: str, after: str) -> int:
    """Write the page of a pass over a prompt and what follows it; return how many numbers it has.

    Raises DataError if the model is too large to have them all computed.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / "data" / "pass.json").is_file():
        raise DataError(f"{folder} holds something else. Name a new folder.")
    names = [(name, gradient) for name in _names(view) for gradient in (False, True) if _has(view, name, gradient)]
    count = sum(view.questions.array(name, gradient).size for name, gradient in names)
    if count > MOST:
        raise DataError(
            f"this pass has {count:,} numbers, and a page without a server at most {MOST:,}. "
            "Use a shorter text or a smaller model."
        )
    detailed = count <= DETAILED
    _copy(files("byhand") / "web", folder / "web")
    page = (files("byhand") / "web" / PAGE).read_text(encoding="utf-8")
    for absolute, relative in BEGINS:
        page = page.replace(absolute, relative)
    _put(folder / "index.html", page.encode())
    data, positions, vocab = folder / "data", range(len(view.tokens)), view.model.config.vocab_size
    said = {"prompt": prompt, "next": after, "texts": view.subject.texts(range(vocab))}
    _put_json(data / "pass.json", view.summary() | said)
    _put_json(data / "stages.json", view.stages())
    _put_json(data / "norms.json", view.norms(True))
    _put_json(data / "equations.json", view.equations())
    with suppress(DataError):  # a model whose parts do not add up has none
        shares = {f"{t},{v}": view.shares(t, v, None) for t in positions for v in range(vocab)}
        _put_json(data / "shares.json", shares)
    for name, gradient in names:
        key = f"d-{name}" if gradient else name
        array = view.questions.array(name, gradient)
        _put(data / "array" / f"{key}.bin", np.ascontiguousarray(array, dtype="<f4").tobytes())
        _put_json(data / "answer" / f"{key}.json", dict(_answers(view, name, gradient, detailed)))
        if name in view.places:
            _put_json(data / "reads" / f"{key}.json", regions(view.questions, name, gradient))
    return count


def _names(view: View) -> list[str]:
    return [*view.model.parameters(), *view.places]


def _has(view: View, name: str, gradient: bool) -> bool:
    return not gradient or name in view.questions.gradients.by_name


def _answers(view: View, name: str, gradient: bool, detailed: bool) -> Iterator[tuple[str, Any]]:
    for index in indices(view.questions.array(name, gradient).shape):
        answer = view.answer(name, index, gradient, TERMS if detailed else FEWER)
        if gradient and detailed:
            answer["central_difference"] = view.difference(name, index)
        yield ",".join(map(str, index)), {key: answer[key] for key in KEPT if answer.get(key) is not None}


def _copy(source: Traversable, folder: Path) -> None:
    for each in source.iterdir():
        if each.is_dir():
            _copy(each, folder / each.name)
        elif not each.name.endswith((".html", ".py")):
            _put(folder / each.name, each.read_bytes())


def _put_json(path: Path, value: Any) -> None:
    _put(path, json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    writing.replace(path, [content])
