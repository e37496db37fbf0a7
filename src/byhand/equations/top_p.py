r"""Top-p (nucleus): keep the fewest tokens, largest first, whose probabilities reach p.

Equation    z'_v = z_v if the total softmax(z) of the tokens ranking before v is < p, else -inf; ranks as in top_k
Derivative  d_z = d_z' where kept, else 0
Shapes      logits (..., V) -> the same; the largest is always kept, p = 1 keeps all with nonzero probability
Units       p is a probability
Raises      ShapeError unless 0 < p <= 1
Source      Holtzman et al. 2020, arXiv:1904.09751
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, number, total
from byhand.equations.softmax import softmax
from byhand.equations.top_k import ranks


def forward(logits, *, p):
    """Sum the probabilities in order of rank, and cut where the sum before a token reaches p."""
    require(0 < p <= 1, f"top_p: p must be in (0, 1], not {p}")
    xp = namespace(logits)
    rank = ranks(logits)
    order = xp.argsort(rank, axis=-1, stable=True)
    sorted_p = xp.take_along_axis(softmax.forward(logits)[0], order, axis=-1)
    before = xp.cumulative_sum(sorted_p, axis=-1) - sorted_p
    kept = xp.take_along_axis((before < p) | (xp.arange(logits.shape[-1]) == 0), rank, axis=-1)
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


top_p = Equation.of(
    __name__,
    title="Top-p (nucleus)",
    latex=r"z'_v = \begin{cases} z_v & \sum_{\mathrm{rank}(u) < \mathrm{rank}(v)} \mathrm{softmax}(z)_u < p \\ "
    r"-\infty & \text{otherwise} \end{cases}",
    derivative=r"\partial z_v = \partial z'_v \cdot [v \text{ is kept}]",
    inputs=(Symbol("logits", "z", "(..., V)", "logits"),),
    result=Symbol("z", "z'", "(..., V)", "logits to sample from"),
)
