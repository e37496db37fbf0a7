"""Drawing the next token: the trace of its probabilities, and the draw, answered like any other number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.engine import Tensor, scope
from byhand.engine.rows import joined, over
from byhand.engine.terms import element, made, number
from byhand.errors import UNSOUND_LOGITS, NonFiniteError
from byhand.runtimes.sampling import Sampling, distribution, penalised
from byhand.tracing.answers import Answer
from byhand.tracing.elements import origin
from byhand.tracing.trace import Trace

NEXT = "next"  # scope of the names: next.penalised, .counted, .biased, .scaled, .top_k, .top_p, .min_p, .p, .token
TOKEN = f"{NEXT}.token"


def sampling_trace(logits: Any, sampling: Sampling, tokens: Sequence[int] = (), drawn: Sequence[int] = ()) -> Trace:
    """Return the trace from the logits (V,) after these tokens to the probabilities that the next is drawn with.

    With temperature 0 no probability is computed: the trace ends with the logits, penalised or not.

    tokens, drawn  the text so far, and what of it was drawn (`penalised`)
    """
    z = Tensor(logits, name=f"{NEXT}.logits")
    if sampling.greedy and not (sampling.penalises or sampling.counts or sampling.logit_bias):
        return Trace(z, (), {}, {z.name: z}, {id(z): z.name})

    def shaped() -> Tensor:
        kept = penalised(z, sampling, tokens, drawn)
        return kept if sampling.greedy else distribution(kept, sampling)

    with scope(NEXT):
        return Trace.of(shaped)


def draw_answer(trace: Trace, sampling: Sampling) -> Answer:
    """Return the token drawn from the result of a `sampling_trace`, by a generator with the sampling's seed.

    Raises NonFiniteError if a logit is NaN or infinite.
    """
    if not np.isfinite(np.max(trace.tensor(f"{NEXT}.logits").data)):  # NaN wins every maximum
        raise NonFiniteError(UNSOUND_LOGITS)
    return drawn_with(None if sampling.greedy else float(np.random.default_rng(sampling.seed).random()), trace)


def drawn_with(u: float | None, trace: Trace) -> Answer:
    """Return the token that the uniform number u draws from a trace's result (V,); without u the likeliest."""
    numbers = (trace.result.data,)
    leaves = over(len(numbers[0]), lambda v: element(numbers, 0, (v,), "z" if u is None else "p"))
    term = made("argmax", leaves) if u is None else made("draw", joined((number(u, "u"),), leaves))
    facts: dict[str, Any] = {"code": "draw"}
    if u is not None:  # the running sums around u, in float64 as in `draw`
        before, with_it = np.add.accumulate([0.0, *numbers[0].tolist()])[int(term.value) :][:2].tolist()
        facts |= {"u": u, "sum_before": before, "sum": with_it}
    origins = (origin(trace.name(trace.result)),)
    return Answer(name=TOKEN, index=(), value=term.value, term=term, origins=origins, arrays=numbers, facts=facts)
