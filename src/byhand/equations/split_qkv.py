r"""Split the packed projection into queries, keys and values, a slice for each head.

Equation    q[b,h,t,d] = x[b,t, h D + d],  k[b,h,t,d] = x[b,t, C + h D + d],  v[b,h,t,d] = x[b,t, 2 C + h D + d]
Derivative  d_x gathers d_q, d_k and d_v back into their columns
Shapes      x (B, T, 3C) -> q, k, v each (B, H, T, D), C = H D
Raises      ShapeError if 3C is not a multiple of 3H
Source      Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, total


def forward(x, *, n_heads):
    """Name the axes (B, T, 3, H, D) and bring heads before positions; no number is copied."""
    require(x.ndim == 3, f"split_qkv: x must be (B, T, 3C), not {x.shape}")
    b, t, width = x.shape
    require(width % (3 * n_heads) == 0, f"split_qkv: width {width} does not split into 3 x {n_heads} heads")
    parts = namespace(x).permute_dims(x.reshape((b, t, 3, n_heads, width // 3 // n_heads)), (2, 0, 3, 1, 4))
    return (parts[0], parts[1], parts[2]), ()


def vjp(saved, d_qkv, *, n_heads):
    """Put the three cotangents side by side again."""
    xp = namespace(d_qkv[0])
    b, _, t, d = d_qkv[0].shape
    packed = xp.stack([xp.permute_dims(part, (0, 2, 1, 3)) for part in d_qkv], axis=2)
    return (packed.reshape((b, t, 3 * n_heads * d)),)


def terms(index, inputs, result, *, n_heads, which=0):
    """One number of the queries (which = 0), keys (1) or values (2), read from its column."""
    b, h, t, d = index
    width = inputs[0].shape[-1] // 3
    return total([element(inputs, 0, (b, t, which * width + h * (width // n_heads) + d), "x")])


split_qkv = Equation.of(
    __name__,
    title="Queries, keys and values, split into heads",
    latex=r"[Q, K, V] = X, \quad Q_{b,h,t,d} = X_{b,t,hD+d}, \quad K_{b,h,t,d} = X_{b,t,C+hD+d}, "
    r"\quad V_{b,h,t,d} = X_{b,t,2C+hD+d}",
    derivative=r"\partial X = [\partial Q, \partial K, \partial V]",
    inputs=(Symbol("x", "X", "(B, T, 3C)", "packed projection H W_qkv + b_qkv"),),
    result=tuple(
        Symbol(letter.lower(), letter, "(B, H, T, D)", "queries, keys, values of each head") for letter in "QKV"
    ),
    moves=True,
    seed_names=("nn::slice_lastdim_copy",),
)
