"""Answers about what is recorded and run: applications of equations in the example model, and their groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.book.lessons.examples import make
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.engine.backward import applications
from byhand.engine.graph.record import record
from byhand.model import TinyGPT
from byhand.runtimes.loops.lower.fusion import groups_of, rules_of
from byhand.runtimes.loops.pattern.rules import Group
from pages.answers.registry import answer

EXAMPLE = ModelConfig(vocab_size=4, seq_len=3, d_model=4, n_layers=1, n_heads=2)
TOKENS, TARGETS = [[2, 1, 3]], [[1, 3, 0]]


@answer
def recorded() -> list[tuple[Any, list[str], int, tuple[int, ...]]]:
    """Return every application between the tokens and the loss of the example model: node, inputs, results, shape."""
    found = []
    for node in applications(TinyGPT(EXAMPLE, dtype="float64").loss(TOKENS, TARGETS)):
        symbols = zip(node.inputs, node.equation.inputs, strict=False)
        inputs = [tensor.name or symbol.name for tensor, symbol in symbols]
        found.append((node, inputs, len(node.results), node.results[0][0]))
    return found


@answer
def fused_groups() -> list[Group]:
    """Return the groups of the example model's training step, in the order in which they run forward."""
    model = TinyGPT(EXAMPLE)
    graph = record(model.loss_of, tokens=np.array(TOKENS), targets=np.array(TARGETS))
    return groups_of(graph, rules_of("train"))


@answer
def lesson_numbers(name: str) -> list[tuple[Words, Any]]:
    """Return every number of a worked example, with the title of its step."""
    return [(step.title, number) for step in make(name).steps for number in step.numbers]
