r"""Top-k: keep exactly the k largest logits; the others can never be sampled.

Equation    z'_v = z_v if rank(v) <= k, else -inf; rank 1 is the largest, equal logits rank by smaller id first
Derivative  d_z = d_z' where rank(v) <= k, else 0
Shapes      logits (..., V) -> the same; k >= V keeps all
Raises      ShapeError if k < 1
Source      Fan, Lewis & Dauphin 2018, arXiv:1805.04833
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, function, made, number, total


def ranks(logits):
    """Return each logit's rank in its row, 0 for the largest; a stable sort puts smaller ids first."""
    xp = namespace(logits)
    return xp.argsort(xp.argsort(-logits, axis=-1, stable=True), axis=-1, stable=True)


def forward(logits, *, k):
    """Set all but the k largest to -inf."""
    require(k >= 1, f"top_k: k must be at least 1, not {k}")
    xp = namespace(logits)
    kept = ranks(logits) < k
    return xp.where(kept, logits, -xp.inf), (kept,)


def vjp(saved, d_z, *, k):
    """Only kept logits matter."""
    (kept,) = saved
    xp = namespace(d_z)
    return (xp.where(kept, d_z, xp.zeros_like(d_z)),)


def terms(index, inputs, result, *, k):
    """The logit itself, or -inf."""
    if result[index] == float("-inf"):
        return number(float("-inf"), "dropped")
    return total([element(inputs, 0, index, "z")])


def rule_terms(index, inputs, *, k):
    """The logit if its rank, 1 plus the number of logits before it, is at most k, else -inf."""
    *place, v = index
    row = [element(inputs, 0, (*place, u), "z") for u in range(inputs[0].shape[-1])]

    def is_larger(a, b):
        return function("step", total((a, function("negative", b))))

    equal_too = [total((number(1), function("negative", is_larger(row[v], z)))) for z in row[:v]]
    rank = total((number(1), *equal_too, *(is_larger(z, row[v]) for z in row[v + 1 :])), "rank")
    return made("kept", (row[v], rank, number(k, "k")))


top_k = Equation.of(
    __name__,
    title="Top-k",
    latex=r"z'_v = \begin{cases} z_v & \mathrm{rank}(v) \le k \\ -\infty & \text{otherwise} \end{cases}",
    derivative=r"\partial z_v = \partial z'_v \cdot [\mathrm{rank}(v) \le k]",
    inputs=(Symbol("logits", "z", "(..., V)", "logits"),),
    result=Symbol("z", "z'", "(..., V)", "logits to sample from"),
    seed_names=("generate",),
)
