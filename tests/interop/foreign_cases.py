"""Small models of other programs, from the formats' descriptions and without byhand's tables."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

KINDS = (
    "gpt2",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "phi3",
    "stablelm",
    "gpt_neox",
    "olmo2",
    "gpt_neo",
    "gemma",
    "gemma3_text",
    "smollm3",
)
CLASSES = {
    "phi3": "Phi3",
    "stablelm": "StableLm",
    "gpt_neox": "GPTNeoX",
    "olmo2": "Olmo2",
    "gpt_neo": "GPTNeo",
    "gemma3_text": "Gemma3",
    "smollm3": "SmolLM3",
}
PARTS = (1.0, 0.5)  # of a head that are rotated


def settings(kind: str, seed: int) -> dict:
    """Return a config.json: tied and untied, grouped, head widths unlike C/H, biases, other widths and bases."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    heads, layers = int(rng.choice([1, 2, 4])), int(rng.integers(1, 4))
    width = heads * 2 * int(rng.integers(2, 9))
    tied, vocab, length = bool(rng.integers(2)), int(rng.integers(20, 40)), int(rng.integers(8, 17))
    common = {"model_type": kind, "vocab_size": vocab, "tie_word_embeddings": tied}
    if kind == "gpt2":
        inner = None if rng.integers(2) else int(rng.integers(3, 50))
        activation = str(rng.choice(["gelu_new", "gelu", "relu", "silu"]))
        return common | {
            "architectures": ["GPT2LMHeadModel"], "n_positions": length, "n_embd": width, "n_layer": layers,
            "n_head": heads, "n_inner": inner, "activation_function": activation,
            "layer_norm_epsilon": float(rng.choice([1e-5, 1e-3])),
        }  # fmt: skip
    if kind == "gpt_neox":
        width = heads * 4 * int(rng.integers(1, 5))
        return common | {
            "architectures": ["GPTNeoXForCausalLM"], "hidden_size": width, "num_hidden_layers": layers,
            "intermediate_size": int(rng.integers(3, 50)), "num_attention_heads": heads,
            "max_position_embeddings": length, "hidden_act": str(rng.choice(["gelu", "gelu_new", "relu"])),
            "layer_norm_eps": float(rng.choice([1e-5, 1e-3])), "attention_bias": bool(rng.integers(2)),
            "use_parallel_residual": bool(rng.integers(3)), "rotary_emb_base": int(rng.choice([10000, 500])),
            "rotary_pct": float(rng.choice(PARTS)),
        }  # fmt: skip
    if kind == "gpt_neo":
        return common | {
            "architectures": ["GPTNeoForCausalLM"], "hidden_size": width, "num_layers": layers,
            "intermediate_size": None if rng.integers(2) else int(rng.integers(3, 50)), "num_heads": heads,
            "max_position_embeddings": length, "activation_function": str(rng.choice(["gelu_new", "gelu", "relu"])),
            "layer_norm_epsilon": float(rng.choice([1e-5, 1e-3])), "window_size": int(rng.integers(1, 6)),
            "attention_types": [[[str(rng.choice(["global", "local"])) for _ in range(layers)], 1]],
        }  # fmt: skip
    if kind in CLASSES:
        width = heads * 4 * int(rng.integers(1, 5))
    head = width // heads if kind in ("qwen2", *CLASSES) or rng.integers(2) else 2 * int(rng.integers(1, 12))
    found = common | {
        "architectures": [f"{CLASSES.get(kind, kind.capitalize())}ForCausalLM"], "hidden_size": width,
        "intermediate_size": int(rng.integers(3, 50)), "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": int(rng.choice([k for k in (1, 2, 4) if heads % k == 0])), "head_dim": head,
        "hidden_act": "silu", "max_position_embeddings": length, "rms_norm_eps": float(rng.choice([1e-6, 1e-2])),
        "rope_parameters": {"rope_type": "default", "rope_theta": float(rng.choice([10000.0, 500.0]))},
    }  # fmt: skip
    if kind in ("llama", "qwen3", "olmo2", "gemma", "gemma3_text", "smollm3"):
        found["attention_bias"] = bool(rng.integers(2))
    if kind in ("llama", "smollm3"):
        found["mlp_bias"] = bool(rng.integers(2))
    if kind in ("phi3", "stablelm"):
        found["rope_parameters"]["partial_rotary_factor"] = float(rng.choice(PARTS))
    if kind == "gemma3_text":
        layers = found["num_hidden_layers"] = int(rng.integers(1, 5))
        kinds = [str(rng.choice(["sliding_attention", "full_attention"])) for _ in range(layers)]
        full = {"rope_type": "linear", "factor": 2.0} if rng.integers(2) else {"rope_type": "default"}
        local = {"rope_type": "default", "rope_theta": float(rng.choice([10000.0, 50.0]))}
        found |= {
            "head_dim": 2 * int(rng.integers(1, 12)), "hidden_activation": "gelu_pytorch_tanh", "layer_types": kinds,
            "query_pre_attn_scalar": int(rng.integers(1, 30)), "sliding_window": int(rng.integers(1, 6)),
            "rope_parameters": {
                "full_attention": {**full, "rope_theta": found["rope_parameters"]["rope_theta"]},
                "sliding_attention": local,
            },
        }  # fmt: skip
    elif kind == "gemma":
        found["hidden_act"] = "gelu_pytorch_tanh"
    elif kind in CLASSES:
        del found["head_dim"]
    if kind == "smollm3":
        layers = found["num_hidden_layers"] = int(rng.integers(1, 5))
        found |= {
            "pad_token_id": None, "no_rope_layers": [int(rng.integers(2)) for _ in range(layers)],
        }  # fmt: skip
    if kind == "phi3":
        found["pad_token_id"] = None
    if kind == "stablelm":
        found |= {"layer_norm_eps": found.pop("rms_norm_eps"), "use_qkv_bias": bool(rng.integers(2))}
    if kind in ("mistral", "phi3"):
        found["sliding_window"] = None if rng.integers(2) else int(rng.integers(2, length))
    return found


