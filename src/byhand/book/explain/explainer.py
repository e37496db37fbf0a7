"""Explains a number of a real model: the equation, its arithmetic in numbers, and its inputs.

A value is explained by its equation's `terms`, a gradient by the derivatives: a vjp is linear in the cotangent, so a
cotangent with a single element gives that element's share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from byhand.book.explain.explanation import Explanation
from byhand.book.explain.gradient import explain_gradient, norm
from byhand.book.explain.update import PARTS, Clipping, ParameterUpdate
from byhand.book.explain.value import explain_term
from byhand.book.words.language import Note
from byhand.engine import Tensor
from byhand.errors import ExplainError
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.tracing.gradients import Gradients
from byhand.tracing.trace import Trace

PARAMETER = Note(
    "a parameter: training made it. With --grad: why it moves; NAME.update: how far one step moves it.",
    "参数：由训练得到。加 --grad 看它的梯度；名称后加 .update 看下一步更新多少。",
    "parameter",
)
GIVEN = Note("given: part of the input.", "已知：输入的一部分。", "given")
MOST = 2000  # explanations of the numbers behind one: eight terms to a depth of four are 585


def explain(
    model: TinyGPT,
    tokens: Any,
    targets: Any,
    name: str,
    index: Sequence[int] = (),
    *,
    grad: bool = False,
    depth: int = 1,
    width: int = 8,
    optimizer: AdamW | None = None,
    max_grad_norm: float = 0.0,
) -> Explanation:
    """Explain one element of a parameter, activation, the logits, the loss, or of an update.

    tokens, targets  (B, T) token ids; without a loss, gradient or update, targets may be None
    name, index      as in `blocks.1.attn.weights` and (0, 0, 2, 1); `PARAMETER.m`, `.v`, `.theta` and `.update` are
                     the results of the optimizer's next step
    grad             explain d loss / d element instead, with a central difference in float64
    depth            levels of inputs to explain; `width` inputs at each level
    optimizer        its settings and moments, for updates; a fresh AdamW by default
    max_grad_norm    clip gradients to this global norm before the update, as training does; 0 does not

    Raises ExplainError if there is no such element, it has no gradient, or more than MOST numbers lie behind it.
    """
    explainer = Explainer(model, tokens, targets, optimizer, max_grad_norm)
    return explainer.explain(name, index, grad, depth, width)


class Explainer:
    """One forward pass of a model; computes its gradients and an update on first use."""

    def __init__(
        self,
        model: TinyGPT,
        tokens: Any,
        targets: Any = None,
        optimizer: AdamW | None = None,
        max_grad_norm: float = 0.0,
    ) -> None:
        self.model = model
        self.optimizer = optimizer or AdamW()
        self.max_grad_norm = max_grad_norm
        self.compute: Callable[[TinyGPT], Tensor] = (
            (lambda m: m.forward_logits(tokens)) if targets is None else (lambda m: m.loss(tokens, targets))
        )
        self.has_loss = targets is not None
        self.trace = Trace.of(lambda: self.compute(model))

    def names(self) -> list[str]:
        """Return all names that can be explained, in the order of computation; updates last."""
        updates = [f"{p}.{part}" for p in self.model.parameters() for part in PARTS]
        return [*self.model.parameters(), *self.trace.made, *(updates if self.has_loss else [])]

    def explain(
        self, name: str, index: Sequence[int], grad: bool = False, depth: int = 1, width: int = 8
    ) -> Explanation:
        """Explain one element, its inputs too if depth is above 1."""
        for setting, count in (("depth", depth), ("width", width)):
            if not isinstance(count, int) or count < 1:
                raise ExplainError(f"{setting} is {count!r}, but must be an integer of at least 1.")
        explanation = self._gradient(name, index, first=True) if grad else self._value(name, index)
        return self._deepen(explanation, depth, width, iter(range(MOST)))

    def array(self, name: str, grad: bool = False) -> np.ndarray:
        """Return the whole array of an explained element."""
        if grad:
            return np.asarray(self.gradients.by_name[name])
        parameter = self._parameter_of(name)
        if parameter:
            return self._update(parameter).array(name.rpartition(".")[2])
        return np.asarray(self.trace.tensor(name).data)

    def clipping(self) -> Clipping:
        """Return the clipping of the gradients before the update."""
        return Clipping(norm(self.gradients, self.model.parameters()), self.max_grad_norm)

    @cached_property
    def gradients(self) -> Gradients:
        """The backward pass from the loss."""
        if not self.has_loss:
            raise ExplainError("a gradient needs a loss. Give targets.")
        return self.trace.backward()

    def _deepen(self, explanation: Explanation, depth: int, width: int, left: Iterator[int]) -> Explanation:
        """Explain its sources too; ExplainError when none of the MOST explanations is `left`."""
        if depth <= 1:
            return explanation
        children = []
        for source in explanation.sources[:width]:
            if source.grad or source.name in self.trace.made or self._parameter_of(source.name):
                if next(left, None) is None:
                    raise ExplainError(
                        f"it was made from more than {MOST} numbers in so many steps. Use less depth or fewer terms."
                    )
                child = (
                    self._gradient(source.name, source.index)
                    if source.grad
                    else self._value(source.name, source.index)
                )
                children.append(self._deepen(child, depth - 1, width, left))
        return replace(explanation, children=tuple(children))

    def _value(self, name: str, index: Sequence[int]) -> Explanation:
        parameter = self._parameter_of(name)
        if parameter:
            if not self.has_loss:
                raise ExplainError(f"{name} needs a loss. Give targets.")
            return self._update(parameter).explain(name.rpartition(".")[2], index)
        if name not in self.trace.leaves and name not in self.trace.made:
            raise self._unknown(name)
        tensor = self.trace.tensor(name)
        index = self.trace.resolved(name, index)
        value = float(tensor.data[index])
        if name in self.trace.leaves:
            return Explanation(name, index, value, note=PARAMETER if tensor.requires_grad else GIVEN)
        application, _ = self.trace.made[name]
        return explain_term(name, index, value, self.trace.terms(name, index), application, self.trace)

    def _update(self, parameter: str) -> ParameterUpdate:
        parameters = self.model.parameters()
        gradient = self.gradients.by_name.get(parameter, np.zeros_like(parameters[parameter].data))
        return ParameterUpdate(parameter, parameters[parameter], gradient, self.clipping(), self.optimizer)

    def _gradient(self, name: str, index: Sequence[int], first: bool = False) -> Explanation:
        if name not in self.trace.leaves and name not in self.trace.made:
            if self._parameter_of(name):
                raise ExplainError(
                    f"{name} comes after the loss and has no gradient. Ask for {self._parameter_of(name)}."
                )
            raise self._unknown(name)
        index = self.trace.resolved(name, index)
        self.gradients.array(name)  # refuses a tensor without gradient
        difference = self.gradients.central_difference(name, index) if first else None
        return explain_gradient(name, index, self.gradients, difference)

    def _parameter_of(self, name: str) -> str:
        """Return the parameter whose update `name` is part of, or ""."""
        parameter, _, part = name.rpartition(".")
        known = part in PARTS and parameter in self.model.parameters()
        return parameter if known and name not in self.trace.leaves else ""

    def _unknown(self, name: str) -> ExplainError:
        near = get_close_matches(name, self.names(), n=3, cutoff=0.4)
        hint = f"Nearest: {', '.join(near)}." if near else "Use a name such as blocks.0.attn.weights, logits or loss."
        if name == "loss" and not self.has_loss:
            hint = "Give targets, or a prompt of at least two bytes."
        return ExplainError(f"nothing is called {name!r} in this model. {hint}")
