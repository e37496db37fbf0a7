"""A model file of llm.c: 256 integers, then each of sixteen arrays for all blocks.

    i32 20240326, version (number format), T, V, L, H, C, V padded to a multiple of 128; zeros to 1024 bytes
    then the arrays in the order of FACTS, those of blocks with the block as the first axis

GPT-2 with the tanh form of GELU; the LM head is the token embedding. Padding tokens are dropped.

Source      https://github.com/karpathy/llm.c/blob/master/train_gpt2.py (write_model)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ByhandError, DataError
from byhand.files.weights import OpenFile, Stored
from byhand.formats.registry import Format, called
from byhand.interop.foreign import Foreign
from byhand.interop.hugging_face.families import GPT2
from byhand.interop.tensors import facts, from_theirs, pieces

MAGIC_NUMBER, HEADER = 20240326, 1024
MAGIC = MAGIC_NUMBER.to_bytes(4, "little")
VERSIONS = called("llm.c")
SETTINGS = ("seq_len", "vocab_size", "n_layers", "n_heads", "d_model")  # of the header, in order
FACTS = facts("""
    wte = wte
    wpe = wpe
    blocks.*.ln_1.gain = ln1w *
    blocks.*.ln_1.bias = ln1b *
    blocks.*.attn.w_qkv = qkvw * : T
    blocks.*.attn.b_qkv = qkvb *
    blocks.*.attn.w_proj = attprojw * : T
    blocks.*.attn.b_proj = attprojb *
    blocks.*.ln_2.gain = ln2w *
    blocks.*.ln_2.bias = ln2b *
    blocks.*.mlp.w_fc = fcw * : T
    blocks.*.mlp.b_fc = fcb *
    blocks.*.mlp.w_out = fcprojw * : T
    blocks.*.mlp.b_out = fcprojb *
    ln_f.gain = lnfw
    ln_f.bias = lnfb
""")


def read(path: Path) -> Foreign:
    """Return the model of a file. DataError or ConfigError in one line if it is damaged."""
    with OpenFile(path) as file:
        head = file.read(0, min(HEADER, file.size)).tobytes()
        if len(head) < HEADER or not head.startswith(MAGIC):
            raise file.damaged("it does not begin with llm.c's header of 1024 bytes")
        _, version, *sizes, padded = np.frombuffer(head, "<i4")[:8].tolist()
        if any(head[32:]):
            raise file.damaged("its header has unknown fields")
        if version not in VERSIONS:
            known = " and ".join(f"{number} ({kind.name})" for number, kind in VERSIONS.items())
            raise DataError(f"{path} has version {version}, but only {known} are known.")
        settings = GPT2.usual() | dict(zip(SETTINGS, sizes, strict=True))
        try:
            config = ModelConfig(**settings, tied_embeddings=True)
        except ByhandError as error:
            raise DataError(f"{path}: {error}") from None
        vocab = config.vocab_size
        if not vocab <= padded <= vocab + 1024:
            raise file.damaged(f"it has {vocab:,} tokens, padded to {padded:,}")
        stored, end = _places(config, (padded - vocab) * config.d_model, VERSIONS[version])
        if end != file.size:
            raise file.damaged(f"it has {file.size:,} bytes, but its sizes say {end:,}")
        return Foreign("llm.c", config, from_theirs(lambda name: file.floats(stored[name], name), config, FACTS))


def _places(config: ModelConfig, padding: int, kind: Format) -> tuple[dict[str, Stored], int]:
    """Return the offset of each array, and of the end; `padding` numbers follow the token embedding."""
    kinds = [fact.theirs[0].partition(" ")[0] for fact in FACTS]
    places, place = dict[str, Stored](), HEADER
    # the sort is stable: within a kind, blocks stay in order
    for piece in sorted(pieces(config, FACTS), key=lambda piece: kinds.index(piece.theirs.partition(" ")[0])):
        places[piece.theirs] = array = Stored(kind, piece.shape, place)
        place += array.size + (kind.bytes(padding) if piece.theirs == "wte" else 0)
    return places, place
