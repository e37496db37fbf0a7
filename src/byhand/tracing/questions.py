"""Questions about a model's pass: any value, gradient or update, answered in one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from byhand.errors import ExplainError
from byhand.model import TinyGPT
from byhand.optim import AdamW, Optimizer
from byhand.runtimes.sampling import Sampling
from byhand.tracing.answers import Answer
from byhand.tracing.gradients import Gradients
from byhand.tracing.passes import resolved
from byhand.tracing.sampling import NEXT, TOKEN, draw_answer, sampling_trace
from byhand.tracing.trace import Trace
from byhand.tracing.updates import PARTS, Clipping, ParameterUpdate, parts_of


class Questions:
    """One forward pass of a model. Gradients and updates are computed on first use.

    tokens, targets  (B, T) token ids; without targets there is no loss, gradient or update
    optimizer        its settings and moments, for updates; a fresh AdamW by default
    max_grad_norm    clip gradients to this global norm before the update, as in training; 0: no clipping
    sampling         for the token after the first row: `next.p`, `next.token` and the steps before
    """

    def __init__(
        self,
        model: TinyGPT,
        tokens: Any,
        targets: Any = None,
        optimizer: Optimizer | None = None,
        max_grad_norm: float = 0.0,
        sampling: Sampling | None = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer or AdamW()
        self.max_grad_norm = max_grad_norm
        self.sampling = sampling or Sampling()
        self.first_row: list[int] = np.asarray(tokens)[0].tolist()
        self.has_loss = targets is not None
        self.trace = Trace.of(
            (lambda: model.loss(tokens, targets)) if self.has_loss else (lambda: model.forward_logits(tokens))
        )

    def names(self) -> list[str]:
        """Return all valid names, in the order of computation; updates last."""
        parameters, optimizer = self.model.parameters(), self.optimizer
        updates = [f"{p}.{part}" for p, tensor in parameters.items() for part in parts_of(optimizer.rule(p, tensor))]
        drawn = [*self.next.leaves, *self.next.made, TOKEN]
        return [*parameters, *self.trace.made, *drawn, *(updates if self.has_loss else [])]

    def answer(self, name: str, index: Sequence[int], gradient: bool = False, difference: bool = False) -> Answer:
        """Return one number and its arithmetic; `difference` adds a gradient's central difference.

        Raises ExplainError if there is no such element, or it has no gradient.
        """
        if gradient:
            return self._gradient(name, index, difference)
        if parameter := self.parameter_of(name):
            if not self.has_loss:
                raise ExplainError(f"{name} needs a loss. Give targets.")
            return self._update(parameter).answer(name.rpartition(".")[2], index)
        if name == TOKEN:
            resolved(name, index, ())
            return draw_answer(self.next, self.sampling)
        if not name.startswith(f"{NEXT}."):
            self._require(name)
        return self.pass_of(name).answer(name, index)

    def array(self, name: str, gradient: bool = False) -> np.ndarray:
        """Return the whole array that contains an element."""
        if gradient:
            return np.asarray(self.gradients.by_name[name])
        if parameter := self.parameter_of(name):
            return self._update(parameter).array(name.rpartition(".")[2])
        if name == TOKEN:
            return np.asarray(draw_answer(self.next, self.sampling).value)
        return np.asarray(self.pass_of(name).tensor(name).data)

    def pass_of(self, name: str) -> Trace:
        """Return the pass that may have a tensor: the model's, or the next token's draw."""
        return self.next if name.startswith(f"{NEXT}.") else self.trace

    @cached_property
    def next(self) -> Trace:
        """The pass from the last position's logits to the next token's probabilities."""
        return sampling_trace(self.trace.tensor("logits").data[0, -1], self.sampling, self.first_row)

    @cached_property
    def gradients(self) -> Gradients:
        """The backward pass from the loss."""
        if not self.has_loss:
            raise ExplainError("a gradient needs a loss. Give targets.")
        return self.trace.backward()

    @cached_property
    def clipping(self) -> Clipping:
        """The clipping of the gradients before the update."""
        trained = (name for name, p in self.model.parameters().items() if p.requires_grad)
        found = (self.gradients.by_name.get(name) for name in trained)
        return Clipping.of((d for d in found if d is not None), self.max_grad_norm)

    def is_made(self, name: str) -> bool:
        """Return whether an equation made the tensor, or it belongs to an update."""
        return name in self.pass_of(name).made or bool(self.parameter_of(name))

    def parameter_of(self, name: str) -> str:
        """Return the parameter to whose update `name` belongs, or ""."""
        parameter, _, part = name.rpartition(".")
        known = part in PARTS and parameter in self.model.parameters()
        return parameter if known and name not in self.trace.leaves else ""

    def _update(self, parameter: str) -> ParameterUpdate:
        tensor = self.model.parameters()[parameter]
        gradient = self.gradients.by_name.get(parameter, np.zeros_like(tensor.data))
        return ParameterUpdate(parameter, tensor, gradient, self.clipping, self.optimizer)

    def _gradient(self, name: str, index: Sequence[int], difference: bool) -> Answer:
        if name not in self.trace.leaves and (parameter := self.parameter_of(name)):
            raise ExplainError(f"{name} comes after the loss and has no gradient. Ask for {parameter}.")
        if name.startswith(f"{NEXT}."):
            raise ExplainError(f"{name} is not part of the loss and has no gradient. Ask for logits.")
        self._require(name)
        place = self.trace.resolved(name, index)
        answer = self.gradients.answer(name, place)
        return replace(answer, difference=self.gradients.central_difference(name, place)) if difference else answer

    def _require(self, name: str) -> None:
        """Raise ExplainError unless the pass has a tensor of this name."""
        if name in self.trace.leaves or name in self.trace.made:
            return
        near = get_close_matches(name, self.names(), n=3, cutoff=0.4)
        hint = f"Nearest: {', '.join(near)}." if near else "Use a name such as blocks.0.attn.weights, logits or loss."
        if name == "loss" and not self.has_loss:
            hint = "Give targets, or a prompt of at least two bytes."
        raise ExplainError(f"nothing is called {name!r} in this model. {hint}")
