"""A family that byhand has not, as an engineer would add it: one record, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from byhand.interop.hugging_face.families import LLAMA, ONLY
from byhand.interop.tensors import facts
from interop.run_cases import LLAMA as MODEL_OF_LLAMA

STABLELM = replace(
    LLAMA,
    name="stablelm",
    model="StableLmForCausalLM",
    settings={**LLAMA.settings, "norm": ("layer",), "attention_bias": ("none", "qkv"), "mlp_bias": (False,)},
    keys={
        **{key: ours for key, ours in LLAMA.keys.items() if ours not in ("d_head", "norm_eps")},
        "layer_norm_eps": "norm_eps",
        "partial_rotary_factor": "rope_fraction",
    },
    missing={
        "layer_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.25,
    },
    only={**ONLY, "use_parallel_residual": (False,), "qk_layernorm": (False,)},
    flags={"use_qkv_bias": "attention_bias"},
    tensors=LLAMA.tensors
    + facts("""
    blocks.*.ln_1.bias = layers.*.input_layernorm.bias
    blocks.*.ln_2.bias = layers.*.post_attention_layernorm.bias
    ln_f.bias = norm.bias
"""),
)
WHOLE_HEADS = replace(  # one that does not know that a part of a head may be rotated
    STABLELM, keys={key: ours for key, ours in STABLELM.keys.items() if ours != "rope_fraction"}, only={}
)
MODEL = replace(MODEL_OF_LLAMA, norm="layer")
ANOTHER = {
    "stablelm": (STABLELM, replace(MODEL, rope_fraction=0.5)),
    "stablelm of odd parts": (STABLELM, replace(MODEL, d_model=40, rope_fraction=0.7, tied_embeddings=True)),
    "stablelm with biases": (STABLELM, replace(MODEL, attention_bias="qkv", rope_base=500.0)),
    "stablelm of whole heads": (WHOLE_HEADS, MODEL),
}
