r"""Causal softmax: each query weighs only the keys up to its own position.

Equation    P[...,t,s] = exp(S[...,t,s] - m_t) / sum over visible s' of exp(S[...,t,s'] - m_t),
            s visible if s <= t + (S - T); all other weights are exactly 0
Derivative  d_S = P * (d_P - sum over s of d_P P), 0 where masked
Shapes      scores (..., T, S) -> the same; the T queries are the last of the S positions. With start (B,), of
            integers, query t has position n = start_b + t, and place s of the keys holds position
            n - (n - s) mod S, as in `extend_cache`; positions from 0 on are visible
Units       none; a query that sees no key (S < T) gives zeros
Raises      ShapeError if the scores have fewer than two axes
Source      Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3
"""

from byhand.engine.arrays import namespace, positions, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, number
from byhand.equations.softmax import flops as softmax_flops
from byhand.equations.softmax import gradient_terms as softmax_gradient_terms
from byhand.equations.softmax import softmax, softmax_terms

BEFORE = Symbol(
    "start", r"\mathrm{start}", "(B,)", "positions before the first query, for each stream of a cache; optional"
)


def forward(scores, start=None):
    """Mask with -inf, then take the plain softmax, whose result for a fully masked row is zero."""
    require(scores.ndim >= 2, f"causal_softmax: scores must be (..., T, S), not {scores.shape}")
    xp = namespace(scores)
    p, _ = softmax.forward(xp.where(visible(scores, start), scores, -xp.inf))
    return p, (p,) if start is None else (p, start)


def visible(scores, start=None, window=None):
    """Return booleans that broadcast to scores: the keys that a query sees, at most the last `window` of them."""
    xp, (t, s) = namespace(scores), scores.shape[-2:]
    keys = xp.arange(s)
    newest = xp.arange(s - t, s)[:, None] if start is None else positions(start, scores)[..., None]
    age = newest - keys if start is None else (newest - keys) % s
    seen = (age >= 0) & (age <= newest)
    return seen if window is None else seen & (age < window)


def seen(inputs, index, window=None):
    """Return the places of the keys visible to the query at an index, in order."""
    *place, t, _ = index
    row = visible(inputs[0], *inputs[1:], window=window)
    at = (*(i if n > 1 else 0 for i, n in zip(place, row.shape[:-2], strict=True)), t) if row.ndim > 2 else (t,)
    return [s for s, sees in enumerate(row[at]) if sees]


def vjp(saved, d_p):
    """The plain softmax's: a masked weight is 0, and so is its gradient."""
    (d_s,) = softmax.vjp(saved[:1], d_p)
    return (d_s,) if len(saved) == 1 else (d_s, None)


def terms(index, inputs, result, window=None):
    """One exponential over the sum of those of visible keys."""
    *place, t, s = index
    keys = seen(inputs, index, window)
    if s not in keys:
        return number(0, "masked")
    return softmax_terms([element(inputs, 0, (*place, t, j), "S") for j in keys], keys.index(s))


def gradient_terms(saved, d_results, slot, index):
    """The plain softmax's."""
    return softmax_gradient_terms(saved[:1], d_results, slot, index)


def flops(scores, start=None):
    """A softmax over the visible keys."""
    queries, keys = scores[-2:]
    visible = sum(max(0, keys - queries + t + 1) for t in range(queries))
    return softmax_flops((*scores[:-2], visible))


causal_softmax = Equation.of(
    __name__,
    title="Causal softmax",
    latex=r"P_{t,:} = \mathrm{softmax}(S_{t,:} + M_{t,:}), \quad "
    r"M_{t,s} = \begin{cases} 0 & s \le t + (S - T) \\ -\infty & s > t + (S - T) \end{cases}",
    derivative=r"\partial S = P \odot \left( \partial P - \sum_s \partial P_{t,s}\, P_{t,s} \right)",
    inputs=(Symbol("scores", "S", "(..., T, S)", "scores of T queries for S keys"), BEFORE),
    result=Symbol("weights", "P", "(..., T, S)", "attention weights; each row sums to 1"),
    seed_names=("nn::self_attention_1h", "nn::softmax_lastdim"),
)
