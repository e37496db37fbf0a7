"""Answers about updates: groups of parameters, Muon's singular values, gradients of a tied table."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from byhand.book.lessons.examples.paper_gpt import CONFIG, WEIGHTS, model_of
from byhand.book.numbers.closed_form import array
from byhand.book.pictures.passes import TARGETS, TOKENS
from byhand.config import Group, ModelConfig, OptimConfig
from byhand.engine.equation import registry
from byhand.equations.muon import STEPS, stretch
from byhand.equations.orthogonalise import A, B, C
from byhand.model import declared
from byhand.tracing.gradients import passed_back
from byhand.tracing.trace import Trace
from pages.answers.registry import answer

MUON = OptimConfig(optimizer="muon")


@answer
def lifted(s: float) -> list[float]:
    """Return a singular value after each Newton-Schulz step."""
    found = [s]
    for _ in range(STEPS):
        s = found[-1]
        found.append(A * s + B * s**3 + C * s**5)
    return found[1:]


@answer
def updated_by_muon(group: Group) -> tuple[list[str], int, str, float]:
    """Return a group of the default model's parameters: short names, numbers, update rule, learning rate."""
    members = {name: p for name, p in declared(ModelConfig()).items() if p.group == group}
    short = dict.fromkeys(n.rpartition(".")[2] if "blocks" in n else n for n in members)
    numbers = sum(math.prod(p.shape) for p in members.values())
    return list(short), numbers, registry[MUON.rule_of(group)].title.removesuffix(" update"), MUON.rate_of(group)


@answer
def stretches() -> list[tuple[str, int, tuple[int, int], float]]:
    """Return each matrix of the default model: name, how many lie side by side, shape of one, Muon's factor."""
    matrices = {n: p for n, p in declared(ModelConfig()).items() if p.group == "matrices"}
    shapes = {name.rpartition(".")[2]: (p.shape, p.packed) for name, p in matrices.items()}
    return [(name, n, (i, o // n), stretch((i, o), n)) for name, ((i, o), n) in shapes.items()]


@answer
def tied_gradients() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the gradients of the paper GPT's tied table: of the look-up, of the head, and their sum."""
    weights = {n: array(w) for n, w in WEIGHTS.items() if n != "lm_head.w"}
    model = model_of(replace(CONFIG, tied_embeddings=True), weights)
    gradients = Trace.of(lambda: model.loss([TOKENS], [TARGETS])).backward()
    table = gradients.trace.tensor("wte")
    head, lookup = (passed_back(step, table) for step in gradients.uses(table))
    return lookup, head, gradients.by_name["wte"]
