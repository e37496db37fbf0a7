"""A model in a GGUF, read and written; `families.py` lists the architectures."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ByhandError, ConfigError, DataError
from byhand.files.weights import Stored
from byhand.formats.registry import FLOAT32, Format
from byhand.interop.families import Family, completed, family_of, plain
from byhand.interop.foreign import Foreign
from byhand.interop.gguf import layers, rotation, tokens
from byhand.interop.gguf.families import KNOWN, WIDTHS, prefixed
from byhand.interop.gguf.file import GGUF, MAGIC, content
from byhand.interop.gguf.kept import matched, summary
from byhand.interop.gguf.parts import opened
from byhand.interop.pairing import with_pairing
from byhand.interop.settings import family_named, keys_of, quoted, require_usual, settings_of
from byhand.interop.tensors import Arrays, from_theirs, pieces, require_room, require_tensors, to_theirs
from byhand.tokenizers.tokenizer import Tokenizer

__all__ = ["KNOWN", "MAGIC", "files", "read"]
NAME = "model.gguf"
LISTED = (
    "attention.head_count",
    "attention.head_count_kv",
    "feed_forward_length",
)  # may be a list, one for each block
IDLE = (  # keys that do not change what llama.cpp computes
    "vocab_size", "expert_used_count", "tensor_data_layout", "pooling_type", "rope.scaling.finetuned",
    "use_parallel_residual",
)  # fmt: skip
EXACT = {"position_embd.weight"}  # added, not multiplied: stays float32


def read(path: Path) -> Foreign:
    """Return the model of a file. DataError or ConfigError if it is damaged or we lack such a model."""
    with opened(path) as file:
        try:
            family, config = _config(file)
        except ByhandError as error:
            raise DataError(f"{path}: {error}") from None
        due = {piece.theirs: piece.shape for piece in pieces(config, family.tensors)}
        found = {name: tensor.shape for name, tensor in file.tensors.items() if name not in _beside(family)}
        require_tensors(path, found, due, "metadata")
        arrays = from_theirs(file.read, config, family.tensors)
        arrays, config = with_pairing(arrays, config, "halves")
        described = partial(tokens.of_keys, file.keys, config.vocab_size, path)
        return Foreign(f"GGUF {family.name}", config, arrays, described)


def _beside(family: Family) -> tuple[str, ...]:
    """Return the names of a family's tensors other than parameters."""
    return (rotation.FACTORS,) if "llama3" in family.settings.get("rope_scaling", ()) else ()


def _config(file: GGUF) -> tuple[Family, ModelConfig]:
    """Return the family and the config given by a file's keys and tensors."""
    family = family_named(file.keys, "general.architecture", KNOWN)
    name = family.name
    keys = {key: value for key, value in file.keys.items() if key.startswith(f"{name}.")}
    for key in (f"{name}.{listed}" for listed in LISTED):
        if key in keys:
            keys[key] = _one(key, keys[key], keys.get(f"{name}.block_count"))
    require_usual(file.keys, {"general.type": ("model",)})
    require_usual(keys, {key: values for key, values in family.only.items() if key not in family.keys})
    _require_known(keys, family)
    found = settings_of(keys, family.keys, family.missing)
    settings = family.usual() | {ours: _shortest(value) for ours, value in found.items()}
    if family.may_vary("d_head"):
        width = settings["d_head"] or _whole(settings["d_model"]) // max(1, _whole(settings["n_heads"]))
        for key in prefixed(name, WIDTHS):
            if keys.get(key, width) != width:
                raise DataError(f"its {key} is {quoted(keys[key])}, but its heads have the width {quoted(width)}.")
    if (rotated := settings.get("rope_fraction")) is None or family.may_vary("rope_fraction"):
        width = _whole(settings["d_model"]) // max(1, _whole(settings["n_heads"]))
        settings["rope_fraction"] = 1.0 if rotated is None else _whole(rotated) / max(1, width)
    for key, name_of_ours in family.flags.items():
        if type(keys.get(key)) is not bool:
            raise DataError(f"its {key} is {quoted(keys.get(key))}, but must be true or false.")
        settings[name_of_ours] = family.settings[name_of_ours][keys[key]]
    settings["rope_pairing"] = family.pairing
    settings |= layers.settings_of(keys, family, settings)
    if "rope_scaling" in family.settings:
        settings |= _scaling(file, family, settings)
    if "all" in family.settings.get("attention_bias", ()) and "blk.0.attn_output.bias" in file.tensors:
        settings["attention_bias"] = "all"
    if "qkv" in family.settings.get("attention_bias", ()) and "blk.0.attn_q.bias" in file.tensors:
        settings["attention_bias"] = "qkv"
    if True in family.settings.get("mlp_bias", ()) and "blk.0.ffn_down.bias" in file.tensors:
        settings["mlp_bias"] = True
    tied = family.settings.get("tied_embeddings", ("output.weight" not in file.tensors,))
    settings["tied_embeddings"] = tied[0]
    table = file.tensors.get("token_embd.weight")
    if table is None:
        raise DataError("it lacks the tensor token_embd.weight.")
    rows = table.shape[0]
    if (said := keys.get(f"{name}.vocab_size", rows)) != rows:
        raise DataError(f"its {name}.vocab_size is {quoted(said)}, but its token_embd.weight has {rows:,} rows.")
    return family, plain(ModelConfig(vocab_size=rows, **settings))


