"""tokenizer.json of SentencePiece's BPE, as in Llama, Mistral and Gemma: pieces, byte fallback, ▁ for a space.

Two ways to prepend ▁ are known: the normalizer Prepend, in every section, and the pre-tokenizer Metaspace, in
sections that do not begin with a space, perhaps only in the first. Words are not split.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.errors import DataError
from byhand.tokenizers.sections import SPACE
from byhand.tokenizers.sentencepiece import SentencePieceTokenizer

SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
PREPEND = {"type": "Prepend", "prepend": SPACE}
SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
METASPACE = {"type": "Metaspace", "replacement": SPACE, "split": False}
SCHEMES = {"words": "always", "first": "first", "none": "never"}
BACK = [
    {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
]
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def of_steps(values: Mapping[str, Any]) -> str:
    """Return the prefix set by normalizer, pre-tokenizer and decoder. DataError if they are unknown."""
    normal, pre, decoder = (values.get(name) for name in ("normalizer", "pre_tokenizer", "decoder"))
    prefix = None
    if normal == {"type": "Sequence", "normalizers": [PREPEND, SPACES]} and pre is None:
        prefix = "each"
    elif normal == SPACES and pre in (None, SPLIT):  # no space is left to split at
        prefix = "none"
    elif normal is None and isinstance(pre, dict):
        found = {**pre, "split": pre.get("split", True)}
        prefix = next((ours for ours, name in SCHEMES.items() if found == METASPACE | {"prepend_scheme": name}), None)
    if prefix is None:
        raise DataError("byhand does not know its normalizer and pre_tokenizer for SentencePiece's tokens")
    steps = BACK + ([STRIP] if prefix != "none" else [])
    if decoder != {"type": "Sequence", "decoders": steps}:
        raise DataError("its decoder is not that of SentencePiece's tokens")
    return prefix


def as_steps(prefix: str) -> dict[str, Any]:
    """Return normalizer, pre-tokenizer and decoder."""
    scheme = None if prefix in ("each", "none") else {**METASPACE, "prepend_scheme": SCHEMES[prefix]}
    each = {"type": "Sequence", "normalizers": [PREPEND, SPACES]}
    return {
        "normalizer": each if prefix == "each" else SPACES if scheme is None else None,
        "pre_tokenizer": scheme,
        "decoder": {"type": "Sequence", "decoders": BACK + ([STRIP] if prefix != "none" else [])},
    }


def with_ranks(tokenizer: SentencePieceTokenizer) -> SentencePieceTokenizer:
    """Return a tokenizer without its merges, if they are all that make each piece, in the order of the ids."""
    plain = SentencePieceTokenizer(
        tokenizer.vocabulary, special=tokenizer.special, late=tokenizer.late, prefix=tokenizer.prefix
    )
    same = not plain.lacking and plain.listed_merges() == tokenizer.merges
    return plain.using(tokenizer.conventions) if same else tokenizer
