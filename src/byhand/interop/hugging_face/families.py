"""Families of transformers by the name in config.json, and refused ones, with what byhand lacks."""

from __future__ import annotations

from byhand.interop.hugging_face.alike import (
    GPT2,
    GPT_NEOX,
    LLAMA,
    MISTRAL,
    OLMO2,
    PHI3,
    QWEN2,
    QWEN3,
    STABLELM,
)  # fmt: skip
from byhand.interop.hugging_face.layered import GEMMA, GEMMA3, GPT_NEO, SMOLLM3

FAMILIES = {
    family.name: family
    for family in (
        GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, PHI3, STABLELM, GPT_NEOX, OLMO2, GPT_NEO, GEMMA, GEMMA3, SMOLLM3,
    )
}  # fmt: skip
LACKING = {  # common models, and what byhand lacks for them
    "gemma2": "a cap of the scores of attention",
    "gemma3": "images",
    "phi": "one norm for attention and MLP, and a bias of the LM head",
    "gptj": "one norm for attention and MLP, and a bias of the LM head",
    "falcon": "one norm for attention and MLP",
    "opt": "positions that begin at 2",
    "bloom": "biases of scores by distance (ALiBi)",
    "mixtral": "experts",
    "qwen3_moe": "experts",
}
