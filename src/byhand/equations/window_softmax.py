r"""Sliding-window softmax: each query weighs only the last W keys up to its own position.

Equation    P[...,t,s] = exp(S[...,t,s] - m_t) / sum over visible s' of exp(S[...,t,s'] - m_t),
            s visible if n - W < s <= n, n = t + (S - T); all other weights are exactly 0
Derivative  d_S = P * (d_P - sum over s of d_P P), 0 where masked
Shapes      scores (..., T, S) -> the same; the T queries are the last of the S positions
Units       none; with W >= S it is the causal softmax
Raises      ShapeError if the scores have fewer than two axes
Source      Beltagy et al. 2020, arXiv:2004.05150, section 3.1
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, number
from byhand.equations.softmax import flops as softmax_flops
from byhand.equations.softmax import gradient_terms as softmax_gradient_terms
from byhand.equations.softmax import softmax, softmax_terms


def forward(scores, *, window):
    """Mask with -inf on both sides of the window, then take the plain softmax."""
    require(scores.ndim >= 2, f"window_softmax: scores must be (..., T, S), not {scores.shape}")
    xp = namespace(scores)
    t, s = scores.shape[-2:]
    keys, newest = xp.arange(s)[None, :], xp.arange(s - t, s)[:, None]
    return softmax.forward(xp.where((keys <= newest) & (keys > newest - window), scores, -xp.inf))


def vjp(saved, d_p, *, window):
    """The plain softmax's: a masked weight is 0, and so is its gradient."""
    return softmax.vjp(saved, d_p)


def seen(t, shape, window):
    """Return the keys that query t sees: the first, and one past the last."""
    end = max(0, t + shape[-1] - shape[-2] + 1)
    return max(0, end - window), end


def terms(index, inputs, result, *, window):
    """One exponential over the sum of the visible ones."""
    *place, t, s = index
    first, end = seen(t, inputs[0].shape, window)
    if not first <= s < end:
        return number(0, "masked")
    return softmax_terms([element(inputs, 0, (*place, t, j), "S") for j in range(first, end)], s - first)


def flops(scores, *, window):
    """A softmax over the visible keys alone."""
    spans = (seen(t, scores, window) for t in range(scores[-2]))
    return softmax_flops((*scores[:-2], sum(end - first for first, end in spans)))


def gradient_terms(saved, d_results, slot, index, *, window):
    """The plain softmax's."""
    return softmax_gradient_terms(saved, d_results, slot, index)


window_softmax = Equation.of(
    __name__,
    title="Sliding-window softmax",
    latex=r"P_{t,:} = \mathrm{softmax}(S_{t,:} + M_{t,:}), \quad "
    r"M_{t,s} = \begin{cases} 0 & n_t - W < s \le n_t \\ -\infty & \text{otherwise} \end{cases}, "
    r"\quad n_t = t + (S - T)",
    derivative=r"\partial S = P \odot \left( \partial P - \sum_s \partial P_{t,s}\, P_{t,s} \right)",
    inputs=(Symbol("scores", "S", "(..., T, S)", "scores of T queries for S keys"),),
    result=Symbol("weights", "P", "(..., T, S)", "attention weights; each row sums to 1"),
)
