r"""Split the packed projection into queries, keys and values, a slice for each head.

Equation    q[b,h,t,d] = x[b,t, h D + d],  k[b,h,t,d] = x[b,t, (H + h) D + d],  v[b,h,t,d] = x[b,t, (H + K + h) D + d]
Derivative  d_x gathers d_q, d_k and d_v back into their columns
Shapes      x (B, T, (H + 2K) D) -> q (B, H, T, D), k and v (B, K, T, D); K = H unless queries are grouped
Raises      ShapeError if the columns do not split into H + 2K heads
Source      Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2
"""

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import cotangent_sum, element, total


def forward(x, *, n_heads, n_kv_heads=None):
    """Reshape to (B, T, heads, D) and move heads before positions, without copies."""
    require(x.ndim == 3, f"split_qkv: x must be (B, T, columns), not {x.shape}")
    b, t, width = x.shape
    k = n_heads if n_kv_heads is None else n_kv_heads
    parts = f"3 x {n_heads}" if k == n_heads else f"{n_heads} + 2 x {k}"
    require(width % (n_heads + 2 * k) == 0, f"split_qkv: width {width} does not split into {parts} heads")
    heads = x.reshape((b, t, n_heads + 2 * k, width // (n_heads + 2 * k)))
    heads = namespace(x).permute_dims(heads, (0, 2, 1, 3))
    return (heads[:, :n_heads], heads[:, n_heads : n_heads + k], heads[:, n_heads + k :]), ()


def vjp(saved, d_qkv, *, n_heads, n_kv_heads=None):
    """Concatenate the three cotangents."""
    xp = namespace(d_qkv[0])
    heads = xp.permute_dims(xp.concat(list(d_qkv), axis=1), (0, 2, 1, 3))
    return (heads.reshape((*heads.shape[:2], heads.shape[2] * heads.shape[3])),)


def terms(index, inputs, result, *, n_heads, n_kv_heads=None, which=0):
    """One element of the queries (which = 0), keys (1) or values (2), read from its column."""
    b, h, t, d = index
    k = n_heads if n_kv_heads is None else n_kv_heads
    width = inputs[0].shape[-1] // (n_heads + 2 * k)
    return total([element(inputs, 0, (b, t, ((0, n_heads, n_heads + k)[which] + h) * width + d), "x")])


def gradient_terms(saved, d_results, slot, index, *, n_heads, n_kv_heads=None):
    """The cotangent of the query, key or value that was read from the column."""
    b, t, column = index
    head, d = divmod(column, d_results[0].shape[-1])
    for which, heads in enumerate(d_results):
        if head < heads.shape[1]:
            return cotangent_sum([element(d_results, which, (b, head, t, d), f"∂{'QKV'[which]}")])
        head -= heads.shape[1]
    return None


split_qkv = Equation.of(
    __name__,
    title="Queries, keys and values, split into heads",
    latex=r"[Q, K, V] = X, \quad Q_{b,h,t,d} = X_{b,t,hD+d}, \quad K_{b,h,t,d} = X_{b,t,(H+h)D+d}, "
    r"\quad V_{b,h,t,d} = X_{b,t,(H+K+h)D+d}",
    derivative=r"\partial X = [\partial Q, \partial K, \partial V]",
    inputs=(Symbol("x", "X", "(B, T, (H + 2K) D)", "packed projection H W_qkv + b_qkv; K = H if not given"),),
    result=(
        Symbol("q", "Q", "(B, H, T, D)", "queries"),
        Symbol("k", "K", "(B, K, T, D)", "keys"),
        Symbol("v", "V", "(B, K, T, D)", "values of each head"),
    ),
    moves=True,
    seed_names=("nn::slice_lastdim_copy",),
)
