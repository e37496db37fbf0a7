"""Low-rank adapters (LoRA): train only two thin matrices for each chosen weight.

    W' = W + s A B,   s = lora_alpha / lora

A, named after the weight with `_a`, starts with random numbers; B, with `_b`, starts at zero, so W' starts as W.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from byhand.config import ModelConfig
from byhand.equations.low_rank import Adapter, low_rank
from byhand.errors import ConfigError
from byhand.layers.parameter import Parameter, Tree, flat

DOWN, UP = "_a", "_b"
BLOCKS = "blocks"


def with_adapters(config: ModelConfig, tree: Tree) -> Tree:
    """Return a model's declarations; with `lora`, add the adapters' and freeze everything else.

    Raises ConfigError for a pattern of `lora_on` that matches no matrix.
    """
    if not config.lora:
        return tree
    offered = dict.fromkeys(local(name) for name, p in flat(tree).items() if _fits(p))
    for pattern in config.lora_patterns:
        if not any(fnmatchcase(name, pattern) for name in offered):
            raise ConfigError(
                f"lora_on names {pattern!r}, but the matrices are {', '.join(offered)}. Use some of them."
            )
    return _adapted(config, tree, "")


def local(name: str) -> str:
    """Return a parameter's name without its block, which patterns match: `blocks.0.attn.w_qkv` -> `attn.w_qkv`."""
    return name.split(".", 2)[2] if name.startswith(f"{BLOCKS}.") else name


def adapter(config: ModelConfig, p: Tree, name: str) -> Adapter | None:
    """Return A, B and s of a weight; None if it has no adapter."""
    return (p[name + DOWN], p[name + UP], config.lora_scale) if name + DOWN in p else None


def merged(config: ModelConfig, arrays: Mapping[str, Any]) -> tuple[ModelConfig, dict[str, Any]]:
    """Return the equivalent model without adapters, up to rounding: W' replaces W."""
    made = {}
    for name, array in arrays.items():
        if name + DOWN in arrays:
            array, _ = low_rank.forward(array, arrays[name + DOWN], arrays[name + UP], scale=config.lora_scale)
        if not _is_of_adapter(name, arrays):
            made[name] = array
    usual = ModelConfig()
    return replace(config, lora=0, lora_alpha=None, lora_on=usual.lora_on), made


def _is_of_adapter(name: str, arrays: Mapping[str, Any]) -> bool:
    return any(name.endswith(end) and name.removesuffix(end) in arrays for end in (DOWN, UP))


def _adapted(config: ModelConfig, tree: Tree, prefix: str) -> Tree:
    found: Tree = {}
    for name, inner in tree.items():
        if isinstance(inner, Mapping):
            found[name] = _adapted(config, dict(inner), f"{prefix}{name}.")
            continue
        found[name] = replace(inner, trained=False)
        if _fits(inner) and any(fnmatchcase(local(prefix + name), pattern) for pattern in config.lora_patterns):
            (rows, columns), (of_rows, of_columns) = inner.shape, inner.axes
            # the std of PEFT's uniform distribution within 1 / sqrt(rows)
            down = Parameter((rows, config.lora), std=1 / math.sqrt(3 * rows), axes=(of_rows, "rank"))
            up = Parameter((config.lora, columns), axes=("rank", of_columns), packed=inner.packed)
            found |= {name + end: replace(p, decays=True, group="matrices") for end, p in ((DOWN, down), (UP, up))}
    return found


def _fits(parameter: Parameter) -> bool:
    """Return whether this is a linear layer's weight, not an embedding table."""
    return len(parameter.shape) == 2 and parameter.group in ("matrices", "head")
