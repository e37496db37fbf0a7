"""Generated tables that pair each line of a formula with the call that computes it, its place and its shape."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numpy as np

from byhand.book.finding import source
from byhand.book.pages.blocks.excerpts import located
from byhand.book.pages.blocks.markdown import block, inline, link, link_equation, table
from byhand.book.pages.calls import CallTracer, shown_call
from byhand.book.pages.data import read
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine.equation import registry
from byhand.errors import ByhandError
from byhand.model import TinyGPT
from byhand.tracing.trace import Trace

MEND = "Correct src/byhand/book/pages/data/steps.toml, or the model."

# Formula, callee, name of its result in a pass, names of the tensors that it reads
Line = tuple[str, str, str, list[str]]
LINES: dict[str, list[Line]] = read("steps")
APPLIED = {
    "self.norm.apply": "layer_norm", "self.attention.apply": "causal_self_attention", "activation": "gelu",
}  # fmt: skip
"""The equation that a layer's call applies in the default model."""
SIZES = {"B": 2, "T": 3, "H": 5, "D": 7, "C": 35, "3C": 105, "F": 11, "V": 13}  # all different, so each names an axis


@block
def steps(page: Path, lang: str, *parts: str) -> str:
    """The lines of some parts of the forward pass: formula, call, place in the source, shape of the result.

    Raises ByhandError if the model computes a line's result by another call, or from other tensors.
    """
    calls, trace = _pass()
    rows = []
    for formula, called, result, reads in (line for part in parts for line in LINES[part]):
        stem = APPLIED.get(called, called)
        own = link_equation(page, stem, lang) if stem in registry else ""
        try:
            call = calls.call(trace, called, result)
        except ByhandError as error:
            raise ByhandError(f"the page shows {formula}: {error} {MEND}") from None
        if call.reads != tuple(reads):
            raise ByhandError(
                f"the page shows {formula} as made from {', '.join(reads)}, but the model makes {result} from "
                f"{', '.join(call.reads)}. {MEND}"
            )
        where = link(page, f"{source.shown(call.path)}:{call.line}")
        line = f"{inline(formula)} <br> `{call.text}` <br> {where}"  # one column, which a telephone has room for
        rows.append((line, _shape(trace.tensor(result).shape), own))
    head = Words("Formula, call and place|Shape of the result|Its page", "公式、调用及其位置|结果的形状|公式页面")
    return table(head, rows, lang)


@block
def call(page: Path, lang: str, given: str, called: str) -> str:
    """The only call of this name in a definition, as it is written, and a link to it."""
    path, definition = located(given)
    inside = ast.walk(source.statement(path, definition))
    found = [node for node in inside if isinstance(node, ast.Call) and ast.unparse(node.func) == called]
    if len(found) != 1:
        raise ByhandError(
            f"the page shows the call of {called} in {definition} of {source.shown(path)}, which has "
            f"{len(found)} calls of that name. {MEND}"
        )
    (call,) = found
    return f"`{shown_call(call)}` <br> {link(page, f'{source.shown(path)}:{call.lineno}')}"


@cache
def _pass() -> tuple[CallTracer, Trace]:
    """Return the pass of a model in which every axis has a length of its own, and the calls that made it."""
    b, t, h, _, c, _, f, v = SIZES.values()
    model = TinyGPT(ModelConfig(vocab_size=v, seq_len=t, d_model=c, n_heads=h, d_ff=f, n_layers=1))
    calls, tokens = CallTracer(), np.zeros((b, t), np.int64)
    return calls, Trace.of(lambda: model.loss(tokens, tokens), calls)


def _shape(shape: tuple[int, ...]) -> str:
    """Return a result's shape in letters."""
    letters = {length: letter for letter, length in SIZES.items()}
    return f"[{', '.join(letters[length] for length in shape)}]"
