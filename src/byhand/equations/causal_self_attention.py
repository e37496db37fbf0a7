r"""Causal self-attention with any number of heads: a composition, against which fused kernels are tested.

Equation    [Q, K, V] = H W_qkv + b_qkv,  P = causal_softmax(Q K^T / sqrt(D)),  A = merge(P V) W_proj + b_proj
Derivative  the composition's: each part's vjp in reverse order
Shapes      h (B, T, C), w_qkv (C, (H + 2K) D), b_qkv ((H + 2K) D,), w_proj (H D, C), b_proj (C,), gains (D,)
            -> (B, T, C); H query heads, K key-value heads (K = H if not given); biases and gains may be None.
            With a cache of keys and values, each (B, K, S, D), and start (B,): the result, and the cache after it
Raises      ShapeError if the columns do not split into H + 2K heads
Source      Vaswani et al. 2017, arXiv:1706.03762, section 3.2
"""

from byhand.engine.equation import Composite, Symbol
from byhand.equations.attention_scores import attention_scores
from byhand.equations.causal_softmax import causal_softmax
from byhand.equations.extend_cache import extend_cache
from byhand.equations.heads_rms_norm import heads_rms_norm
from byhand.equations.linear import linear
from byhand.equations.low_rank import adapted
from byhand.equations.merge_heads import merge_heads
from byhand.equations.mix import mix
from byhand.equations.repeat_heads import repeat_heads
from byhand.equations.rms_norm import rms_norm
from byhand.equations.rotary import rotary
from byhand.equations.softmax import softmax
from byhand.equations.split_qkv import split_qkv
from byhand.equations.window_softmax import window_softmax


def compose(
    h, w_qkv, b_qkv, w_proj, b_proj, q_gain=None, k_gain=None, *cache, n_heads, n_kv_heads=None, causal=True,
    window=None, qk_eps=None, qk_over="head", rotary_settings=None, adapters=(None, None), divisor=None,
):  # fmt: skip
    """Apply the parts; without the optional settings, the first equation of this file.

    n_kv_heads              K key-value heads, each shared by H / K query heads
    window                  number of positions that a query sees, itself included
    q_gain, k_gain, qk_eps  with an eps, `rms_norm` normalises queries and keys
    qk_over                 "heads": `heads_rms_norm` normalises all heads of a position together
    rotary_settings         `rotary` rotates queries and keys, with these settings
    divisor                 of scores, under the root; the head width if not given
    adapters                of w_qkv and of w_proj, each (A, B, s), for `low_rank`
    cache                   start, the first token's position; then keys and values, which `extend_cache` extends
    """
    start, keys, values = (*cache, None, None, None)[:3]
    of_qkv, of_proj = adapters
    packed = linear(h, w_qkv, *_given(b_qkv), name="qkv")
    packed = adapted(packed, h, of_qkv)
    grouped = {} if n_kv_heads in (None, n_heads) else {"n_kv_heads": n_kv_heads}
    q, k, v = split_qkv(packed, n_heads=n_heads, **grouped, name="heads")
    if qk_eps is not None:
        normed = heads_rms_norm if qk_over == "heads" else rms_norm
        q = normed(q, *_given(q_gain), eps=qk_eps, name="q_normed")
        k = normed(k, *_given(k_gain), eps=qk_eps, name="k_normed")
    if rotary_settings is not None:
        q = rotary(q, *_given(start), **rotary_settings, name="q_turned")
        k = rotary(k, *_given(start), **rotary_settings, name="k_turned")
    before = ()
    if keys is not None:
        k = keys = extend_cache(keys, k, start, name="kept_keys")
        v = values = extend_cache(values, v, start, name="kept_values")
        before = (start,)
    if grouped:
        k = repeat_heads(k, times=n_heads // n_kv_heads, name="keys")
        v = repeat_heads(v, times=n_heads // n_kv_heads, name="values")
    scaled = {} if divisor is None else {"divisor": divisor}
    scores = attention_scores(q, k, **scaled, name="scores")
    if not causal:
        weights = softmax(scores, name="weights")
    elif window is None or window >= k.shape[-2]:
        weights = causal_softmax(scores, *before, name="weights")
    else:
        weights = window_softmax(scores, *before, window=window, name="weights")
    mixed = merge_heads(mix(weights, v, name="mixed"), name="merged")
    out = linear(mixed, w_proj, *_given(b_proj), name="out")
    out = adapted(out, mixed, of_proj)
    return out if keys is None else (out, keys, values)


def _given(*inputs):
    return [x for x in inputs if x is not None]


causal_self_attention = Composite.of(
    __name__,
    title="Causal self-attention",
    latex=r"A = \mathrm{softmax}\!\left( \frac{Q K^{\top}}{\sqrt{D}} + M \right) V\, W_{proj} + b_{proj}, "
    r"\quad [Q, K, V] = H W_{qkv} + b_{qkv}",
    derivative=r"\partial H = \mathrm{vjp}_{qkv} \circ \mathrm{vjp}_{scores} \circ \mathrm{vjp}_{softmax} "
    r"\circ \mathrm{vjp}_{mix} \circ \mathrm{vjp}_{proj}\,(\partial A)",
    inputs=(
        Symbol("h", "H", "(B, T, C)", "normalised residual stream"),
        Symbol("w_qkv", "W_{qkv}", "(C, (H + 2K) D)", "packed projection to queries, keys and values"),
        Symbol("b_qkv", "b_{qkv}", "((H + 2K) D,)", "its bias, optional"),
        Symbol("w_proj", "W_{proj}", "(H D, C)", "output projection"),
        Symbol("b_proj", "b_{proj}", "(C,)", "its bias, optional"),
        Symbol("q_gain", "g_q", "(D,) or (H D,)", "gain of the queries' norm, optional"),
        Symbol("k_gain", "g_k", "(D,) or (K D,)", "gain of the keys' norm, optional"),
        Symbol("start", r"\mathrm{start}", "(B,)", "positions before the first, for each stream; optional"),
        Symbol("keys", "C_k", "(B, K, S, D)", "keys of earlier positions, optional"),
        Symbol("values", "C_v", "(B, K, S, D)", "values of earlier positions, optional"),
    ),
    result=Symbol("a", "A", "(B, T, C)", "attention's output, added to the stream"),
    seed_names=("nn::self_attention_1h", "nn::variants::mha::self_attention_mha"),
)
