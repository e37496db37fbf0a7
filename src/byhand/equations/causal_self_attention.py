r"""Causal self-attention with any number of heads: a composition, and the truth that fused kernels are held against.

Equation    [Q, K, V] = H W_qkv + b_qkv,  P = causal_softmax(Q K^T / sqrt(D)),  A = merge(P V) W_proj + b_proj
Derivative  the composition's: each part's vjp in reverse order
Shapes      h (B, T, C), w_qkv (C, 3C), b_qkv (3C,), w_proj (C, C), b_proj (C,) -> (B, T, C)
Raises      ShapeError if the heads do not divide the width
Source      Vaswani et al. 2017, arXiv:1706.03762, section 3.2
"""

from byhand.engine.equation import Composite, Symbol
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.linear import linear
from byhand.equations.merge_heads import merge_heads
from byhand.equations.mix import mix
from byhand.equations.softmax import softmax
from byhand.equations.split_qkv import split_qkv


def compose(h, w_qkv, b_qkv, w_proj, b_proj, *, n_heads, causal=True, extend=None):
    """Apply the parts. `extend(k, v)` puts the keys and values of earlier positions in front (a KV cache)."""
    q, k, v = split_qkv(linear(h, w_qkv, b_qkv, name="qkv"), n_heads=n_heads, name="heads")
    if extend is not None:
        k, v = extend(k, v)
    scores = attention_scores(q, k, name="scores")
    weights = causal_softmax(scores, name="weights") if causal else softmax(scores, name="weights")
    mixed = merge_heads(mix(weights, v, name="mixed"), name="merged")
    return linear(mixed, w_proj, b_proj, name="out")


causal_self_attention = Composite.of(
    __name__,
    title="Causal self-attention",
    latex=r"A = \mathrm{softmax}\!\left( \frac{Q K^{\top}}{\sqrt{D}} + M \right) V\, W_{proj} + b_{proj}, "
    r"\quad [Q, K, V] = H W_{qkv} + b_{qkv}",
    derivative=r"\partial H = \mathrm{vjp}_{qkv} \circ \mathrm{vjp}_{scores} \circ \mathrm{vjp}_{softmax} "
    r"\circ \mathrm{vjp}_{mix} \circ \mathrm{vjp}_{proj}\,(\partial A)",
    inputs=(
        Symbol("h", "H", "(B, T, C)", "normalised residual stream"),
        Symbol("w_qkv", "W_{qkv}", "(C, 3C)", "packed projection to queries, keys and values"),
        Symbol("b_qkv", "b_{qkv}", "(3C,)", "its bias"),
        Symbol("w_proj", "W_{proj}", "(C, C)", "output projection"),
        Symbol("b_proj", "b_{proj}", "(C,)", "its bias"),
    ),
    result=Symbol("a", "A", "(B, T, C)", "what attention adds to the stream"),
    seed_names=("nn::self_attention_1h", "nn::variants::mha::self_attention_mha"),
)
