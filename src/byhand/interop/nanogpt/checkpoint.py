"""A nanoGPT checkpoint, ckpt.pt: torch's zip with a pickle and a file of data for each tensor.

Nothing is unpickled (`pickled`) or compressed, and no two tensors share data, so reading takes no more memory than
the file.

Source      https://github.com/karpathy/nanoGPT (model.py, train.py); torch/serialization.py
"""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ByhandError, DataError
from byhand.files.weights import OpenFile, Stored
from byhand.formats.registry import called
from byhand.interop.foreign import Foreign
from byhand.interop.hugging_face.families import GPT2
from byhand.interop.hugging_face.names import without_prefixes
from byhand.interop.nanogpt import characters, pickled
from byhand.interop.settings import AS_WRITTEN, settings_of
from byhand.interop.tensors import from_theirs, pieces, require_tensors

MAGIC = b"PK\3\4"
ENTRIES, PICKLE = 1 << 16, 1 << 22  # files in the zip, bytes of its pickle
NAMED = 30  # bytes of a zip's local header before the name; it ends with the lengths of name and extra field
STORAGES = called("torch")
COMPILED = "_orig_mod."  # prefix of names in a compiled model
LINEAR = ("w_qkv", "w_proj", "w_fc", "w_out")  # nn.Linear, [out, in], instead of GPT-2's Conv1D
FACTS = tuple(replace(fact, transposed=fact.ours[0].endswith(LINEAR)) for fact in GPT2.tensors)
KEYS = {
    "vocab_size": "vocab_size", "block_size": "seq_len", "n_embd": "d_model", "n_layer": "n_layers",
    "n_head": "n_heads", "bias": "mlp_bias",
}  # fmt: skip
MISSING = {"bias": True}  # nanoGPT's default
UNUSED = {"dropout"}  # no effect here


def read(path: Path) -> Foreign:
    """Return the model of a ckpt.pt. DataError in one line if it is damaged or is another zip."""
    with OpenFile(path) as file:
        places, found = _opened(file)
        if not isinstance(found, dict) or not all(
            isinstance(found.get(key), dict) for key in ("model", "model_args")
        ):
            raise DataError(f"{path} is not a nanoGPT checkpoint: it lacks model or model_args.")
        config, state = _config(found["model_args"], path), found["model"]
        names = without_prefixes(path, state, COMPILED, GPT2.prefix)
        tensors = {name: _stored(file, state[stored], places, name) for name, stored in names.items()}
        due = {piece.theirs: piece.shape for piece in pieces(config, FACTS)}
        due[GPT2.head] = config.vocab_size, config.d_model
        zeros = {} if config.mlp_bias else {name: due.pop(name) for name in list(due) if name.endswith(".bias")}
        require_tensors(path, {name: stored.shape for name, (stored, _) in tensors.items()}, due, "model_args")
        if sum(stored.size for name, (stored, _) in tensors.items() if name != GPT2.head) > file.size:
            raise file.damaged("several tensors share data")

        def array(name: str) -> np.ndarray:  # without biases, those of LayerNorm stay 0
            if name in zeros:
                return np.zeros(zeros[name], np.float32)
            stored, negated = tensors[name]
            numbers = file.floats(stored, name)
            return -numbers if negated else numbers

        arrays = from_theirs(array, config, FACTS)
        if not np.array_equal(array(GPT2.head), arrays["wte"]):
            raise file.damaged("its LM head is not its token embedding")
        trained = found.get("config")
        dataset = trained.get("dataset") if isinstance(trained, dict) else None
        return Foreign("nanoGPT", config, arrays, partial(characters.beside, path, dataset, config.vocab_size))


def _opened(file: OpenFile) -> tuple[dict[str, zipfile.ZipInfo], Any]:
    """Return the files of a zip by their names within its folder, and the content of its pickle."""
    try:
        with zipfile.ZipFile(file.raw) as archive:
            listed = archive.infolist()
            folder = listed[0].filename.partition("/")[0] + "/"
            places = {entry.filename.removeprefix(folder): entry for entry in listed}
            content = places["data.pkl"]
            sound = len({*map(str.casefold, places)}) == len(listed) <= ENTRIES and content.file_size <= PICKLE
            sound = sound and all(entry.filename.startswith(folder) for entry in listed)
            sound = sound and all(entry.compress_type == zipfile.ZIP_STORED for entry in listed)
            sound = sound and sum(entry.file_size for entry in listed) <= file.size
            sound = sound and ("byteorder" not in places or archive.read(places["byteorder"]) == b"little")
            if sound:
                return places, pickled.loaded(archive.read(content))
    except pickled.NotTensors as foreign:
        raise DataError(
            f"{file.path} holds {str(foreign)[:80]!r} besides tensors and plain values. Save it without, as nanoGPT "
            f"does."
        ) from None
    except (OSError, EOFError, ValueError, RuntimeError, LookupError, zipfile.BadZipFile):
        pass
    raise DataError(f"{file.path} is not a complete torch checkpoint. Use a ckpt.pt as nanoGPT wrote it.")


def _stored(file: OpenFile, tensor: Any, places: Mapping[str, zipfile.ZipInfo], name: str) -> tuple[Stored, bool]:
    """Return the place of a tensor's data, and whether it is negated."""
    if not isinstance(tensor, pickled.StoredTensor) or tensor.storage.kind not in STORAGES:
        raise file.damaged(f"{name[:80]!r} is not a tensor of real numbers")
    kind, storage = STORAGES[tensor.storage.kind], tensor.storage
    entry = places.get(f"data/{storage.key}")
    if entry is None or entry.file_size != kind.bytes(storage.count):
        raise file.damaged(f"the data of {name[:80]!r} is missing")
    if not tensor.contiguous or tensor.begin + math.prod(tensor.shape) > storage.count:
        raise file.damaged(f"{name[:80]!r} does not have a number of its own for each element")
    head = file.read(entry.header_offset, NAMED).tobytes()
    begin = entry.header_offset + NAMED + sum(struct.unpack("<HH", head[-4:]))
    return Stored(kind, tensor.shape, begin + kind.bytes(tensor.begin)), tensor.negated


def _config(given: Mapping[str, Any], path: Path) -> ModelConfig:
    """Return the config of `model_args`."""
    if extra := sorted(given.keys() - KEYS.keys() - UNUSED):
        raise DataError(f"{path}: nanoGPT has no setting {extra[0][:80]!r}, so its effect is unknown.")
    try:
        if odd := [key for key, value in given.items() if not isinstance(value, (int, float, str, type(None)))]:
            raise DataError(f"its {odd[0]} is a {type(given[odd[0]]).__name__}. {AS_WRITTEN}")
        settings = GPT2.usual() | settings_of(given, KEYS, MISSING)
        settings |= {"activation": "gelu_exact", "tied_embeddings": True}
        settings["attention_bias"] = "all" if settings["mlp_bias"] is True else "none"
        settings["norm_bias"] = settings["mlp_bias"]
        return ModelConfig(**settings)
    except ByhandError as error:
        raise DataError(f"{path}: {error}") from None
