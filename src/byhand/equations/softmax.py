r"""Softmax over the last axis: positive weights that sum to one.

Equation    p_i = exp(x_i - m) / sum over j of exp(x_j - m),   m = max x   (m only prevents overflow)
Derivative  d_x = p * (d_p - sum over j of d_p_j p_j)
Shapes      any (..., N) -> the same
Units       none; a row of only -inf gives zeros
Raises      ShapeError if x has no axis
Source      Bridle 1990, Probabilistic Interpretation of Feedforward Classification Network Outputs
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import TRANSCENDENTAL, Equation, Symbol, per_element
from byhand.engine.rows import mapped, over
from byhand.engine.terms import element, function, largest, number, of_row, product, ratio, settled, total


def forward(x):
    """Shift by the maximum, exponentiate, normalise."""
    require(x.ndim >= 1, "softmax: x needs at least one axis")
    xp = namespace(x)
    m = xp.max(x, axis=-1, keepdims=True)
    e = xp.exp(x - xp.where(m == -xp.inf, xp.zeros_like(m), m))
    z = xp.sum(e, axis=-1, keepdims=True)
    p = e / xp.where(z == 0, xp.ones_like(z), z)
    return p, (p,)


def vjp(saved, d_p):
    """Project out the part of the cotangent that would change the sum of the weights."""
    (p,) = saved
    dp = d_p * p
    return (dp - p * namespace(d_p).sum(dp, axis=-1, keepdims=True),)


def terms(index, inputs, result):
    """One exponential over the sum of all exponentials."""
    *place, i = index
    row = over(inputs[0].shape[-1], lambda j: element(inputs, 0, (*place, j), "x"))
    return softmax_terms(row, i)


def softmax_terms(row, i):
    """Return exp(row[i] - m) over the sum of exponentials; shared with the causal form."""
    m = largest(row, "m")
    if m.value == float("-inf"):
        return number(0)
    exponentials = mapped(lambda x: function("exp", total((x, function("negative", m)))), row)
    return ratio(exponentials[i], total(exponentials))


# Maximum, difference, exp, sum and ratio; backward, product, sum, difference and product.
flops = per_element(TRANSCENDENTAL + 4, 4)


def gradient_terms(saved, d_results, slot, index):
    """p (d - sum of d p)."""
    arrays, (p,), (*place, i) = (*d_results, *saved), saved, index
    seen = {i, *(j for j in range(p.shape[-1]) if float(p[(*place, j)]))}
    d, row = ({j: element(arrays, k, (*place, j), name) for j in sorted(seen)} for k, name in enumerate(("∂p", "p")))
    products = (product((d[j], row[j])) for j in row if row[j].value)
    mean = settled(of_row(total(products, "Σ ∂p·p")))
    return product((row[i], total((d[i], function("negative", mean)))))


softmax = Equation.of(
    __name__,
    title="Softmax",
    latex=r"p_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}}, \quad m = \max_j x_j",
    derivative=r"\partial x = p \odot \left( \partial p - \sum_j \partial p_j\, p_j \right)",
    inputs=(Symbol("x", "x", "(..., N)", "scores or logits"),),
    result=Symbol("p", "p", "(..., N)", "weights, each row summing to 1"),
    seed_names=("nn::softmax_lastdim",),
)
