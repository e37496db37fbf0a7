"""Small tokenizers of SentencePiece's kind, in other programs' files, written from the formats' descriptions."""

from __future__ import annotations

import struct
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

UNK, CONTROL, NORMAL, BYTE = 2, 3, 1, 6
TEXT = (
    "the cat and the hen   sat on the mat, and then the other hat. 1212 hello hello the end! aaaa aaa aaaaaaa "
    "naïve naïve 中文 中文字 don't I'll we've they're 'the' (the) the the  the   the <the> e.g. ... !! 0x1F 0x1F "
) * 3


@cache
def learnt(count: int = 80) -> tuple[list[tuple[str, str]], list[str]]:
    """Return merges of characters, the commonest pair first, and the characters."""
    rows = Counter(tuple("▁" + word) for word in TEXT.split(" "))
    merges = []
    for _ in range(count):
        pairs = Counter[tuple[str, str]]()
        for row, times in rows.items():
            for pair in pairwise(row):
                pairs[pair] += times
        best = max(sorted(pairs), key=pairs.__getitem__)
        merges.append(best)
        rows = Counter({_joined(row, best): times for row, times in rows.items()})
    return merges, sorted(set(TEXT.replace(" ", "▁")))


def _joined(row: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    found = list[str]()
    for piece in row:
        if found and (found[-1], piece) == pair:
            found[-1] += piece
        else:
            found.append(piece)
    return tuple(found)


def pieces() -> list[tuple[str, float, int]]:
    """Return text, score and kind of each token, in Llama's order; runs of spaces are pieces too."""
    merges, signs = learnt()
    made = list(dict.fromkeys([*map("".join, merges), "▁▁", "▁▁▁▁", "▁▁▁"]))
    found = [("<unk>", 0.0, UNK), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    found += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    return found + [(piece, -float(k), NORMAL) for k, piece in enumerate([*made, *signs])]


def tokenizer_json(prefix: str = "each", late: bool = False) -> dict[str, Any]:
    """Return the tokenizer.json that transformers converts these pieces to."""
    vocab = {text: token for token, (text, _, _) in enumerate(pieces())}
    normal = [text for text, _, kind in pieces() if kind == NORMAL]
    merges = [
        [left, whole[len(left) :]]
        for whole in normal
        for left in sorted((whole[:k] for k in range(1, len(whole))), key=lambda part: vocab.get(part, 0))
        if left in vocab and whole[len(left) :] in vocab
    ]
    prepend, spaces = {"type": "Prepend", "prepend": "▁"}, {
        "type": "Replace", "pattern": {"String": " "}, "content": "▁",
    }  # fmt: skip
    scheme = {"words": "always", "first": "first"}.get(prefix)
    back = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": late, "special": True}
    begin = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": vocab[text], "content": text, **flags} for text in ("<unk>", "<s>", "</s>")],
        "normalizer": {"type": "Sequence", "normalizers": [prepend, spaces]} if prefix == "each"
        else spaces if prefix == "none" else None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": False}
        if scheme else None,
        "post_processor": {
            "type": "TemplateProcessing", "single": begin, "pair": begin,
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
        },
        "decoder": {"type": "Sequence", "decoders": back + (strip if prefix != "none" else [])},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
            "vocab": vocab, "merges": merges,
        },
    }  # fmt: skip


def with_text_tokens() -> dict[str, Any]:
    """Return a tokenizer.json with added tokens that are text, as Gemma's: runs of spaces and of newlines, tags."""
    values = tokenizer_json("none")
    vocab = values["model"]["vocab"]
    new = max(vocab.values()) + 1
    added = {"▁▁": vocab["▁▁"], "▁▁▁▁": vocab["▁▁▁▁"], "▁<b>▁": new, "\n\n": new + 1}
    usual = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    values["added_tokens"] += [{"id": token, "content": text, **usual} for text, token in added.items()]
    return values


def tokenizer_model(model: int = 2, prefix: bool = True, suffix: bool = False) -> bytes:
    """Return a tokenizer.model."""
    found = b"".join(
        _field(1, _field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + bytes([0x18, kind]))
        for text, score, kind in pieces()
    )
    trainer = bytes([0x18, model, 0xC0, 0x01, suffix]) + b"\xc0\x02\x00\xc8\x02\x01\xd0\x02\x02"
    return found + _field(2, trainer) + _field(3, bytes([0x18, prefix, 0x20, 0, 0x28, 1]))


def _field(number: int, content: bytes) -> bytes:
    length, size = len(content), b""
    while length > 127:
        size, length = size + bytes([length & 127 | 128]), length >> 7
    return bytes([number << 3 | 2]) + size + bytes([length]) + content


def tokenizer_bin() -> bytes:
    """Return llama2.c's tokenizer.bin."""
    found = struct.pack("<i", 27)
    for token, (text, score, _) in enumerate(pieces()):
        written = f"\n{text}\n" if token in (1, 2) else text.replace("▁", " ")
        found += struct.pack("<fi", score, len(written.encode())) + written.encode()
    return found
