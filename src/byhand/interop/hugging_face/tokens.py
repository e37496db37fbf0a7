"""Tokenizers in a transformers folder: tokenizer.json, tokenizer.model, or vocab.json and merges.txt.

Bytes are 256 symbols.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from byhand.errors import DataError
from byhand.files.reading import SMALL, parse_json, read_regular
from byhand.interop.hugging_face import conventions
from byhand.tokenizers import forms
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import BYTES, ByteTokenizer
from byhand.tokenizers.hugging_face import Known, as_hugging_face
from byhand.tokenizers.symbols import byte_symbols
from byhand.tokenizers.tokenizer import ENDS, Tokenizer


def of_folder(folder: Path) -> Tokenizer | None:
    """Return a folder's tokenizer with its conventions; None if it has none."""
    if not os.path.exists(folder / forms.OURS) and not os.path.exists(folder / forms.MODEL):
        if not os.path.exists(folder / forms.VOCAB) or not os.path.exists(folder / forms.MERGES):
            return None
        _require_gpt2(folder / conventions.SETTINGS)
    found = forms.read(folder)
    return plainest(conventions.with_conventions(found, folder)) if isinstance(found, Known) else found


def _require_gpt2(path: Path) -> None:
    """Raise DataError if the settings next to vocab.json and merges.txt require another tokenizer than GPT-2's."""
    try:
        found = parse_json(read_regular(path, SMALL)) if os.path.exists(path) else {}
        kind, added = found.get("tokenizer_class"), found.get("added_tokens_decoder") or {}
        known = kind in (None, "GPT2Tokenizer", "GPT2TokenizerFast") and not found.get("add_prefix_space")
        sound = known and all(token["content"] in ENDS for token in added.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise DataError(f"{path} asks for another tokenizer than GPT-2's, which only a tokenizer.json describes.")


def of_path(path: Path) -> Tokenizer:
    """Return the tokenizer of a file or a folder. DataError if it is damaged or its kind is unknown."""
    if path.is_dir() and (whole := of_folder(path)):
        return whole
    found = forms.read(path)
    return plainest(found)


def plainest(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer, or the byte tokenizer if it has only the bytes' symbols."""
    if not isinstance(tokenizer, BytePairTokenizer):
        return tokenizer
    bytes_alone = tokenizer.vocabulary == byte_symbols()
    nothing_else = not tokenizer.merges and not tokenizer.special and not tokenizer.conventions
    return BYTES if bytes_alone and nothing_else else tokenizer


def known(tokenizer: Tokenizer) -> Known:
    """Return a tokenizer in other programs' form; DataError if there is none."""
    if isinstance(tokenizer, ByteTokenizer):
        return BytePairTokenizer(dict(byte_symbols()), [])
    if isinstance(tokenizer, Known):
        return tokenizer
    raise DataError(f"other programs cannot store a {tokenizer.kind} tokenizer. Use byte-pair encoding or bytes.")


def files(tokenizer: Tokenizer, seq_len: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files that AutoTokenizer loads."""
    pairs = known(tokenizer)
    yield forms.OURS, as_hugging_face(pairs)
    texts = {token: text for text, token in pairs.special.items()}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": seq_len,
        "clean_up_tokenization_spaces": False, **dict(conventions.settings(conventions.conventions_of(pairs), texts)),
    }  # fmt: skip
    yield conventions.SETTINGS, (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()
