"""What the page asks: offsets in flat memory, and the applications of a small model."""

from typing import Any

from byhand.book.lessons.examples.memory_layout import offset
from byhand.book.numbers.arithmetic import expression
from byhand.config import ModelConfig
from byhand.engine.backward import applications
from byhand.model import TinyGPT

EXAMPLE = ModelConfig(vocab_size=4, seq_len=3, d_model=4, n_layers=1, n_heads=2)
TOKENS, TARGETS = [[2, 1, 3]], [[1, 3, 0]]


def recorded() -> list[tuple[Any, list[str], int, tuple[int, ...]]]:
    """Return every application between the tokens and the loss of the example model: node, inputs, results, shape."""
    found = []
    for node in applications(TinyGPT(EXAMPLE, dtype="float64").loss(TOKENS, TARGETS)):
        symbols = zip(node.inputs, node.equation.inputs, strict=False)
        inputs = [tensor.name or symbol.name for tensor, symbol in symbols]
        found.append((node, inputs, len(node.results), node.results[0][0]))
    return found


def offset_in(place: tuple[int, ...], shape: tuple[int, ...]) -> tuple[str, int]:
    """Return the offset of an array's element in flat memory: its arithmetic, and its value."""
    term = offset(place, shape)
    return expression(term), int(term.value)
