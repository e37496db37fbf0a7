r"""Repetition penalty: lower the logits of tokens that the text already has.

Equation    z'_v = z_v if n_v = 0; else z_v / r if z_v > 0, and r z_v if not
Derivative  d_z = d_z' if n_v = 0; else d_z' / r if z_v > 0, and r d_z' if not
Shapes      logits (..., V), counts (..., V) of integers -> (..., V)
Units       r is a factor: 1 changes nothing, below 1 rewards repetition
Raises      ShapeError if r is not positive or the counts are not integers of the logits' shape
Source      Keskar et al. 2019, arXiv:1909.05858
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, number, product, ratio, total


def forward(logits, counts, *, r):
    """Scale logits of tokens that have occurred. The paper divides all, which would raise a negative logit."""
    require(r > 0, f"repetition_penalty: r must be positive, not {r}")
    xp = namespace(logits)
    require(xp.isdtype(counts.dtype, "integral"), f"repetition_penalty: counts must be integers, not {counts.dtype}")
    require(counts.shape == logits.shape, f"repetition_penalty: counts are {counts.shape}, but logits {logits.shape}")
    occurred, positive = counts > 0, logits > 0
    return xp.where(occurred, xp.where(positive, logits / r, logits * r), logits), (occurred, positive)


def vjp(saved, d_z, *, r):
    """Scale by the same factors."""
    occurred, positive = saved
    xp = namespace(d_z)
    return xp.where(occurred, xp.where(positive, d_z / r, d_z * r), d_z), None


def terms(index, inputs, result, *, r):
    """The logit itself, or divided or multiplied by r."""
    z, factor = element(inputs, 0, index, "z"), number(r, "r")
    if not inputs[1][index] > 0:
        return total([z])
    return ratio(z, factor) if z.value > 0 else product((z, factor))


repetition_penalty = Equation.of(
    __name__,
    title="Repetition penalty",
    latex=r"z'_v = \begin{cases} z_v & n_v = 0 \\ z_v / r & n_v > 0,\; z_v > 0 \\ "
    r"r z_v & n_v > 0,\; z_v \le 0 \end{cases}",
    derivative=r"\partial z_v = \partial z'_v \cdot \begin{cases} 1 & n_v = 0 \\ 1 / r & n_v > 0,\; z_v > 0 \\ "
    r"r & n_v > 0,\; z_v \le 0 \end{cases}",
    inputs=(
        Symbol("logits", "z", "(..., V)", "logits"),
        Symbol("counts", "n", "(..., V)", "how often each token occurs in the text so far"),
    ),
    result=Symbol("z", "z'", "(..., V)", "logits to sample from"),
)
