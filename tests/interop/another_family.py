"""A family that byhand has not, as an engineer would add it: one record, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from byhand.interop.hugging_face.alike import LLAMA, ONLY
from byhand.interop.tensors import facts
from interop.run_cases import LLAMA as MODEL_OF_LLAMA

NORMS = """
    blocks.*.ln_1.bias = layers.*.input_layernorm.bias
    blocks.*.ln_2.bias = layers.*.post_attention_layernorm.bias
    ln_f.bias = norm.bias
    blocks.*.mlp.w_fc = layers.*.mlp.c_fc.weight : T
    blocks.*.mlp.b_fc = layers.*.mlp.c_fc.bias
    blocks.*.mlp.w_out = layers.*.mlp.c_proj.weight : T
    blocks.*.mlp.b_out = layers.*.mlp.c_proj.bias
"""
STARCODER2 = replace(
    LLAMA,
    name="starcoder2",
    model="Starcoder2ForCausalLM",
    settings={"positions": ("rotary",), "norm": ("layer",), "attention_bias": ("all",), "mlp_bias": (True,)},
    activations={"gelu": "gelu_new", "gelu_exact": "gelu", "relu": "relu"},
    keys={
        **{key: ours for key, ours in LLAMA.keys.items() if ours not in ("d_head", "norm_eps")},
        "norm_epsilon": "norm_eps",
    },
    missing={
        "num_key_value_heads": 2, "norm_epsilon": 1e-5, "tie_word_embeddings": True, "rope_theta": 10000.0,
        "sliding_window": None,
    },
    only={**ONLY, "use_bias": (True,)},
    flags={},
    window={"sliding_window": None},
    windowed=True,
    tensors=tuple(fact for fact in LLAMA.tensors if ".mlp." not in fact.ours[0]) + facts(NORMS),
)  # fmt: skip
MODEL = replace(
    MODEL_OF_LLAMA, norm="layer", activation="gelu_exact", attention_bias="all", mlp_bias=True, attention_window=8
)
ANOTHER = {
    "starcoder2": (STARCODER2, MODEL),
    "starcoder2 with fewer biases": (STARCODER2, replace(MODEL, attention_bias="qkv", mlp_bias=False)),
}
