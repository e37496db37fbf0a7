"""Files of SentencePiece's tokens: `tokenizer.model`, a protobuf, and llama2.c's `tokenizer.bin`.

    tokenizer.model   1: pieces {1: text, 2: score, 3: kind}   2: {3: model, 2 is BPE;
                      24: treat_whitespace_as_suffix}   3: {2: character map,
                      3: add_dummy_prefix, 4: remove_extra_whitespaces, 5: escape_whitespaces}
    tokenizer.bin     i32 longest text, then for each token f32 score, i32 bytes, its text

Both are read within bounds. Higher scores are merged first. llama2.c writes spaces instead of ▁.

Source      https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto;
            https://github.com/karpathy/llama2.c/blob/master/tokenizer.py
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from byhand.errors import DataError
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.sections import SPACE
from byhand.tokenizers.sentencepiece import BYTE, SentencePieceTokenizer
from byhand.tokenizers.symbols import LARGEST

KINDS = {1, 2, 3, 4, 5, 6}  # of pieces, in GGUF too
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTES = sorted(KINDS)
BPE = 2
DAMAGED = "it is damaged: it is not a tokenizer's protobuf"


class VocabularyPiece(NamedTuple):
    """A token: its text, its score, and its kind."""

    text: str
    score: float
    kind: int = NORMAL


def of_pieces(pieces: Sequence[VocabularyPiece], prefix: str = "each") -> SentencePieceTokenizer:
    """Return the tokenizer from pieces in the order of their ids. DataError if they are invalid."""
    if len({piece.text for piece in pieces if piece.kind != UNUSED}) < sum(p.kind != UNUSED for p in pieces):
        raise DataError("it has a token twice")
    if strange := sorted(str(kind)[:20] for kind in {piece.kind for piece in pieces} - KINDS):
        raise DataError(f"it has a token of the kind {strange[0]}, which byhand does not know")
    if not np.isfinite([piece.score for piece in pieces]).all():
        raise DataError("a score is not a finite number")
    special = {
        piece.text.replace(SPACE, " ") if piece.kind == USER_DEFINED else piece.text: token
        for token, piece in enumerate(pieces)
        if piece.kind in (UNKNOWN, CONTROL, USER_DEFINED)
    }
    vocabulary = {piece.text: token for token, piece in enumerate(pieces) if piece.kind in (NORMAL, BYTES)}
    if wrong := [
        p.text for p in pieces if (p.kind == BYTES) is not bool(BYTE.fullmatch(p.text)) and p.kind != UNUSED
    ]:
        raise DataError(f"its token {wrong[0][:40]!r} is a byte by its name or by its kind, but not both")
    made = {p.text: p.score for p in pieces if p.kind == NORMAL and len(p.text) > 1}
    ranks = {score: rank for rank, score in enumerate(sorted(set(made.values()), reverse=True))}
    order = sorted(made, key=vocabulary.__getitem__)
    by_id = all(made[one] > made[other] for one, other in pairwise(order))
    shown = tuple(token for token, piece in enumerate(pieces) if piece.kind == USER_DEFINED)
    return SentencePieceTokenizer(
        vocabulary, ranks=None if by_id else {piece: ranks[score] for piece, score in made.items()},
        special=special, prefix=prefix,
    ).using(Conventions(shown=shown))  # fmt: skip


def of_model(content: bytes) -> SentencePieceTokenizer:
    """Return the tokenizer of a tokenizer.model. DataError if it is damaged, or not BPE with byte fallback."""
    pieces, trainer, normal = list[VocabularyPiece](), dict[int, Any](), dict[int, Any]()
    for number, value in _fields(content):
        if number == 1 and isinstance(value, bytes):
            found = dict(_fields(value))
            text, score, kind = found.get(1, b""), found.get(2, 0.0), found.get(3, NORMAL)
            if not isinstance(text, bytes) or not isinstance(score, float) or not isinstance(kind, int):
                raise DataError(DAMAGED)
            if len(pieces) >= LARGEST:
                raise DataError(f"it has more than {LARGEST:,} tokens")
            pieces.append(VocabularyPiece(_text(text), score, kind))
        elif number in (2, 3) and isinstance(value, bytes):
            (trainer if number == 2 else normal).update(_fields(value))
    if trainer.get(3, 1) != BPE:
        raise DataError("its model is not BPE")
    if trainer.get(24):
        raise DataError("its pieces have their space at the end (treat_whitespace_as_suffix)")
    if normal.get(2) or normal.get(4, 1) or not normal.get(5, 1):
        raise DataError("it normalises characters or spaces before it merges")
    if normal.get(3, 1) and (symbol := next((p.text for p in pieces if p.kind == USER_DEFINED), "")):
        raise DataError(f"it adds a space before a text, but not after its symbol {symbol[:40]!r}")
    found = of_pieces(pieces, "each" if normal.get(3, 1) else "none")
    ids = {name: trainer.get(field, usual) for name, field, usual in (("unk", 40, 0), ("bos", 41, 1), ("eos", 42, 2))}
    known: dict[str, Any] = {name: token for name, token in ids.items() if token in found.special_ids}
    return found.using(_llama(found, **known))


def of_llama2_c(content: bytes) -> SentencePieceTokenizer:
    """Return the tokenizer of a tokenizer.bin: Llama's own tokens first, then 256 bytes."""
    pieces, at = list[VocabularyPiece](), 4
    while at < len(content):
        if at + 8 > len(content) or len(pieces) >= LARGEST:
            raise DataError("it is damaged: it is not a tokenizer.bin of llama2.c")
        score, length = struct.unpack_from("<fi", content, at)
        at += 8 + length
        if length < 0 or at > len(content):
            raise DataError("it is damaged: it is not a tokenizer.bin of llama2.c")
        text = _text(content[at - length : at])
        kind = (UNKNOWN, CONTROL, CONTROL)[len(pieces)] if len(pieces) < 3 else NORMAL
        text = text.strip("\n") if kind == CONTROL else text.replace(" ", SPACE)
        pieces.append(VocabularyPiece(text, score, BYTES if BYTE.fullmatch(text) else kind))
    found = of_pieces(pieces)
    return found.using(_llama(found, unk=0, bos=1, eos=2))


def _llama(found: SentencePieceTokenizer, **known: int) -> Conventions:
    """Return Llama's conventions, which the files lack: BOS before every text, EOS ends it."""
    ends = (known["eos"],) if "eos" in known else ()
    before = (known["bos"],) if "bos" in known else ()
    return Conventions(**known, ends=ends, before=before, shown=found.conventions.shown)  # pyright: ignore


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise DataError("it is damaged: a token is not UTF-8") from None


def _fields(content: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield the fields of a protobuf message: number, and an integer, a float32 or bytes."""
    at = 0
    while at < len(content):
        key, at = _integer(content, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _integer(content, at)
            yield number, value
            continue
        length = {1: 8, 5: 4}.get(wire, -1)
        if wire == 2:
            length, at = _integer(content, at)
        if length < 0 or at + length > len(content):
            raise DataError(DAMAGED)
        part, at = content[at : at + length], at + length
        yield number, struct.unpack("<f", part)[0] if wire == 5 else part


def _integer(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(content) and shift < 70:
        value |= (content[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 128:
            return value, at
    raise DataError(DAMAGED)
