"""Names of arrays in other programs: those of their parameters, as facts, and what stands before and behind them."""

from __future__ import annotations

from byhand.interop.hugging_face.families import FAMILIES
from byhand.interop.llm_c import checkpoint as llm_c
from byhand.interop.nanogpt import checkpoint as nanogpt
from byhand.interop.tensors import Fact, facts

PREFIXES = ("_orig_mod.", "module.", "transformer.", "model.", "gpt_neox.")
KINDS = {"grad": "grad", "m": "m", "v": "v", "new": "new", "exp_avg": "m", "exp_avg_sq": "v"}
TORCH = facts("""
    blocks.*.attn.w_qkv = layers.*.self_attn.in_proj_weight : T
    blocks.*.attn.b_qkv = layers.*.self_attn.in_proj_bias
    blocks.*.attn.w_proj = layers.*.self_attn.out_proj.weight : T
    blocks.*.attn.b_proj = layers.*.self_attn.out_proj.bias
    blocks.*.ln_1.gain = layers.*.norm1.weight
    blocks.*.ln_1.bias = layers.*.norm1.bias
    blocks.*.ln_2.gain = layers.*.norm2.weight
    blocks.*.ln_2.bias = layers.*.norm2.bias
    blocks.*.mlp.w_fc = layers.*.linear1.weight : T
    blocks.*.mlp.b_fc = layers.*.linear1.bias
    blocks.*.mlp.w_out = layers.*.linear2.weight : T
    blocks.*.mlp.b_out = layers.*.linear2.bias
""")
HEAD = facts("""
    lm_head.w = lm_head.weight : T
    lm_head.b = lm_head.bias
""")
MICRO = """
    lm_head.w = lm_head : T
    blocks.*.attn.w_qkv = layer*.attn_w{q,k,v} : T
    blocks.*.attn.w_proj = layer*.attn_wo : T
    blocks.*.mlp.w_fc = layer*.mlp_fc1 : T
    blocks.*.mlp.w_out = layer*.mlp_fc2 : T
"""
TABLES: dict[str, tuple[Fact, ...]] = {
    "nanoGPT": nanogpt.FACTS,
    "llm.c": llm_c.FACTS,
    "nn.TransformerEncoderLayer": TORCH,
    "microgpt": facts(MICRO),
    "microgpt of the guide": facts(MICRO.replace("attn_w", "w").replace("mlp_fc", "fc")),
    **{family.name: family.tensors for family in FAMILIES.values()},
}
