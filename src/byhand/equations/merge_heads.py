r"""Merge heads: concatenate the heads' outputs again.

Equation    y[b,t,h D + d] = x[b,h,t,d]
Derivative  d_x[b,h,t,d] = d_y[b,t,h D + d]
Shapes      x (B, H, T, D) -> y (B, T, C), C = H D
Raises      ShapeError if x does not have four axes
Source      Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import cotangent_sum, element, total


def forward(x):
    """Move positions before heads and join the last two axes."""
    require(x.ndim == 4, f"merge_heads: x must be (B, H, T, D), not {x.shape}")
    b, h, t, d = x.shape
    return namespace(x).permute_dims(x, (0, 2, 1, 3)).reshape((b, t, h * d)), (x,)


def vjp(saved, d_y):
    """Split the columns among the heads again."""
    b, h, t, d = saved[0].shape
    return (namespace(d_y).permute_dims(d_y.reshape((b, t, h, d)), (0, 2, 1, 3)),)


def terms(index, inputs, result):
    """One element, read from its head."""
    b, t, c = index
    h, d = divmod(c, inputs[0].shape[-1])
    return total([element(inputs, 0, (b, h, t, d), "x")])


def gradient_terms(saved, d_results, slot, index):
    """The cotangent of its column."""
    b, h, t, d = index
    return cotangent_sum([element(d_results, 0, (b, t, h * saved[0].shape[-1] + d), "∂y")])


merge_heads = Equation.of(
    __name__,
    title="Merge heads",
    latex=r"Y_{b,t,hD+d} = X_{b,h,t,d}",
    derivative=r"\partial X_{b,h,t,d} = \partial Y_{b,t,hD+d}",
    inputs=(Symbol("x", "X", "(B, H, T, D)", "one output for each head"),),
    result=Symbol("y", "Y", "(B, T, C)", "the concatenated heads"),
    moves=True,
    seed_names=("nn::variants::mha::self_attention_mha",),
)
