r"""Causal softmax: each query weighs only the keys at its own position and before.

Equation    P[...,t,s] = exp(S[...,t,s] - m_t) / sum over visible s' of exp(S[...,t,s'] - m_t),
            s visible if s <= t + (S - T); all other weights are exactly 0
Derivative  d_S = P * (d_P - sum over s of d_P P), 0 where masked
Shapes      scores (..., T, S) -> the same; the T queries are the last of the S positions
Units       none; a query that sees no key (S < T) gives zeros
Raises      ShapeError if the scores have fewer than two axes
Source      Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, number
from byhand.equations.softmax import flops as softmax_flops
from byhand.equations.softmax import softmax, softmax_terms


def forward(scores):
    """Mask with -inf, then take the plain softmax, for which an all-masked row is zero."""
    require(scores.ndim >= 2, f"causal_softmax: scores must be (..., T, S), not {scores.shape}")
    xp = namespace(scores)
    t, s = scores.shape[-2:]
    visible = xp.arange(s)[None, :] <= xp.arange(s - t, s)[:, None]
    return softmax.forward(xp.where(visible, scores, -xp.inf))


def vjp(saved, d_p):
    """The plain softmax's: a masked weight is 0, and so is its gradient."""
    return softmax.vjp(saved, d_p)


def terms(index, inputs, result):
    """One exponential over the sum of the visible ones."""
    *place, t, s = index
    n_queries, n_keys = inputs[0].shape[-2:]
    visible = t + n_keys - n_queries + 1
    if s >= visible:
        return number(0, "masked")
    return softmax_terms([element(inputs, 0, (*place, t, j), "S") for j in range(visible)], s)


def flops(scores):
    """A softmax over the visible keys alone."""
    queries, keys = scores[-2:]
    visible = sum(max(0, keys - queries + t + 1) for t in range(queries))
    return softmax_flops((*scores[:-2], visible))


causal_softmax = Equation.of(
    __name__,
    title="Causal softmax",
    latex=r"P_{t,:} = \mathrm{softmax}(S_{t,:} + M_{t,:}), \quad "
    r"M_{t,s} = \begin{cases} 0 & s \le t + (S - T) \\ -\infty & s > t + (S - T) \end{cases}",
    derivative=r"\partial S = P \odot \left( \partial P - \sum_s \partial P_{t,s}\, P_{t,s} \right)",
    inputs=(Symbol("scores", "S", "(..., T, S)", "scores of T queries for S keys"),),
    result=Symbol("weights", "P", "(..., T, S)", "attention weights; each row sums to 1"),
    gradient_terms=softmax.gradient_terms,
    seed_names=("nn::self_attention_1h", "nn::softmax_lastdim"),
)
