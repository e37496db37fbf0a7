r"""Mix: each query's weighted sum of the values.

Equation    Y[b,h,t,d] = sum over s of P[b,h,t,s] v[b,h,s,d]
Derivative  d_P = d_Y v^T,  d_v = P^T d_Y
Shapes      weights (B, H, T, S), v (B, H, S, D) -> (B, H, T, D)
Raises      ShapeError if batches or numbers of keys or heads differ
Source      Vaswani et al. 2017, arXiv:1706.03762, equation 1
"""

from math import prod

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.rows import over
from byhand.engine.terms import cotangent_sum, element, product, total


def forward(weights, v):
    """One matrix product for each head."""
    require(weights.shape[-1] == v.shape[-2], f"mix: weights {weights.shape} and values {v.shape} differ in keys")
    require(weights.shape[:-2] == v.shape[:-2], f"mix: weights {weights.shape} and values {v.shape} differ in heads")
    return weights @ v, (weights, v)


def vjp(saved, d_y):
    """Two matrix products with the transposes."""
    weights, v = saved
    transpose = namespace(d_y).matrix_transpose
    return d_y @ transpose(v), transpose(weights) @ d_y


def terms(index, inputs, result):
    """A weight times a value for each key."""
    b, h, t, d = index
    return total(
        over(
            inputs[1].shape[-2],
            lambda s: product((element(inputs, 0, (b, h, t, s), "P"), element(inputs, 1, (b, h, s, d), "v"))),
        )
    )


def gradient_terms(saved, d_results, slot, index):
    """Cotangents times values for a weight, times weights for a value."""
    arrays, (b, h, i, j) = (*d_results, *saved), index

    def of_value(t):
        return element(arrays, 0, (b, h, t, j), "∂Y"), element(arrays, 1, (b, h, t, i), "P")

    def of_weight(d):
        return element(arrays, 0, (b, h, i, d), "∂Y"), element(arrays, 2, (b, h, j, d), "v")

    return cotangent_sum(over(saved[0].shape[2], of_value) if slot else over(saved[1].shape[3], of_weight))


def products(weights, v):
    """Two for each weight and column; backward, as many for weights and for values."""
    operations = 2 * prod(weights) * v[-1]
    return operations, 2 * operations


mix = Equation.of(
    __name__,
    title="Weighted sum of values",
    latex=r"Y_{t} = \sum_s P_{t,s} V_s",
    derivative=r"\partial P = \partial Y\, V^{\top}, \quad \partial V = P^{\top} \partial Y",
    inputs=(Symbol("weights", "P", "(B, H, T, S)", "attention weights"), Symbol("v", "V", "(B, H, S, D)", "values")),
    result=Symbol("mixed", "Y", "(B, H, T, D)", "one mixture for each query"),
    seed_names=("nn::self_attention_1h",),
)
