"""Tokenizers in a GGUF's metadata: symbols, their types, merges, and which pre-tokenizer cuts the words."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byhand.errors import ConfigError, DataError
from byhand.interop.gguf import conventions
from byhand.interop.gguf.conventions import KEY
from byhand.interop.hugging_face.tokens import byte_pairs, plainest
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.symbols import is_pair, ordinary
from byhand.tokenizers.tokenizer import Tokenizer

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
NO_MERGE = "<|no|> <|merge|>"  # llama.cpp refuses an empty list; these never stand side by side in a word
SPLITS = {  # by llama.cpp's names: our pre-tokenizer, and whether a word that is a token becomes it without merges
    "gpt-2": ("gpt2", False),
    "qwen2": ("qwen2", False),
    "smollm": ("smollm", False),
    "dbrx": ("gpt4", False),
    "llama-bpe": ("gpt4", True),
}


def as_keys(tokenizer: Tokenizer, vocab_size: int) -> dict[str, Any]:
    """Return the metadata of a tokenizer; ids that it lacks get a name and the type `unused`.

    llama.cpp does not compose characters: text that is not in NFC gets other ids there if the tokenizer composes it.
    """
    pairs = byte_pairs(tokenizer)
    names = {token: text for text, token in pairs.symbols().items()}
    if vocab_size < pairs.vocab_size:
        raise ConfigError(f"the model has {vocab_size} tokens, but its tokenizer {pairs.vocab_size}.")
    cut = pairs.split.name, pairs.whole
    pre = next((name for name, ours in SPLITS.items() if ours == cut), None)
    if pre is None:
        raise ConfigError(f"llama.cpp merges every word that {cut[0]} cuts, but this tokenizer looks words up first.")
    special = set(pairs.special.values())
    kinds = [CONTROL if i in special else NORMAL if i in names else UNUSED for i in range(vocab_size)]
    for token in pairs.conventions.shown:
        kinds[token] = USER_DEFINED
    return {
        f"{KEY}model": "gpt2",
        f"{KEY}pre": pre,
        f"{KEY}tokens": [names.get(i, f"[PAD{i}]") for i in range(vocab_size)],
        f"{KEY}token_type": kinds,
        f"{KEY}merges": [" ".join(pair) for pair in pairs.listed_merges()] or [NO_MERGE],
        **conventions.as_keys(pairs),
    }


def of_keys(keys: Mapping[str, Any], vocab_size: int, path: Path) -> Tokenizer | None:
    """Return the tokenizer that the metadata describe; None if they name none. DataError if it is not known."""
    if f"{KEY}model" not in keys:
        return None
    model, pre = str(keys[f"{KEY}model"]), str(keys.get(f"{KEY}pre"))
    if model != "gpt2" or pre not in SPLITS:
        raise DataError(
            f"{path}: its tokenizer is {model[:20]!r}, {pre[:20]!r}, but only byte-level BPE is known, cut as in "
            f"{', '.join(SPLITS)}. Name another one with --tokenizer."
        )
    listed, merges, kinds = (_list(keys.get(f"{KEY}{name}")) for name in ("tokens", "merges", "token_type"))
    kinds = kinds or [NORMAL] * vocab_size
    sound = all(isinstance(text, str) for text in listed + merges) and len(set(listed)) == len(listed)
    if not sound or not len(listed) == len(kinds) == vocab_size:
        raise DataError(
            f"{path} is damaged: its tokens are not those of a model of {vocab_size:,}. Use another copy."
        )
    by_kind: dict[Any, dict[str, int]] = {}
    for token, (text, kind) in enumerate(zip(listed, kinds, strict=True)):
        by_kind.setdefault(kind, {})[text] = token
    pairs = [merge.split(" ") for merge in merges if merge != NO_MERGE]
    special = by_kind.get(CONTROL, {}) | by_kind.get(USER_DEFINED, {})
    split, whole = SPLITS[pre]
    try:
        found = BytePairTokenizer.from_json({
            "vocabulary": by_kind.get(NORMAL, {}) | ordinary(special, filter(is_pair, pairs), special),
            "merges": pairs, "split": split, "whole": whole, "special": special,
        })  # fmt: skip
        shown = tuple(by_kind.get(USER_DEFINED, {}).values())
        return plainest(conventions.with_conventions(found, keys, shown, pre in conventions.BEGIN))
    except DataError as error:
        raise DataError(f"{path}: its tokenizer: {error}") from None


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, array)) else []
