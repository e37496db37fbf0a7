"""A model file of llama2.c: a Llama in float32, its sizes, then each kind of array for all blocks.

    version 0   i32 C, F, L, H, K, V, T; V is negative if the LM head has its own weight
    version 1   "24ka", i32 1, the same with V positive, a byte that is 1 if the LM head is tied; zeros to 256 bytes

Version 0 has no magic bytes: it is recognised by sizes that give exactly the file's length. It also holds the rotary
angles of each position, which are recomputed here. Rotated numbers are neighbours.

Source      https://github.com/karpathy/llama2.c/blob/master/export.py
"""

from __future__ import annotations

import os
import struct
from functools import partial
from pathlib import Path

from byhand.config import ModelConfig
from byhand.errors import ByhandError, DataError
from byhand.files.weights import OpenFile, Stored
from byhand.formats.registry import FLOAT32
from byhand.interop.families import plain
from byhand.interop.foreign import Foreign
from byhand.interop.hugging_face.families import LLAMA
from byhand.interop.pairing import with_pairing
from byhand.interop.tensors import Fact, facts, from_theirs, pieces
from byhand.tokenizers import forms
from byhand.tokenizers.tokenizer import Tokenizer

MAGIC = b"24ka"
TOKENIZER = "tokenizer.bin"
HEAD, HEAD_1 = struct.Struct("<7i"), 256
SETTINGS = ("d_model", "d_ff", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")  # in order
MATRICES = """
    blocks.*.attn.w_qkv = w{q,k,v} * : T
    blocks.*.attn.w_proj = wo * : T
"""
MLP = """
    blocks.*.mlp.w_gate = w1 * : T
    blocks.*.mlp.w_out = w2 * : T
    blocks.*.mlp.w_up = w3 * : T
"""
FIRST, SECOND, LAST = "blocks.*.ln_1.gain = rms_att *", "blocks.*.ln_2.gain = rms_ffn *", "ln_f.gain = rms_final"
HEADS, TABLE = "lm_head.w = wcls : T", "wte = wte"
ORDERS = {  # of the arrays, by version
    0: facts("\n".join([TABLE, FIRST, MATRICES, SECOND, MLP, LAST, "angles = freq_cis", HEADS])),
    1: facts("\n".join([FIRST, SECOND, LAST, TABLE, MATRICES, MLP, HEADS])),
}


def is_model(path: Path) -> bool:
    """Return whether a file is a model of version 0: its sizes give its length."""
    with OpenFile(path) as file:
        return _config(file, 0) is not None


def read(path: Path) -> Foreign:
    """Return the model of a file. DataError or ConfigError in one line if it is damaged."""
    with OpenFile(path) as file:
        start = file.read(0, min(8, file.size)).tobytes()
        version = struct.unpack("<i", start[4:])[0] if start.startswith(MAGIC) and len(start) == 8 else 0
        if version not in ORDERS:
            raise DataError(f"{path} has version {version}, but only 0 and 1 (float32) are known.")
        rest = file.read(0, min(HEAD_1, file.size)).tobytes()[8 + HEAD.size :] if version else b""
        if any(rest[1:]) or rest[:1] > b"\1":
            raise file.damaged("its header has unknown fields")
        found = _config(file, version)
        if found is None:
            raise file.damaged("its length does not match its sizes")
        config, stored = found
        arrays = from_theirs(lambda name: file.floats(stored[name], name), config, ORDERS[version])
    arrays, config = with_pairing(arrays, config, "halves")
    return Foreign("llama2.c", config, arrays, partial(_tokenizer, path.parent / TOKENIZER, config.vocab_size))


def _tokenizer(path: Path, vocab_size: int) -> Tokenizer | None:
    """Return the tokenizer next to a model, if it has as many tokens."""
    found = forms.read(path) if os.path.exists(path) else None
    return found if found and found.vocab_size == vocab_size else None


def _config(file: OpenFile, version: int) -> tuple[ModelConfig, dict[str, Stored]] | None:
    """Return the config and the places of the arrays; None if they do not end with the file."""
    begin, end = (8, HEAD_1) if version else (0, HEAD.size)
    if file.size <= end:
        return None
    head = file.read(begin, HEAD.size + 1).tobytes()
    settings = dict(zip(SETTINGS, HEAD.unpack(head[:-1]), strict=True))
    tied = bool(head[-1]) if version else settings["vocab_size"] > 0
    settings["vocab_size"] = abs(settings["vocab_size"])
    if settings["n_layers"] * settings["d_model"] > file.size:  # refuse before listing that many layers
        return None
    try:
        usual = LLAMA.usual() | {"norm_eps": 1e-5, "rope_pairing": "neighbours", "tied_embeddings": tied}
        config = plain(ModelConfig(**usual | settings))
    except ByhandError:
        return None
    places, end = _places(config, ORDERS[version], end)
    return (config, places) if end == file.size else None


def _places(config: ModelConfig, order: tuple[Fact, ...], place: int) -> tuple[dict[str, Stored], int]:
    """Return the place of each array, and the end."""
    kinds = [name.partition(" ")[0] for fact in order for name in fact.theirs]
    places = dict[str, Stored]()
    angles = config.seq_len * (config.head_width // 2) * 2 * 4
    parts = sorted(pieces(config, order), key=lambda part: kinds.index(part.theirs.partition(" ")[0]))
    for part in parts:
        place += angles if part.theirs == "wcls" and "freq_cis" in kinds else 0
        places[part.theirs] = array = Stored(FLOAT32, part.shape, place)
        place += array.size
    tail = angles if config.tied_embeddings and "freq_cis" in kinds else 0
    return places, place + tail
