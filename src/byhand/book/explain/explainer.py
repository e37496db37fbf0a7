"""Explains a number of a real model: the answer in the book's words, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from byhand.book.entries.contract import ENTRIES
from byhand.book.explain.explanation import Explanation
from byhand.book.explain.notes import note_of, note_of_gradient
from byhand.errors import ExplainError
from byhand.model import TinyGPT
from byhand.optim import Optimizer
from byhand.tracing.answers import Answer
from byhand.tracing.elements import Element, Elements, sorted_by
from byhand.tracing.gradients import Gradients
from byhand.tracing.passes import Pass
from byhand.tracing.questions import Questions

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
    optimizer: Optimizer | None = None,
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


class Explainer(Questions):
    """Answers questions about a model's pass in the book's words."""

    def explain(
        self,
        name: str,
        index: Sequence[int],
        grad: bool = False,
        depth: int = 1,
        width: int = 8,
        difference: bool = True,
    ) -> Explanation:
        """Explain one element, its inputs too if depth is above 1; a gradient with its central difference."""
        for setting, count in (("depth", depth), ("width", width)):
            if not isinstance(count, int) or count < 1:
                raise ExplainError(f"{setting} is {count!r}, but must be an integer of at least 1.")
        explanation = self._explained(self.answer(name, index, grad, grad and difference))
        return self._deepen(explanation, depth, width, iter(range(MOST)))

    def _explained(self, answer: Answer) -> Explanation:
        return explained(answer, self.gradients if answer.gradient else self.pass_of(answer.name))

    def _deepen(self, explanation: Explanation, depth: int, width: int, left: Iterator[int]) -> Explanation:
        """Explain its sources too; ExplainError once the MOST explanations are used up."""
        if depth <= 1:
            return explanation
        children = []
        for source in explanation.sources[:width]:
            if source.gradient or self.is_made(source.name):
                if next(left, None) is None:
                    raise ExplainError(
                        f"it was made from more than {MOST} numbers in so many steps. Use less depth or fewer terms."
                    )
                child = self._explained(self.answer(source.name, source.index, source.gradient))
                children.append(self._deepen(child, depth - 1, width, left))
        return replace(explanation, children=tuple(children))


def explained(answer: Answer, of: Pass | Gradients) -> Explanation:
    """Return an answer of a pass, or of its gradients, in the book's words."""
    if isinstance(of, Gradients):
        return Explanation.of(answer, note_of_gradient(answer, of), answer.elements)
    return Explanation.of(answer, note_of(answer), _ordered(answer, of))


def _ordered(answer: Answer, trace: Pass) -> Sequence[Element]:
    """Return the elements that a value was made from, in the order of its equation's entry."""
    made = trace.made.get(answer.name)
    first = ENTRIES[answer.equations[0]].first_sources if made else None
    if made is None or first is None:
        return answer.elements
    stand_first = first(tuple(t.data for t in made[0].inputs), answer.index)
    return Elements(sorted_by(stand_first, answer.outlines, answer.origins), lambda: len(answer.elements))