def shapes(c: dict) -> dict[str, tuple[int, ...]]:
    """Return the tensors that save_pretrained writes for a config."""
    v, tied = c["vocab_size"], c["tie_word_embeddings"]
    if c["model_type"] == "gpt2":
        n, f = c["n_embd"], c["n_inner"] or 4 * c["n_embd"]
        found = {"transformer.wte.weight": (v, n), "transformer.wpe.weight": (c["n_positions"], n)}
        for i in range(c["n_layer"]):
            for name, shape in {
                "attn.c_attn": (n, 3 * n),
                "attn.c_proj": (n, n),
                "mlp.c_fc": (n, f),
                "mlp.c_proj": (f, n),
            }.items():
                found |= {f"transformer.h.{i}.{name}.weight": shape, f"transformer.h.{i}.{name}.bias": shape[1:]}
            for name in ("ln_1", "ln_2"):
                found |= {f"transformer.h.{i}.{name}.weight": (n,), f"transformer.h.{i}.{name}.bias": (n,)}
        found |= {"transformer.ln_f.weight": (n,), "transformer.ln_f.bias": (n,)}
        return found if tied else found | {"lm_head.weight": (v, n)}
    if c["model_type"] == "gpt_neo":
        n = c["hidden_size"]
        f = c["intermediate_size"] or 4 * n
        found = {"transformer.wte.weight": (v, n), "transformer.wpe.weight": (c["max_position_embeddings"], n)}
        found |= _layer_norm("transformer.ln_f", n)
        for i in range(c["num_layers"]):
            at = f"transformer.h.{i}"
            found |= _layer_norm(f"{at}.ln_1", n) | _layer_norm(f"{at}.ln_2", n)
            for name, shape in {"attn.attention.out_proj": (n, n), "mlp.c_fc": (f, n), "mlp.c_proj": (n, f)}.items():
                found |= {f"{at}.{name}.weight": shape, f"{at}.{name}.bias": shape[:1]}
            found |= {f"{at}.attn.attention.{name}_proj.weight": (n, n) for name in "qkv"}
        return found if tied else found | {"lm_head.weight": (v, n)}
    n, f, d = (
        c["hidden_size"],
        c["intermediate_size"],
        c.get("head_dim", c["hidden_size"] // c["num_attention_heads"]),
    )
    if c["model_type"] == "gpt_neox":
        found = {"gpt_neox.embed_in.weight": (v, n)} | _layer_norm("gpt_neox.final_layer_norm", n)
        for i in range(c["num_hidden_layers"]):
            at = f"gpt_neox.layers.{i}"
            found |= _layer_norm(f"{at}.input_layernorm", n) | _layer_norm(f"{at}.post_attention_layernorm", n)
            for name, shape in {
                "attention.query_key_value": (3 * n, n), "attention.dense": (n, n), "mlp.dense_h_to_4h": (f, n),
                "mlp.dense_4h_to_h": (n, f),
            }.items():  # fmt: skip
                found[f"{at}.{name}.weight"] = shape
                if "mlp" in name or c["attention_bias"]:
                    found[f"{at}.{name}.bias"] = shape[:1]
        return found if tied else found | {"embed_out.weight": (v, n)}
    q, kv = c["num_attention_heads"] * d, c["num_key_value_heads"] * d
    found = {"model.embed_tokens.weight": (v, n), "model.norm.weight": (n,)}
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}"
        found |= {f"{at}.input_layernorm.weight": (n,), f"{at}.post_attention_layernorm.weight": (n,)}
        for name, rows in {"q": q, "k": kv, "v": kv}.items():
            found[f"{at}.self_attn.{name}_proj.weight"] = (rows, n)
            if c.get("attention_bias") or c.get("use_qkv_bias") or c["model_type"] == "qwen2":
                found[f"{at}.self_attn.{name}_proj.bias"] = (rows,)
        found[f"{at}.self_attn.o_proj.weight"] = (n, q)
        if c.get("attention_bias"):
            found[f"{at}.self_attn.o_proj.bias"] = (n,)
        if c["model_type"] == "gemma3_text":
            found |= {f"{at}.{p}_feedforward_layernorm.weight": (n,) for p in ("pre", "post")}
        if c["model_type"] in ("qwen3", "gemma3_text"):
            found |= {f"{at}.self_attn.q_norm.weight": (d,), f"{at}.self_attn.k_norm.weight": (d,)}
        if c["model_type"] == "olmo2":
            del found[f"{at}.input_layernorm.weight"]
            found[f"{at}.post_feedforward_layernorm.weight"] = (n,)
            found |= {f"{at}.self_attn.q_norm.weight": (q,), f"{at}.self_attn.k_norm.weight": (kv,)}
        for name, shape in {"gate": (f, n), "up": (f, n), "down": (n, f)}.items():
            found[f"{at}.mlp.{name}_proj.weight"] = shape
            if c.get("mlp_bias"):
                found[f"{at}.mlp.{name}_proj.bias"] = shape[:1]
        if c["model_type"] == "phi3":
            for names, whole in (("self_attn.{}_proj", "qkv"), ("mlp.{}_proj", "gate up")):
                parts = [
                    found.pop(f"{at}.{names.format(p)}.weight") for p in (whole.split() if " " in whole else whole)
                ]
                found[f"{at}.{names.format(whole.replace(' ', '_'))}.weight"] = (sum(rows for rows, _ in parts), n)
    if c["model_type"] == "stablelm":
        found |= {name.replace(".weight", ".bias"): shape for name, shape in found.items() if "norm" in name}
    return found if tied else found | {"lm_head.weight": (v, n)}


