r"""Min-p: keep the tokens with at least a fraction p of the likeliest one's probability.

Equation    z'_v = z_v if z_v >= max z + ln p, else -inf
Derivative  d_z = d_z' where kept, else 0
Shapes      logits (..., V) -> the same; the largest is always kept, p = 0 keeps all
Units       p is the ratio of a probability to the largest
Raises      ShapeError unless 0 <= p <= 1
Source      Nguyen et al. 2024, arXiv:2407.01082
"""

import math

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, number, total


def log_ratio(p):
    """Return ln p, -inf for 0: the distance below the largest logit within which logits are kept."""
    return math.log(p) if p else -math.inf


def forward(logits, *, p):
    """Compare logits: the softmax's denominator cancels, so it is not computed."""
    require(0 <= p <= 1, f"min_p: p must be in [0, 1], not {p}")
    xp = namespace(logits)
    kept = logits >= xp.max(logits, axis=-1, keepdims=True) + log_ratio(p)
    return xp.where(kept, logits, -xp.inf), (kept,)


def vjp(saved, d_z, *, p):
    """Only kept logits matter."""
    (kept,) = saved
    xp = namespace(d_z)
    return (xp.where(kept, d_z, xp.zeros_like(d_z)),)


def terms(index, inputs, result, *, p):
    """The logit itself, or -inf."""
    if result[index] == float("-inf"):
        return number(float("-inf"), "dropped")
    return total([element(inputs, 0, index, "z")])


min_p = Equation.of(
    __name__,
    title="Min-p",
    latex=r"z'_v = \begin{cases} z_v & z_v \ge \max_u z_u + \ln p \\ -\infty & \text{otherwise} \end{cases}",
    derivative=r"\partial z_v = \partial z'_v \cdot [v \text{ is kept}]",
    inputs=(Symbol("logits", "z", "(..., V)", "logits"),),
    result=Symbol("z", "z'", "(..., V)", "logits to sample from"),
)
