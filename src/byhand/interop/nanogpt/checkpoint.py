"""A checkpoint of nanoGPT, ckpt.pt, read by torch's weights-only loader where torch is installed.

A zip with a pickle inside. Two checks come before torch: the zip's entries are not compressed and not larger than the
whole; the pickle names only functions that make tensors, and nests tuples at most LEVELS deep (`nesting`). torch then
maps the file into memory and makes only tensors and plain values.

Source      https://github.com/karpathy/nanoGPT (model.py, train.py)
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ByhandError, DataError
from byhand.files.weights import OpenFile
from byhand.interop.foreign import Foreign
from byhand.interop.hugging_face.families import GPT2, HEAD, without_prefixes
from byhand.interop.nanogpt.nesting import calls, levels
from byhand.interop.settings import settings_of
from byhand.interop.tensors import from_theirs, pieces, require_tensors

MAGIC = b"PK\3\4"
ENTRIES, PICKLE, LEVELS = 1 << 16, 1 << 22, 16  # files in the zip, bytes of its pickle, tuples in tuples
KNOWN = {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"}
STORAGE = re.compile(r"torch ([A-Z][A-Za-z0-9]*Storage|b?float[0-9]+|int[0-9]+)")
COMPILED = "_orig_mod."  # before the names of a compiled model
LINEAR = ("w_qkv", "w_proj", "w_fc", "w_out")  # nn.Linear, [out, in], where GPT-2 has Conv1D
FACTS = tuple(replace(fact, transposed=fact.ours.endswith(LINEAR)) for fact in GPT2.tensors)
KEYS = {
    "vocab_size": "vocab_size", "block_size": "seq_len", "n_embd": "d_model", "n_layer": "n_layers",
    "n_head": "n_heads", "bias": "mlp_bias",
}  # fmt: skip
MISSING = {"bias": True}  # as nanoGPT takes it without the key
UNUSED = {"dropout"}  # changes nothing that is computed here


def read(path: Path) -> Foreign:
    """Return the model of a ckpt.pt. DataError in one line if it is damaged, is another zip, or torch is missing."""
    _require_plain(path)
    found = _loaded(path)
    config = _config(found, path)
    state = found["model"]
    tensors = {name: state[stored] for name, stored in without_prefixes(path, state, COMPILED, GPT2.prefix).items()}
    due = {piece.theirs: piece.shape for piece in pieces(config, FACTS)}
    due[HEAD] = config.vocab_size, config.d_model
    zeros = {} if config.mlp_bias else {name: due.pop(name) for name in list(due) if name.endswith(".bias")}
    require_tensors(path, {name: _shape(tensor, name, path) for name, tensor in tensors.items()}, due, "model_args")

    def array(name: str) -> np.ndarray:  # without biases, LayerNorm has none either
        return np.zeros(zeros[name], np.float32) if name in zeros else _array(tensors[name], name, path)

    arrays = from_theirs(array, config, FACTS)
    if not np.array_equal(array(HEAD), arrays["wte"]):
        raise DataError(f"{path} is damaged: its LM head is not its token embedding. Use another copy.")
    return Foreign("nanoGPT", config, arrays)


def _require_plain(path: Path) -> None:
    """Raise DataError unless the zip holds its files uncompressed, one pickle among them, within its size."""
    try:
        with OpenFile(path) as file, zipfile.ZipFile(path) as archive:
            listed = archive.infolist()
            sound = len(listed) <= ENTRIES and sum(entry.file_size for entry in listed) <= file.size
            sound = sound and all(entry.compress_type == zipfile.ZIP_STORED for entry in listed)
            pickles = [entry for entry in listed if entry.filename.endswith("data.pkl")]
            sound = sound and len(pickles) == 1 and pickles[0].file_size <= PICKLE
            content = archive.read(pickles[0]) if sound else b""
            sound = sound and levels(content) <= LEVELS
            foreign = sorted(calls(content) - KNOWN) if sound else []
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile):
        sound, foreign = False, []
    if not sound:
        raise DataError(f"{path} is no whole checkpoint of torch. Use a ckpt.pt as nanoGPT wrote it.")
    if unknown := [name for name in foreign if not STORAGE.fullmatch(name)]:
        raise DataError(
            f"{path} holds {unknown[0][:80]!r} besides tensors and plain values. Save it without, as nanoGPT does."
        )


def _loaded(path: Path) -> dict[str, Any]:
    """Return the tables of a checkpoint."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise DataError(
            f"{path} is a checkpoint of torch, which is not installed. Install torch, or convert the file elsewhere."
        ) from None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # of many kinds, for a damaged file
        why = (str(error).splitlines() or [""])[0].partition(". ")[0][:80]
        raise DataError(f"{path} cannot be loaded: {type(error).__name__}: {why}. Use another copy.") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(key), dict) for key in ("model", "model_args")):
        raise DataError(f"{path} is no checkpoint of nanoGPT: it has no model and model_args.")
    return found


def _config(found: dict[str, Any], path: Path) -> ModelConfig:
    """Return the config of `model_args`."""
    given = found["model_args"]
    if extra := sorted(key if isinstance(key, str) else "" for key in given.keys() - KEYS.keys() - UNUSED):
        raise DataError(f"{path}: nanoGPT has no setting {extra[0][:80]!r}, so it is unknown what it computes.")
    try:
        settings = GPT2.usual() | settings_of(given, KEYS, MISSING)
        settings |= {"activation": "gelu_exact", "tied_embeddings": True}
        settings["attention_bias"] = "all" if settings["mlp_bias"] is True else "none"
        return ModelConfig(**settings)
    except ByhandError as error:
        raise DataError(f"{path}: {error}") from None


def _shape(tensor: Any, name: str, path: Path) -> tuple[int, ...]:
    """Return the shape of a tensor; DataError unless it holds real numbers."""
    import torch  # pyright: ignore[reportMissingImports]

    kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    sound = isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and tensor.dtype in kinds
    if not sound or tensor.is_meta:
        raise DataError(f"{path} is damaged: {name[:80]!r} is no tensor of real numbers. Use another copy.")
    return tuple(tensor.shape)


def _array(tensor: Any, name: str, path: Path) -> np.ndarray:
    """Return a tensor of finite numbers in float32."""
    array = tensor.detach().resolve_neg().float().numpy()
    if not np.isfinite(array).all():
        raise DataError(f"{path} is damaged: {name} holds NaN or infinity. Use another copy.")
    return array
