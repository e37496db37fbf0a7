"""What llama.cpp computes of a model, in NumPy: float64, but for the places where it rounds.

GELU, also the exact one, comes from a table of its tanh form in float16. Before a product, activations are rounded as
the weights are; before one with quantised weights to Q8_0: for each 32 numbers a scale in float16, and whole numbers.
"""

from __future__ import annotations

import numpy as np

from byhand.config import ModelConfig


def as_llama_cpp_computes(
    config: ModelConfig, arrays: dict[str, np.ndarray], tokens: list[int], dtype: str = "float32"
) -> np.ndarray:
    """Return the log-probabilities (V,) after the tokens."""
    p = {name: array.astype(np.float64) for name, array in arrays.items()}
    n, heads, groups, d = len(tokens), config.n_heads, config.kv_heads, config.head_width

    def product(x, w, bias=None):
        packed = "q" not in dtype or w.shape[0] % 32 == 0
        y = (ROUNDED[dtype](x) if packed else x) @ w
        return y if bias is None else y + bias

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True) if config.norm == "layer" else x
        y = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + config.norm_eps) * p[f"{name}.gain"]
        return y + p[f"{name}.bias"] if config.norm == "layer" else y

    before, behind = config.norm_position in ("pre", "both"), config.norm_position in ("output", "both")
    out = "_out" if config.norm_position == "both" else ""
    x = p["wte"][tokens] * (config.d_model**0.5 if config.scaled_embeddings else 1)
    x = x + (p["wpe"][:n] if config.positions == "learned" else 0)
    for i, kind in enumerate(config.layer_kinds):
        at = f"blocks.{i}"
        qkv = product(norm(x, f"{at}.ln_1") if before else x, p[f"{at}.attn.w_qkv"], p.get(f"{at}.attn.b_qkv"))
        q, k, v = (a.reshape(n, -1, d) for a in np.split(qkv, [heads * d, (heads + groups) * d], axis=-1))
        if config.qk_norm and config.qk_norm_over == "heads":
            q, k = (_unit(a.reshape(n, 1, -1), config.norm_eps).reshape(a.shape) for a in (q, k))
            q, k = (a * p[f"{at}.attn.{g}_gain"].reshape(a.shape[1:]) for a, g in ((q, "q"), (k, "k")))
        elif config.qk_norm:
            q, k = (_unit(a, config.norm_eps) * p[f"{at}.attn.{g}_gain"] for a, g in ((q, "q"), (k, "k")))
        if kind.base is not None:
            q, k = _turned(q, config, kind), _turned(k, config, kind)
        mixed = []
        for head in range(heads):
            group = head // (heads // groups)
            scores = q[:, head] @ k[:, group].T / np.sqrt(config.score_divisor)
            seen = np.tril(np.ones((n, n))) - np.tril(np.ones((n, n)), -kind.window)
            scores = np.where(seen > 0, scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            mixed.append(weights / weights.sum(-1, keepdims=True) @ v[:, group])
        read = x
        a = product(np.concatenate(mixed, -1), p[f"{at}.attn.w_proj"], p.get(f"{at}.attn.b_proj"))
        x = x + (norm(a, f"{at}.ln_1{out}") if behind else a)
        read = read if config.parallel_residual else x
        h = norm(read, f"{at}.ln_2") if before else read
        if config.gated:
            gate = product(h, p[f"{at}.mlp.w_gate"], p.get(f"{at}.mlp.b_gate"))
            opened = gate / (1 + np.exp(-gate)) if config.activation == "swiglu" else _gelu_of_a_table(gate)
            act = opened * product(h, p[f"{at}.mlp.w_up"], p.get(f"{at}.mlp.b_up"))
        else:
            act = _gelu_of_a_table(product(h, p[f"{at}.mlp.w_fc"], p[f"{at}.mlp.b_fc"]))
        m = product(act, p[f"{at}.mlp.w_out"], p.get(f"{at}.mlp.b_out"))
        x = x + (norm(m, f"{at}.ln_2{out}") if behind else m)
    z = product(norm(x, "ln_f"), p["wte"].T if config.tied_embeddings else p["lm_head.w"])[-1]
    z = z - z.max()
    return z - np.log(np.exp(z).sum())


def _unit(x, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def _turned(x, config, kind):
    n, d = len(x), config.rotary_width
    angles = np.arange(n)[:, None] * np.array([_turn(p, d, config, kind) for p in range(d // 2)])
    size = config.turned_size if kind.scaling else 1.0
    cos, sin = size * np.cos(angles)[:, None], size * np.sin(angles)[:, None]
    left, right, rest = x[..., : d // 2], x[..., d // 2 : d], x[..., d:]
    return np.concatenate([left * cos - right * sin, right * cos + left * sin, rest], -1)


def _turn(p, d, config, of_layer):
    """A pair's angle at position 1: plain, divided, or between these, by the length of its wave or by its number."""
    base, old, f = of_layer.base, config.rope_original_len, config.rope_factor
    kind = config.rope_scaling if of_layer.scaling else "none"
    plain = base ** (-2.0 * p / d)
    if kind in ("none", "linear"):
        return plain / (f if kind == "linear" else 1)
    if kind == "llama3":
        wave, short, long = 2 * np.pi / plain, old / config.fast_turns, old / config.rope_slow
        smooth = (old / wave - config.rope_slow) / (config.fast_turns - config.rope_slow)
        return plain if wave < short else plain / f if wave > long else (1 - smooth) * plain / f + smooth * plain
    low, high = (
        d * np.log(old / (n * 2 * np.pi)) / (2 * np.log(base)) for n in (config.fast_turns, config.rope_slow)
    )
    low, high = max(0, np.floor(low)), min(d - 1, np.ceil(high))
    mix = 1 - np.clip((p - low) / max(0.001, high - low), 0, 1)
    return plain / f * (1 - mix) + plain * mix


def _gelu_of_a_table(x):
    rounded = np.float64(np.float16(x))
    tanh = np.tanh(np.sqrt(2 / np.pi) * (rounded + 0.044715 * rounded**3))
    return np.where(x <= -10, 0, np.where(x >= 10, x, np.float64(np.float16(0.5 * rounded * (1 + tanh)))))


def _rounded_to_q8_0(x):
    blocks = np.float32(x).reshape(-1, 32)
    d = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = np.round(np.where(d == 0, 0, blocks * (np.float32(1) / d))).clip(-127, 127)
    return np.float64(whole * np.float32(np.float16(d))).reshape(x.shape)


def _rounded_to_bfloat16(x):
    bits = np.float32(x).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32).astype(float)


ROUNDED = {
    "float32": np.float64, "float16": lambda x: np.float64(np.float16(x)), "bfloat16": _rounded_to_bfloat16,
    "q8_0": _rounded_to_q8_0, "q4_0": _rounded_to_q8_0,
}  # fmt: skip
