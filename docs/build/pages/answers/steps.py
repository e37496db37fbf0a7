"""Answers about the forward pass: for each line of its formulas the call that computes it, its place, its shape."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from byhand.book.finding import source
from byhand.config import ModelConfig
from byhand.engine.equation import registry
from byhand.errors import ByhandError
from byhand.model import TinyGPT
from byhand.tracing.trace import Trace
from pages.blocks.markdown import located
from pages.calls import CallTracer, shown_call
from pages.data import read
from where import syntax

MEND = "Correct docs/build/pages/data/steps.toml, or the model."

# Formula, callee, name of its result in a pass, names of the tensors that it reads
Line = tuple[str, str, str, list[str]]
LINES: dict[str, list[Line]] = read("steps")
APPLIED = {
    "self.norm.apply": "layer_norm", "self.attention.apply": "causal_self_attention", "activation": "gelu",
}  # fmt: skip
"""The equation that a layer's call applies in the default model."""
SIZES = {"B": 2, "T": 3, "H": 5, "D": 7, "C": 35, "3C": 105, "F": 11, "V": 13}  # all different, so each names an axis


@dataclass(frozen=True)
class Computed:
    """A line of a formula: its call in the model, where that is, its shape in letters, its equation if it has one."""

    formula: str
    call: str
    where: str
    shape: list[str]
    stem: str


def lines_of(parts: tuple[str, ...]) -> Iterator[Computed]:
    """Yield the lines of some parts of the forward pass.

    Raises ByhandError if the model computes a line's result by another call, or from other tensors.
    """
    calls, trace = _pass()
    letters = {length: letter for letter, length in SIZES.items()}
    for formula, called, result, reads in (line for part in parts for line in LINES[part]):
        try:
            call = calls.call(trace, called, result)
        except ByhandError as error:
            raise ByhandError(f"the page shows {formula}: {error} {MEND}") from None
        if call.reads != tuple(reads):
            raise ByhandError(
                f"the page shows {formula} as made from {', '.join(reads)}, but the model makes {result} from "
                f"{', '.join(call.reads)}. {MEND}"
            )
        shape = [letters[length] for length in trace.tensor(result).shape]
        stem = APPLIED.get(called, called)
        where = f"{source.shown(call.path)}:{call.line}"
        yield Computed(formula, call.text, where, shape, stem if stem in registry else "")


def call_in(given: str, called: str) -> tuple[str, str]:
    """Return the only call of this name in a definition, as it is written, and its place."""
    path, definition = located(given)
    inside = ast.walk(syntax.statement(path, definition))
    found = [node for node in inside if isinstance(node, ast.Call) and ast.unparse(node.func) == called]
    if len(found) != 1:
        raise ByhandError(
            f"the page shows the call of {called} in {definition} of {source.shown(path)}, which has {len(found)} calls of that name. "
            "Correct the page."
        )
    return shown_call(found[0]), f"{source.shown(path)}:{found[0].lineno}"


@cache
def _pass() -> tuple[CallTracer, Trace]:
    """Return the pass of a model in which every axis has a length of its own, and the calls that made it."""
    b, t, h, _, c, _, f, v = SIZES.values()
    model = TinyGPT(ModelConfig(vocab_size=v, seq_len=t, d_model=c, n_heads=h, d_ff=f, n_layers=1))
    calls, tokens = CallTracer(), np.zeros((b, t), np.int64)
    return calls, Trace.of(lambda: model.loss(tokens, tokens), calls)
