"""config.json of transformers and our ModelConfig: which key is which setting, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.config import ModelConfig
from byhand.errors import ConfigError, DataError
from byhand.interop.families import FAMILIES, Family, plain
from byhand.interop.settings import AS_WRITTEN, family_named, keys_of, quoted, require_usual, settings_of

# their key: our setting
GPT2 = {
    "vocab_size": "vocab_size",
    "n_positions": "seq_len",
    "n_embd": "d_model",
    "n_layer": "n_layers",
    "n_head": "n_heads",
    "n_inner": "d_ff",
    "layer_norm_epsilon": "norm_eps",
    "tie_word_embeddings": "tied_embeddings",
}
LLAMA = {
    "vocab_size": "vocab_size",
    "max_position_embeddings": "seq_len",
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "head_dim": "d_head",
    "intermediate_size": "d_ff",
    "rms_norm_eps": "norm_eps",
    "tie_word_embeddings": "tied_embeddings",
}
KEYS = {name: GPT2 if name == "gpt2" else LLAMA for name in FAMILIES}
TWINS = {  # names of gpt2's keys that transformers reads too, and prefers
    "hidden_size": "n_embd", "max_position_embeddings": "n_positions", "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}  # fmt: skip
MISSING: dict[str, dict[str, Any]] = {  # what transformers takes where a config.json lacks the key
    "gpt2": {"n_inner": None, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True},
    "llama": {"num_key_value_heads": None, "head_dim": None, "rms_norm_eps": 1e-6, "tie_word_embeddings": False},
    "mistral": {"head_dim": None, "rms_norm_eps": 1e-6, "tie_word_embeddings": False},
    "qwen2": {"head_dim": None, "rms_norm_eps": 1e-6, "tie_word_embeddings": False},
    "qwen3": {"head_dim": 128, "rms_norm_eps": 1e-6, "tie_word_embeddings": False},
}
ACTIVATION = {name: "activation_function" if name == "gpt2" else "hidden_act" for name in FAMILIES}
SAME = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new", "swish": "silu"}  # other names for one function
USUAL: dict[str, tuple[Any, ...]] = {  # keys that change what a model computes, with the values that ours has
    "scale_attn_weights": (True, None),
    "scale_attn_by_inverse_layer_idx": (False, None),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
    "partial_rotary_factor": (1.0, None),
    "quantization_config": (None,),
}
BIASES = {False: "none", True: "all"}
FULL, SLIDING = "full_attention", "sliding_attention"
ARCHITECTURES = {
    "gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
}  # fmt: skip


def as_config(found: Mapping[str, Any]) -> tuple[Family, ModelConfig]:
    """Return the family and the config of a config.json; DataError or ConfigError if ours cannot be that model."""
    family = family_named(found, "model_type", FAMILIES)
    kind = family.name
    require_usual(found, USUAL)
    settings = family.usual() | settings_of(found, KEYS[kind], MISSING[kind])
    if kind == "gpt2":
        for twin, key in TWINS.items():
            if found.get(twin, found[key]) != found[key]:
                raise DataError(f"its {twin} and {key} differ. Keep one of them.")
    settings["activation"] = _activation(found, family)
    if kind != "gpt2":
        settings |= {"rope_base": _rope_base(found), "attention_window": _window(found, settings["n_layers"])}
        if "all" in family.settings["attention_bias"]:
            settings["attention_bias"] = BIASES[_flag(found, "attention_bias")]
        if len(family.settings["mlp_bias"]) > 1:
            settings["mlp_bias"] = _flag(found, "mlp_bias")
    return family, plain(ModelConfig(**settings))


def as_json(family: Family, config: ModelConfig, end: int | None) -> dict[str, Any]:
    """Return the config.json of a completed model; `end` is the id of the token that ends a text.

    Raises ConfigError for what transformers itself refuses.
    """
    if family.name == "llama" and config.d_model % config.n_heads:
        raise ConfigError(
            f"transformers refuses a llama whose {config.n_heads} heads do not divide its width {config.d_model}. "
            f"Train a model with another --n-heads, or with --qk-norm as qwen3."
        )
    found: dict[str, Any] = {
        "architectures": [ARCHITECTURES[family.name]], "model_type": family.name, "dtype": "float32",
        "torch_dtype": "float32", "bos_token_id": end, "eos_token_id": end,
        ACTIVATION[family.name]: family.activations[config.activation],
    }  # fmt: skip
    found |= keys_of(config, KEYS[family.name])
    if family.name == "gpt2":
        return found | {"n_ctx": config.seq_len}  # converters to GGUF read it
    found |= {
        "attention_bias": config.attention_bias == "all",
        "mlp_bias": config.mlp_bias,
        "rope_parameters": {"rope_theta": config.rope_base, "rope_type": "default"},
        "rope_theta": config.rope_base,  # before transformers 5
    }
    if family.name == "mistral":
        found["sliding_window"] = config.attention_window
    return found


def _activation(found: Mapping[str, Any], family: Family) -> str:
    usual = next(iter(family.activations.values()))
    named = found.get(ACTIVATION[family.name], usual)
    if isinstance(named, str):
        for ours, theirs in family.activations.items():
            if SAME.get(named, named) == theirs:
                return ours
    raise DataError(
        f"its activation is {quoted(named)}. Only {', '.join(family.activations.values())} can be computed."
    )


def _rope_base(found: Mapping[str, Any]) -> Any:
    """Return the base of the angles; DataError unless they are the plain ones."""
    base = found.get("rope_theta", 10000.0)
    usual = {"rope_type": "default", "type": "default", "partial_rotary_factor": 1.0}
    for key in ("rope_scaling", "rope_parameters"):  # before transformers 5, and since
        turns = found.get(key)
        if turns is None:
            continue
        if not isinstance(turns, dict) or any(turns[k] != usual.get(k) for k in turns.keys() - {"rope_theta"}):
            raise DataError(f"its {key} is {quoted(turns)}, but only plain rotation (default) can be computed here.")
        if "rope_theta" in turns and turns["rope_theta"] != base != found.get("rope_theta", 10000.0):
            raise DataError("its rope_scaling and rope_parameters differ. Keep one of them.")
        base = turns.get("rope_theta", base)
    if base is None:
        raise DataError(f"its rope_theta is null. {AS_WRITTEN}")
    return base


def _window(found: Mapping[str, Any], n_layers: Any) -> Any:
    """Return the window that all layers have, or None; DataError if layers differ.

    Llama has none, and Qwen's is used only if `use_sliding_window` says so, whatever else the file holds.
    """
    kind = found["model_type"]
    if kind == "llama" or (kind != "mistral" and found.get("use_sliding_window") is not True):
        return None
    window = found.get("sliding_window", 4096)
    kinds = found.get("layer_types")
    if kind == "mistral" and kinds is None:
        return window
    if kinds is None and type(n_layers) is int and 0 < n_layers <= 1024:
        first = found.get("max_window_layers", 28)
        kinds = [SLIDING if type(first) is int and i >= first else FULL for i in range(n_layers)]
    if kinds is None or window is None or (isinstance(kinds, list) and all(each == FULL for each in kinds)):
        return None
    if isinstance(kinds, list) and all(each == SLIDING for each in kinds):
        return window
    raise DataError("its layers have windows of attention of several sizes, but here all layers have one.")


def _flag(found: Mapping[str, Any], key: str) -> bool:
    value = found.get(key, False)
    if not isinstance(value, bool):
        raise DataError(f"its {key} is {quoted(value)}, but must be true or false.")
    return value
