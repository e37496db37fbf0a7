"""tiktoken's rank files: on each line a token in base64 and its rank, which is its id.

Such a file holds no pre-tokenizer and no special tokens; the caller gives them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from byhand.errors import DataError
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.symbols import LARGEST, byte_symbols, visible_bytes


def of_ranks(content: bytes, split: str, special: Sequence[str] = ()) -> BytePairTokenizer:
    """Return the tokenizer of a rank file, with special tokens appended. DataError if it is invalid."""
    visible, vocabulary = visible_bytes(), dict[str, int]()
    for number, line in enumerate(content.splitlines(), 1):
        if not line:
            continue
        encoded, _, rank = line.partition(b" ")
        try:
            token = base64.b64decode(encoded, validate=True)
            whole = bool(token) and rank.isdigit() and len(rank) < 10 and int(rank) < LARGEST
        except binascii.Error:
            token, whole = b"", False
        symbol = "".join(visible[byte] for byte in token)
        if not whole or symbol in vocabulary:
            raise DataError(f"its line {number} is not a token in base64 and its rank, or repeats a token")
        vocabulary[symbol] = int(rank)
    if lacking := [byte for byte, sign in enumerate(visible) if sign not in vocabulary]:
        raise DataError(f"it has no rank for the byte {lacking[0]}")
    size = max(vocabulary.values()) + 1
    return BytePairTokenizer(vocabulary, None, split=split, special={t: size + k for k, t in enumerate(special)})


def as_ranks(tokenizer: BytePairTokenizer) -> bytes:
    """Return the rank file of a tokenizer. DataError if ranks would give other ids than its merges."""
    ids, signs = tokenizer.vocabulary, byte_symbols().keys()
    made = [ids[left + right] for left, right in tokenizer.merges or ()]
    if made != sorted(set(made)) or not signs <= ids.keys() or tokenizer.normal:
        raise DataError("tiktoken's ranks need a token for each byte, and ids in the order of the merges")
    if tokenizer.merges is not None and len(ids) != len(signs) + len(made):
        raise DataError("the vocabulary has tokens that no merge makes, which tiktoken would use")
    if tokenizer.merges is not None and BytePairTokenizer(ids, None).listed_merges() != tokenizer.merges:
        raise DataError("tiktoken would merge other tokens than the merges")
    lines = [
        base64.b64encode(tokenizer.token_bytes[token]) + b" %d\n" % token
        for token in sorted(ids.values())
    ]  # fmt: skip
    return b"".join(lines)
