r"""Sliding-window softmax: each query weighs only the last W keys up to its own position.

Equation    P[...,t,s] = exp(S[...,t,s] - m_t) / sum over visible s' of exp(S[...,t,s'] - m_t),
            s visible if n - W < s <= n, n = t + (S - T); all other weights are exactly 0
Derivative  d_S = P * (d_P - sum over s of d_P P), 0 where masked
Shapes      scores (..., T, S), start (B,) as in `causal_softmax` -> (..., T, S); without start the T queries are the
            last of the S positions
Units       none; with W >= S it is the causal softmax
Raises      ShapeError if the scores have fewer than two axes
Source      Beltagy et al. 2020, arXiv:2004.05150, section 3.1
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.equations.causal_softmax import BEFORE, causal_softmax, visible
from byhand.equations.causal_softmax import terms as causal_terms
from byhand.equations.softmax import flops as softmax_flops
from byhand.equations.softmax import gradient_terms as softmax_gradient_terms
from byhand.equations.softmax import softmax


def forward(scores, start=None, *, window):
    """Mask with -inf on both sides of the window, then take the plain softmax."""
    require(scores.ndim >= 2, f"window_softmax: scores must be (..., T, S), not {scores.shape}")
    xp = namespace(scores)
    p, _ = softmax.forward(xp.where(visible(scores, start, window), scores, -xp.inf))
    return p, (p,) if start is None else (p, start)


def vjp(saved, d_p, *, window):
    """The plain softmax's: a masked weight is 0, and so is its gradient."""
    return causal_softmax.vjp(saved, d_p)


def terms(index, inputs, result, *, window):
    """One exponential over the sum of those of visible keys."""
    return causal_terms(index, inputs, result, window)


def flops(scores, start=None, *, window):
    """A softmax over the visible keys."""
    newest = range(scores[-1] - scores[-2], scores[-1])
    return softmax_flops((*scores[:-2], sum(max(0, min(n + 1, window)) for n in newest)))


def gradient_terms(saved, d_results, slot, index, *, window):
    """The plain softmax's."""
    return softmax_gradient_terms(saved[:1], d_results, slot, index)


window_softmax = Equation.of(
    __name__,
    title="Sliding-window softmax",
    latex=r"P_{t,:} = \mathrm{softmax}(S_{t,:} + M_{t,:}), \quad "
    r"M_{t,s} = \begin{cases} 0 & n_t - W < s \le n_t \\ -\infty & \text{otherwise} \end{cases}, "
    r"\quad n_t = t + (S - T)",
    derivative=r"\partial S = P \odot \left( \partial P - \sum_s \partial P_{t,s}\, P_{t,s} \right)",
    inputs=(Symbol("scores", "S", "(..., T, S)", "scores of T queries for S keys"), BEFORE),
    result=Symbol("weights", "P", "(..., T, S)", "attention weights; each row sums to 1"),
)
