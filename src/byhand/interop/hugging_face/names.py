"""Tensors of transformers' models, and what of ours they are.

GPT-2's Conv1D stores weights as [in, out], like ours; nn.Linear of the others stores [out, in]. All names but that of
the LM head have a prefix, unless the bare model was saved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from byhand.errors import DataError
from byhand.interop.families import FAMILIES
from byhand.interop.tensors import facts

GPT2 = facts("""
    wte = wte.weight
    wpe = wpe.weight
    blocks.*.ln_1.gain = h.*.ln_1.weight
    blocks.*.ln_1.bias = h.*.ln_1.bias
    blocks.*.attn.w_qkv = h.*.attn.c_attn.weight
    blocks.*.attn.b_qkv = h.*.attn.c_attn.bias
    blocks.*.attn.w_proj = h.*.attn.c_proj.weight
    blocks.*.attn.b_proj = h.*.attn.c_proj.bias
    blocks.*.ln_2.gain = h.*.ln_2.weight
    blocks.*.ln_2.bias = h.*.ln_2.bias
    blocks.*.mlp.w_fc = h.*.mlp.c_fc.weight
    blocks.*.mlp.b_fc = h.*.mlp.c_fc.bias
    blocks.*.mlp.w_out = h.*.mlp.c_proj.weight
    blocks.*.mlp.b_out = h.*.mlp.c_proj.bias
    ln_f.gain = ln_f.weight
    ln_f.bias = ln_f.bias
    lm_head.w = lm_head.weight : T
""")
LLAMA = facts("""
    wte = embed_tokens.weight
    blocks.*.ln_1.gain = layers.*.input_layernorm.weight
    blocks.*.attn.w_qkv = layers.*.self_attn.{q,k,v}_proj.weight : T
    blocks.*.attn.b_qkv = layers.*.self_attn.{q,k,v}_proj.bias
    blocks.*.attn.q_gain = layers.*.self_attn.q_norm.weight
    blocks.*.attn.k_gain = layers.*.self_attn.k_norm.weight
    blocks.*.attn.w_proj = layers.*.self_attn.o_proj.weight : T
    blocks.*.attn.b_proj = layers.*.self_attn.o_proj.bias
    blocks.*.ln_2.gain = layers.*.post_attention_layernorm.weight
    blocks.*.mlp.w_gate = layers.*.mlp.gate_proj.weight : T
    blocks.*.mlp.b_gate = layers.*.mlp.gate_proj.bias
    blocks.*.mlp.w_up = layers.*.mlp.up_proj.weight : T
    blocks.*.mlp.b_up = layers.*.mlp.up_proj.bias
    blocks.*.mlp.w_out = layers.*.mlp.down_proj.weight : T
    blocks.*.mlp.b_out = layers.*.mlp.down_proj.bias
    ln_f.gain = norm.weight
    lm_head.w = lm_head.weight : T
""")
FACTS = {name: GPT2 if name == "gpt2" else LLAMA for name in FAMILIES}
PREFIXES = {name: "transformer." if name == "gpt2" else "model." for name in FAMILIES}
BUFFERS = r"h\.[0-9]+\.attn\.(masked_)?bias|layers\.[0-9]+\.self_attn\.rotary_emb\.inv_freq|rotary_emb\.inv_freq"
HEAD = "lm_head.weight"


def without_prefixes(path: Path, names: Iterable[Any], *prefixes: str) -> dict[str, Any]:
    """Return the names of a file's tensors, buffers left out, by their names without prefixes.

    Raises DataError if a tensor has no name, or two have the same one.
    """
    found: dict[str, Any] = {}
    for stored in names:
        name = stored if isinstance(stored, str) else ""
        for prefix in prefixes:
            name = name.removeprefix(prefix)
        if not name or name in found:
            raise DataError(f"{path} has a tensor without a name, or one twice. Use another copy.")
        found[name] = stored
    return {name: stored for name, stored in found.items() if not re.fullmatch(BUFFERS, name)}