def _layer_norm(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def drawn(found: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, np.ndarray]:
    """Return tensors that leave no symmetry: gains about 1, everything else about 0."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name in sorted(found):
        gain = "norm" in name or ".ln_" in name
        mean = 1.0 if gain and name.endswith("weight") else 0.0
        arrays[name] = (0.3 * rng.standard_normal(found[name]) + mean).astype(np.float32)
    return arrays


def safetensors(arrays: dict[str, np.ndarray], dtypes: dict[str, str] | None = None) -> bytes:
    """Return a safetensors file, written from its description: length, JSON, numbers one after the other."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in arrays.items():
        dtype = (dtypes or {}).get(name, "F32")
        if dtype == "BF16":
            content = (array.view(np.uint32) >> 16).astype("<u2").tobytes()  # truncated
        else:
            content = array.astype({"F32": "<f4", "F16": "<f2", "F64": "<f8", "I64": "<i8"}[dtype]).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write_folder(place: Path, config: dict, arrays: dict[str, np.ndarray]) -> Path:
    """Write a folder as save_pretrained does."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.json").write_text(json.dumps(config))
    (place / "model.safetensors").write_bytes(safetensors(arrays))
    return place


def tokens(config: dict, count: int = 8) -> list[list[int]]:
    """Return ids of two texts."""
    rng = np.random.default_rng(7)
    return rng.integers(0, config["vocab_size"], (2, count)).tolist()
