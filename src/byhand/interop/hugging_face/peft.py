"""Adapters in PEFT's form: adapter_config.json and adapter_model.safetensors, without the base model.

PEFT adapts each of its linear layers separately, with lora_A (R, in) and lora_B (out, R), even for GPT-2's Conv1D.
Our w_qkv is three of their layers, with the same A, and B's columns divided among them. Reading an adapter adds s B A
to the weights.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.config_checks import brief
from byhand.equations.low_rank import low_rank
from byhand.errors import ConfigError, DataError, reason
from byhand.files.reading import SMALL, parse_json, read_regular
from byhand.files.tensor_file import header
from byhand.files.weights import OpenFile
from byhand.formats.registry import FLOAT32
from byhand.interop.families import Family, family_of
from byhand.interop.hugging_face.families import FAMILIES
from byhand.interop.hugging_face.weights import MOST, content
from byhand.interop.pairing import with_pairing
from byhand.interop.tensors import Arrays, TensorPart, pieces
from byhand.layers.adapter import DOWN, UP, merged

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
INSIDE, OF_DOWN, OF_UP = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
RANK = 8  # PEFT's default
KEPT = {  # keys that change what an adapter computes, with the values that do not; else None, False and empty do not
    "peft_type": ("LORA",), "bias": ("none", None), "use_rslora": (True, False, None),
    "init_lora_weights": (True, False, None, "gaussian", "orthogonal", "eva"),  # the others change the base too
}  # fmt: skip
IDLE = {  # for training, or read elsewhere
    "task_type", "auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "peft_version", "r",
    "lora_alpha", "lora_dropout", "fan_in_fan_out", "target_modules", "exclude_modules", "layers_to_transform",
    "layers_pattern", "megatron_config", "megatron_core", "loftq_config", "eva_config", "qalora_group_size",
}  # fmt: skip
PLAIN = {  # what to do about a key
    "init_lora_weights": "It changed the base model too: save the adapter again with PEFT's save_pretrained(..., "
    "path_initial_model_for_weight_conversion=...), or merge it with PEFT's merge_and_unload.",
}


def is_adapter(path: Path) -> bool:
    """Return whether PEFT wrote this folder."""
    return (path / CONFIG).exists()


def files(config: ModelConfig, arrays: Arrays) -> Iterator[tuple[str, bytes | Iterator[bytes | memoryview]]]:
    """Yield the files of an adapter. ConfigError if there is none, or no family fits its model."""
    if not config.lora:
        raise ConfigError("this run has no adapter. Use --to hf for its whole model, or train with --lora.")
    plain, _ = merged(config, {})
    family = family_of(plain, FAMILIES, "transformers")
    arrays, _ = with_pairing({n: a for n, a in arrays.items() if n.endswith((DOWN, UP))}, config, family.pairing)
    parts: dict[str, TensorPart] = {}
    for piece in pieces(family.completed(plain), family.tensors):
        adapted = [name for name in piece.ours if name + UP in arrays]
        if len(piece.ours) > 1 and adapted:
            raise ConfigError(
                f"{' and '.join(piece.ours)} are one matrix in {family.name} models, so PEFT cannot adapt each. "
                f"Use --to hf for the whole model."
            )
        for ours in adapted:
            name, (rank, width), rows = _module(piece, family), arrays[ours + UP].shape, arrays[ours + DOWN].shape[0]
            width = len(np.arange(width)[piece.columns])
            parts |= {
                theirs: TensorPart((part,), theirs, columns, True, shape)
                for part, theirs, columns, shape in (
                    (ours + DOWN, name + OF_DOWN, slice(0, rank), (rank, rows)),
                    (ours + UP, name + OF_UP, piece.columns, (width, rank)),
                )
            }
    yield CONFIG, (json.dumps(_settings(config, family, list(parts)), indent=2) + "\n").encode()
    yield WEIGHTS, content(parts, arrays, FLOAT32)


def _module(piece: TensorPart, family: Family) -> str:
    theirs = piece.theirs if piece.theirs == family.head else family.prefix + piece.theirs
    return INSIDE + theirs.removesuffix(".weight")


def _settings(config: ModelConfig, family: Family, names: list[str]) -> dict[str, Any]:
    modules = [name.removesuffix(OF_DOWN).split(".") for name in names if name.endswith(OF_DOWN)]
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": None,
        "r": config.lora,
        "lora_alpha": config.lora_scale * config.lora,
        "target_modules": sorted({".".join(m[-2:]) if m[-2] != "model" else m[-1] for m in modules}),
        "fan_in_fan_out": family.name == "gpt2",
        "lora_dropout": 0.0,
        "bias": "none",
        "use_rslora": False,
        "use_dora": False,
        "modules_to_save": None,
        "inference_mode": True,
    }


def read(folder: Path, config: ModelConfig, arrays: Arrays) -> tuple[ModelConfig, dict[str, np.ndarray]]:
    """Return a base model with an adapter merged into its weights.

    Raises DataError if the adapter is damaged, or is for another kind of adapter or model.
    """
    settings, scale = _settings_of(folder)
    with OpenFile(folder / WEIGHTS) as file:
        try:
            left = header(file.read, file.size, MOST)
        except ValueError as error:
            raise file.damaged(str(error)) from None
        family = _family_named(config, left)
        found, config = with_pairing(arrays, config, family.pairing)
        for piece in pieces(family.completed(config), family.tensors):
            name = _module(piece, family)
            there = {name + OF_DOWN, name + OF_UP} <= left.keys()
            if len(piece.shape) == 2 and _is_targeted(settings, name.removeprefix(INSIDE), piece) not in (
                None,
                there,
            ):
                raise DataError(
                    f"{folder}: {WEIGHTS} and target_modules differ about {name}. Use files of one adapter."
                )
            if not there:
                continue
            pair = [(key, left.pop(key)) for key in (name + OF_DOWN, name + OF_UP)]
            if any(entry.kind.unpack is None for _, entry in pair):
                raise DataError(f"{folder}: {name} is {pair[0][1].kind.symbol}. Use an adapter in float32.")
            down, up = (np.ascontiguousarray(file.floats(entry, key).T) for key, entry in pair)
            whole = np.concatenate([found[ours] for ours in piece.ours], -1)
            weight = whole[..., piece.columns]
            if (down.shape[:1], up.shape[1:], down.shape[1:]) != (weight.shape[:1], weight.shape[1:], up.shape[:1]):
                raise DataError(f"{folder}: {name} has another width than the base model. Use its own base.")
            with np.errstate(all="ignore"):
                made, _ = low_rank.forward(weight, down, up, scale=scale(down.shape[1]))
            if not np.isfinite(made).all():
                alpha = settings["lora_alpha"]
                raise DataError(f"{folder}: with its lora_alpha {alpha:g}, {name} merged is not finite. Use another.")
            whole[..., piece.columns] = made
            ends = np.cumsum([found[ours].shape[-1] for ours in piece.ours])[:-1]
            found |= zip(piece.ours, np.split(whole, ends, -1), strict=True)
    for name in sorted(left)[:1]:
        raise DataError(f"{folder} has {name[:120]!r}, which this base model lacks. Use the adapter's own base.")
    return config, found


def _family_named(config: ModelConfig, names: Collection[str]) -> Family:
    """Return the base model's family: of those that fit, the one whose layer names match the adapter's."""
    usual = family_of(config, FAMILIES, "transformers")
    known = [usual, *(family for family in FAMILIES.values() if not family.problems(config))]

    def shared(family: Family) -> int:
        return sum(
            _module(part, family) + OF_UP in names for part in pieces(family.completed(config), family.tensors)
        )

    return max(known, key=shared)


def _is_targeted(settings: dict[str, Any], module: str, piece: TensorPart) -> bool | None:
    """Return whether PEFT adapts a linear layer of the base; None if the configuration does not say.

    A string is a regular expression for the whole name. DataError if it is invalid, or takes too long.
    """
    named, excluded = settings.get("target_modules"), settings.get("exclude_modules") or []
    layers, number = settings.get("layers_to_transform"), re.search(r"\.([0-9]+)\.", module)
    patterns = [names for names in (named, excluded) if isinstance(names, str) and names != "all-linear"]
    if not isinstance(named, str | list) or (patterns and find_spec("regex") is None):
        return None

    def one_of(names: str | list[Any]) -> bool:
        if isinstance(names, str):
            return _matches(names, module)
        return any(module == name or module.endswith(f".{name}") for name in names)

    linear = piece.ours[0] not in ("wte", "wpe", "lm_head.w")  # as PEFT has it
    within = layers in (None, []) or (number and int(number[1]) in (layers if isinstance(layers, list) else [layers]))
    return bool((linear if named == "all-linear" else one_of(named)) and within and not one_of(excluded))


def _matches(pattern: str, module: str) -> bool:
    import regex

    try:
        return regex.fullmatch(pattern, module, timeout=1) is not None
    except (regex.error, RecursionError, TimeoutError):
        raise DataError(f"the adapter's pattern of layer names {pattern[:80]!r} is not valid.") from None


def _settings_of(folder: Path) -> tuple[dict[str, Any], Any]:
    """Return the configuration, and s as a function of the rank, which must match the configuration."""
    try:
        settings = parse_json(read_regular(folder / CONFIG, SMALL))
        alpha, given = settings["lora_alpha"], settings.get("r", RANK)
        if "peft_type" not in settings:
            raise ValueError("it names no peft_type")
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise ValueError("r is not a rank")
        if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not math.isfinite(alpha):
            raise ValueError("lora_alpha is not a number")
    except OSError as error:
        raise DataError(f"cannot read {folder / CONFIG}: {reason(error)}. Check the folder.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder / CONFIG} is not a LoRA configuration: {brief(error)}. Use PEFT's own.") from None
    for key, value in settings.items():
        if key not in IDLE and value not in KEPT.get(key, (None, False, [], {})):
            todo, name = PLAIN.get(key, "Use a plain LoRA adapter."), key if key.isidentifier() else repr(key)
            raise DataError(f"{folder}: {name[:80]} is {brief(value)}, which byhand lacks. {todo}")

    def scale(rank: int) -> float:
        if rank != given:
            raise DataError(
                f"{folder}: r is {given} in {CONFIG}, but arrays have rank {rank}. Use files of one adapter."
            )
        return alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank)

    return settings, scale
