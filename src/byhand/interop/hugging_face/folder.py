"""A model's folder of transformers, read and written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from safetensors.numpy import save as write_safetensors

from byhand.config import ModelConfig
from byhand.errors import ByhandError, DataError, reason
from byhand.files.reading import SMALL, parse_json, read_regular
from byhand.interop.families import FAMILIES, Arrays, completed, family_of
from byhand.interop.foreign import Foreign, require_room
from byhand.interop.hugging_face import names, tokens
from byhand.interop.hugging_face.settings import as_config, as_json
from byhand.interop.hugging_face.weights import WHOLE, Weights
from byhand.interop.tensors import TensorPart, from_theirs, pieces, to_theirs
from byhand.tokenizers.tokenizer import Tokenizer

CONFIG, GENERATION, PAIRING = "config.json", "generation_config.json", "halves"
FLOATS = ("F64", "F32", "F16", "BF16")


def read(folder: Path) -> Foreign:
    """Return the model of a folder. DataError or ConfigError if it is damaged or cannot be one of ours."""
    family, config = _config(folder)
    known, prefix = names.of_family(family)
    require_room(config)
    due = {piece.theirs: piece for piece in pieces(config, known)}
    weights = Weights(folder)
    found = {name.removeprefix(prefix): name for name in weights.stored}
    _require_tensors(folder, family, weights, due, found)
    arrays = from_theirs(lambda name: weights.read(found[name]), config, known)
    tied = config.tied_embeddings and names.HEAD in found
    if tied and not np.array_equal(weights.read(found[names.HEAD]), arrays["wte"]):
        raise DataError(f"{folder} ties the LM head to the embedding in {CONFIG}, but its tensors differ.")
    return Foreign(f"Hugging Face {family}", config, arrays, partial(tokens.of_folder, folder))


def _config(folder: Path) -> tuple[str, ModelConfig]:
    try:
        found = parse_json(read_regular(folder / CONFIG, SMALL))
        if not isinstance(found, dict):
            raise ValueError("no table")
        family, config = as_config(found)
    except OSError as error:
        raise DataError(f"cannot read {folder / CONFIG}: {reason(error)}. Check the folder.") from None
    except ByhandError as error:
        raise DataError(f"{folder / CONFIG}: {error}") from None
    except ValueError as error:
        raise DataError(f"{folder / CONFIG} is not JSON: {' '.join(str(error).split())[:80]}.") from None
    return family.name, config


def _require_tensors(
    folder: Path, family: str, weights: Weights, due: dict[str, TensorPart], found: dict[str, str]
) -> None:
    """Raise DataError unless the folder has exactly the tensors of its config, and buffers perhaps."""
    if len(found) != len(weights.stored):
        raise DataError(f"{folder} has tensors twice, with a prefix and without. Use another copy.")
    for name in sorted(due.keys() - found.keys())[:1]:
        raise DataError(f"{folder} lacks the tensor {name}. Use the whole folder of a {family} language model.")
    tied = {names.HEAD: due[next(iter(due))]} if names.HEAD not in due else {}
    for name in sorted(found.keys() - due.keys() - tied.keys()):
        if not re.fullmatch(names.BUFFERS, name):
            raise DataError(f"{folder} has the tensor {name[:80]!r}, which its {CONFIG} does not explain.")
    for name, piece in {**due, **{name: piece for name, piece in tied.items() if name in found}}.items():
        stored = weights.stored[found[name]][1]
        if stored.shape != piece.shape:
            raise DataError(f"{folder}: {name} has the shape {stored.shape}, but {CONFIG} says {piece.shape}.")
        if stored.dtype not in FLOATS:
            raise DataError(f"{folder}: {name} is {stored.dtype}. Use a model in F32, F16 or BF16.")


def files(config: ModelConfig, arrays: Arrays, tokenizer: Tokenizer) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder that transformers loads. ConfigError if no family has this model."""
    family = family_of(config, FAMILIES, "transformers")
    full, whole = completed(arrays, config, family, PAIRING)
    pairs = tokens.byte_pairs(tokenizer)
    name = tokens.end_of_text(pairs)
    end = None if name is None else pairs.special[name]
    described = list(tokens.files(tokenizer, config.seq_len))  # or refused before anything is written
    yield CONFIG, _json(as_json(family, whole, end))
    yield GENERATION, _json({"bos_token_id": end, "eos_token_id": end, "do_sample": False})
    yield from described
    known, prefix = names.of_family(family.name)
    theirs = {name if name == names.HEAD else prefix + name: a for name, a in to_theirs(full, whole, known)}
    yield WHOLE, write_safetensors(theirs, metadata={"format": "pt"})


def _json(values: object) -> bytes:
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()