def _require_known(keys: Mapping[str, Any], family: Family) -> None:
    """Raise DataError for an unknown key of the architecture: it may change what the model computes."""
    scaling = rotation.KEYS if "rope_scaling" in family.settings else ()
    steps = (layers.STEP,) if family.name == "gemma3" else ()
    known = prefixed(family.name, dict.fromkeys((*IDLE, *WIDTHS, *scaling, *steps)))
    for key in sorted(keys.keys() - {*known, *family.keys, *family.only, *family.flags})[:1]:
        raise DataError(
            f"its {key[:80]!r} is {quoted(keys[key])}. byhand does not know this key, which may change what the "
            f"model computes."
        )


def _scaling(file: GGUF, family: Family, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return our settings for scaled angles; DataError if both keys and a tensor scale them."""
    keys = {key.removeprefix(f"{family.name}."): _shortest(value) for key, value in file.keys.items()}
    found, table = rotation.settings_of(keys, settings["seq_len"]), file.tensors.get(rotation.FACTORS)
    if table is None or rotation.FACTORS not in _beside(family):
        return found
    base, width = settings["rope_base"], ModelConfig(vocab_size=1, **settings).head_width
    if found or table.shape != (width // 2,):
        raise DataError(f"its {rotation.FACTORS} are {table.shape}, beside {found or 'heads'} of the width {width}.")
    return rotation.settings_of_factors(file.read(rotation.FACTORS), base)


def _one(key: str, value: Any, blocks: Any) -> Any:
    """Return a value, or the number in a list that repeats it for all blocks."""
    if not isinstance(value, array):
        return value
    if len(value) != blocks:
        raise DataError(f"its {key} has {len(value):,} numbers, but it has {quoted(blocks)} blocks.")
    return value[0] if len(set(value)) == 1 else value


def _shortest(value: Any) -> Any:
    """Return a value; a float32 as the shortest decimal that rounds to it."""
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _whole(value: Any) -> int:
    return value if type(value) is int else 0


def files(
    config: ModelConfig, arrays: Arrays, tokenizer: Tokenizer, kind: Format = FLOAT32, like: Path | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the file that llama.cpp loads. ConfigError if no architecture fits this model.

    kind  of matrices whose rows are whole blocks; other matrices, position table, gains and biases stay float32
    like  a GGUF whose tensors keep their bytes if they equal the model's; see `kept.py`
    """
    family = family_of(config, KNOWN, "GGUF")
    full, whole = completed(arrays, config, family)
    parts = list(pieces(whole, family.tensors))
    with ExitStack() as stack:
        file = stack.enter_context(opened(like)) if like is not None else None
        given, kept = matched(file, to_theirs(full, parts)) if file else ({}, set())
        tensors = dict[str, Stored]()
        for piece in parts:
            packed = len(piece.shape) > 1 and piece.shape[-1] % kind.block == 0 and piece.theirs not in EXACT
            chosen = given.get(piece.theirs, kind if packed else FLOAT32)
            tensors[piece.theirs] = Stored(chosen, piece.shape, 0)  # placed later
            for name in piece.ours if packed and piece.theirs not in given else ():
                require_room(name, full[name], kind)
        if file is None and not any(tensor.kind is kind for tensor in tensors.values()):
            raise ConfigError(
                f"{kind.name} packs rows of {kind.block} numbers, and no matrix of this model has such. "
                f"Use another --dtype, or train a model with a --d-model that is a multiple of {kind.block}."
            )
        keys = _keys(family, whole, kind) | tokens.as_keys(tokenizer, whole.vocab_size)
        if file:
            keys |= summary(file, tensors, kept)
        table = file.read(rotation.FACTORS) if file and rotation.FACTORS in file.tensors else None
        if (factors := rotation.factors_of(whole, table)) is not None:
            tensors[rotation.FACTORS] = Stored(FLOAT32, factors.shape, 0)
        beside = () if factors is None else ((rotation.FACTORS, factors.tobytes()),)
        written = (
            (name, file.stored(name) if file and name in kept else tensors[name].kind.packed(x).tobytes())
            for name, x in ((part.theirs, x) for part, x in to_theirs(full, parts))
        )
        yield NAME, content(keys, tensors, chain(written, beside))


def _keys(family: Family, config: ModelConfig, kind: Format) -> dict[str, Any]:
    name = family.name
    keys: dict[str, Any] = {"general.architecture": name, "general.name": "byhand"}
    keys |= {"general.file_type": kind.codes["gguf file"], "general.quantization_version": 2}
    keys |= keys_of(config, family.keys)
    keys |= {key: getattr(config, ours) for key, ours in family.flags.items()}
    if family.may_vary("rope_fraction"):
        keys[f"{name}.rope.dimension_count"] = config.rotary_width
    if family.may_vary("d_head"):
        keys |= keys_of(config, prefixed(name, WIDTHS | {"vocab_size": "vocab_size"}))
    keys |= prefixed(name, rotation.as_keys(config) | layers.as_keys(config, family))
    return keys
