"""A model's transformers folder, read and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ByhandError, ConfigError, DataError, brief, reason
from byhand.files.reading import SMALL, parse_json, read_regular
from byhand.files.tensor_file import KNOWN
from byhand.formats.registry import FLOAT32, Format
from byhand.interop.families import Family, completed, family_of
from byhand.interop.foreign import Foreign
from byhand.interop.hugging_face import conventions, tokens
from byhand.interop.hugging_face.conventions import CONFIG, GENERATION
from byhand.interop.hugging_face.families import FAMILIES
from byhand.interop.hugging_face.names import without_prefixes
from byhand.interop.hugging_face.settings import as_config, as_json
from byhand.interop.hugging_face.weights import WHOLE, Weights, content
from byhand.interop.tensors import Arrays, from_theirs, pieces, require_room, require_tensors
from byhand.tokenizers.tokenizer import Tokenizer


def read(folder: Path) -> Foreign:
    """Return the model of a folder. DataError or ConfigError if it is damaged or we lack such a model."""
    family, config = _config(folder)
    weights = Weights(folder)
    found = without_prefixes(folder, weights.stored, family.prefix)
    tensors = {name: weights.stored[stored][1] for name, stored in found.items()}
    due = {piece.theirs: piece.shape for piece in pieces(config, family.tensors)}
    tied = config.tied_embeddings and family.head in found
    if tied:
        due[family.head] = config.vocab_size, config.d_model
    require_tensors(folder, {name: tensor.shape for name, tensor in tensors.items()}, due, CONFIG)
    for name, tensor in tensors.items():
        if tensor.kind.unpack is None:
            known = ", ".join(kind.symbol for kind in KNOWN.values() if kind.unpack)
            raise DataError(f"{folder}: {name} is {tensor.kind.symbol}. Use a model in {known}.")
    arrays = from_theirs(lambda name: weights.read(found[name]), config, family.tensors)
    if tied and not np.array_equal(weights.read(found[family.head]), arrays["wte"]):
        raise DataError(f"{folder} ties the LM head to the embedding in {CONFIG}, but its tensors differ.")
    return Foreign(f"Hugging Face {family.name}", config, arrays, partial(tokens.of_folder, folder))


def _config(folder: Path) -> tuple[Family, ModelConfig]:
    try:
        found = parse_json(read_regular(folder / CONFIG, SMALL))
        if not isinstance(found, dict):
            raise ValueError("no table")
        return as_config(found)
    except OSError as error:
        raise DataError(f"cannot read {folder / CONFIG}: {reason(error)}. Check the folder.") from None
    except ByhandError as error:
        raise DataError(f"{folder / CONFIG}: {error}") from None
    except ValueError as error:
        raise DataError(f"{folder / CONFIG} is not JSON: {brief(error)}. Use the model's own.") from None


def files(
    config: ModelConfig, arrays: Arrays, tokenizer: Tokenizer, kind: Format = FLOAT32, ends: Iterable[int] = ()
) -> Iterator[tuple[str, bytes | Iterator[bytes | memoryview]]]:
    """Yield the files of a folder that transformers loads. ConfigError if no family fits this model.

    kind  of all tensors
    ends  ids that end a text, if the tokenizer's conventions have none
    """
    if kind.block > 1:
        raise ConfigError(f"{kind.name} is for a GGUF only. Use --to gguf, or --dtype float32, float16 or bfloat16.")
    family = family_of(config, FAMILIES, "transformers")
    full, whole = completed(arrays, config, family)
    for array, numbers in full.items():
        require_room(array, numbers, kind)
    known = conventions.conventions_of(tokens.known(tokenizer))
    ids = conventions.ids(known if known.ends else replace(known, ends=tuple(ends)))
    described = list(tokens.files(tokenizer, config.seq_len))  # fails before anything is written
    yield CONFIG, _json(as_json(family, whole, ids, kind.name))
    yield GENERATION, _json({**ids, **conventions.generation(known)})
    yield from described
    parts = {
        piece.theirs if piece.theirs == family.head else family.prefix + piece.theirs: piece
        for piece in pieces(whole, family.tensors)
    }
    yield WHOLE, content(parts, full, kind)


def _json(values: object) -> bytes:
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()
