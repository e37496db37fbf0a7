r"""Count penalty: a logit falls by f for each time that its token was drawn, and by p once it was drawn at all.

Equation    z'_v = z_v - n_v f - [n_v > 0] p
Derivative  d_z = d_z'
Shapes      logits (..., V), counts (..., V) of integers -> (..., V)
Units       f and p are logits: 0 changes nothing, below 0 rewards repetition
Raises      ShapeError if the counts are not integers of the logits' shape
Source      OpenAI 2021, API reference: frequency_penalty and presence_penalty
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, number, product, total


def forward(logits, counts, *, f, p):
    """Subtract f for each occurrence and p for the first."""
    xp = namespace(logits)
    require(xp.isdtype(counts.dtype, "integral"), f"count_penalty: counts must be integers, not {counts.dtype}")
    require(counts.shape == logits.shape, f"count_penalty: counts are {counts.shape}, but logits {logits.shape}")
    n, occurred = (xp.astype(a, logits.dtype) for a in (counts, counts > 0))
    return logits - n * f - occurred * p, ()


def vjp(saved, d_z, *, f, p):
    """What is subtracted depends on no logit."""
    return d_z, None


def terms(index, inputs, result, *, f, p):
    """The logit, less n times f, less p."""
    z, n = element(inputs, 0, index, "z"), element(inputs, 1, index, "n")
    if not n.value > 0:
        return total([z])
    return total([z, product((number(-f, "-f"), n)), number(-p, "-p")])


count_penalty = Equation.of(
    __name__,
    title="Frequency and presence penalty",
    latex=r"z'_v = z_v - n_v f - [n_v > 0]\, p",
    derivative=r"\partial z_v = \partial z'_v",
    inputs=(
        Symbol("logits", "z", "(..., V)", "logits"),
        Symbol("counts", "n", "(..., V)", "how often each token was drawn so far"),
    ),
    result=Symbol("z", "z'", "(..., V)", "logits to sample from"),
)
