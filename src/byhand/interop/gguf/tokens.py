"""Tokenizers in a GGUF's metadata: symbols, their types, merges, and the name of the pre-tokenizer.

The model "gpt2" is byte-level BPE. "llama" is SentencePiece: scores instead of merges, a token for each byte.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from byhand.errors import ConfigError, DataError
from byhand.interop.gguf import conventions
from byhand.interop.gguf.conventions import KEY
from byhand.interop.hugging_face.tokens import known, plainest
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.sections import SPACE
from byhand.tokenizers.sentencepiece import SentencePieceTokenizer
from byhand.tokenizers.sentencepiece_files import (
    BYTES,
    CONTROL,
    KINDS,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    VocabularyPiece,
    of_pieces,
)
from byhand.tokenizers.symbols import is_pair, ordinary
from byhand.tokenizers.tokenizer import Tokenizer

log = logging.getLogger(__name__)
LLAMA = {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}  # llama.cpp's defaults
PREFIX = f"{KEY}add_space_prefix"
NO_MERGE = "<|no|> <|merge|>"  # llama.cpp refuses an empty list; these are never adjacent in a word
SPLITS = {  # by llama.cpp's names: our pre-tokenizer, and whether words that are tokens skip the merges
    "gpt-2": ("gpt2", False),
    "qwen2": ("qwen2", False),
    "smollm": ("smollm", False),
    "dbrx": ("gpt4", False),
    "llama-bpe": ("gpt4", True),
    "gpt-4o": ("gpt-4o", False),
    "tekken": ("tekken", True),
    "qwen35": ("qwen35", False),
    "deepseek-v3": ("deepseek-v3", False),
    "deepseek-coder": ("deepseek-coder", False),
}
SAME = {  # llama.cpp's other names for the same
    "gpt-2": ("mpt", "olmo", "jais", "phi-2", "exaone4", "modern-bert", "trillion", "granite-docling"),
    "qwen2": ("deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "grok-2", "solar-open"),
    "smollm": ("starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"),
    "dbrx": ("smaug-bpe", "glm4", "chatglm-bpe"),
    "llama-bpe": ("llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"),
    "gpt-4o": ("llama4", "kanana2", "minimax-m2"),
    "deepseek-v3": ("hunyuan-dense", "joyai-llm"),
}


def as_keys(tokenizer: Tokenizer, vocab_size: int) -> dict[str, Any]:
    """Return the metadata of a tokenizer; ids that it lacks get a name and the type `unused`.

    llama.cpp does not normalise: text that is not in NFC gets other ids there if the tokenizer normalises to NFC.
    """
    pairs = known(tokenizer)
    names = {token: text for text, token in pairs.symbols().items()}
    if vocab_size < pairs.vocab_size:
        raise ConfigError(f"the model has {vocab_size} tokens, but its tokenizer {pairs.vocab_size}.")
    if isinstance(pairs, SentencePieceTokenizer):
        return _pieces(pairs, names, vocab_size)
    pre = _pre(pairs)
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
    """Return the tokenizer in the metadata; None if there is none. DataError if its kind is unknown."""
    if f"{KEY}model" not in keys:
        if f"{KEY}tokens" in keys:
            raise DataError(f"{path} has tokens, but no {KEY}model. Name their tokenizer with --tokenizer.")
        return None
    if keys[f"{KEY}model"] == "llama":
        return _of_pieces(keys, vocab_size, path)
    model, named = str(keys[f"{KEY}model"]), str(keys.get(f"{KEY}pre"))
    pre = next((name for name, others in SAME.items() if named in others), named)
    if model != "gpt2" or pre not in SPLITS:
        raise DataError(
            f"{path}: its tokenizer is {model[:20]!r}, {named[:20]!r}, but known are only SentencePiece's 'llama' "
            f"and BPE, cut as in {', '.join([*SPLITS, *sum(SAME.values(), ())])}. Name another one with --tokenizer."
        )
    listed, merges, kinds = (_list(keys.get(f"{KEY}{name}")) for name in ("tokens", "merges", "token_type"))
    if not isinstance(keys.get(f"{KEY}merges"), list):
        raise DataError(f"{path} has no list of {KEY}merges, which its tokenizer needs. Name one with --tokenizer.")
    kinds = kinds if f"{KEY}token_type" in keys else [NORMAL] * vocab_size
    sound = all(isinstance(text, str) for text in listed + merges) and len(set(listed)) == len(listed)
    sound = sound and {*kinds} <= KINDS
    if not sound or not len(listed) == len(kinds) == vocab_size:
        raise DataError(
            f"{path} is damaged: its tokens are not those of a model of {vocab_size:,}. Use another copy."
        )
    by_kind: dict[Any, dict[str, int]] = {}
    for token, (text, kind) in enumerate(zip(listed, kinds, strict=True)):
        by_kind.setdefault(kind, {})[text] = token
    pairs = [merge.split(" ") for merge in merges if merge != NO_MERGE]
    special = by_kind.get(CONTROL, {}) | by_kind.get(USER_DEFINED, {}) | by_kind.get(UNKNOWN, {})
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


def _pre(tokenizer: BytePairTokenizer) -> str:
    """Return llama.cpp's name for a pre-tokenizer. ConfigError if it has none."""
    cut = tokenizer.split.name
    names = {whole: name for name, (split, whole) in SPLITS.items() if split == cut}
    if not names:
        raise ConfigError(f"llama.cpp has no name for this tokenizer's pre-tokenizer: {cut}. Use --to hf.")
    if tokenizer.whole in names:
        return names[tokenizer.whole]
    if not tokenizer.whole or not tokenizer.merged_alike():
        how = "merges every word" if tokenizer.whole else "first looks up every word"
        raise ConfigError(f"llama.cpp {how} cut by {cut}, but this tokenizer does not. Use --to hf.")
    return names[False]


def _pieces(tokenizer: SentencePieceTokenizer, names: Mapping[int, str], vocab_size: int) -> dict[str, Any]:
    """Return the metadata of pieces. llama.cpp knows a space before every section, or before none."""
    if tokenizer.prefix not in ("each", "none"):
        log.warning("llama.cpp adds a space also to text that begins with one, or behind a special token")
    if tokenizer.lacking:
        tokenizer.listed_merges()  # raises
    special, scores, shown = {*tokenizer.special.values()}, tokenizer.scores(), tokenizer.conventions.shown
    names = {**names, **{i: names[i].replace(SPACE, " ") for i in shown}}  # llama.cpp searches the text for these
    kinds = [CONTROL if i in special else NORMAL if i in names else UNUSED for i in range(vocab_size)]
    for ids, kind in (
        (tokenizer.byte_ids, BYTES), (shown, USER_DEFINED),
        ([i for i in [tokenizer.conventions.unk] if i is not None], UNKNOWN),
    ):  # fmt: skip
        for token in ids:
            kinds[token] = kind
    return {
        f"{KEY}model": "llama",
        f"{KEY}pre": "default",
        f"{KEY}tokens": [names.get(i, f"[PAD{i}]") for i in range(vocab_size)],
        f"{KEY}scores": np.array([scores.get(i, 0.0) for i in range(vocab_size)], np.float32),
        f"{KEY}token_type": kinds,
        PREFIX: tokenizer.prefix != "none",
        **conventions.as_keys(tokenizer),
    }


def _of_pieces(keys: Mapping[str, Any], vocab_size: int, path: Path) -> Tokenizer:
    """Return the tokenizer from pieces and scores. DataError if it is damaged."""
    listed, scores, kinds = (_list(keys.get(f"{KEY}{name}")) for name in ("tokens", "scores", "token_type"))
    texts = all(isinstance(text, str) for text in listed)
    prefix = keys.get(PREFIX, True)
    try:
        if type(prefix) is not bool:
            raise DataError(f"{PREFIX} is {str(prefix)[:40]!r}, but must be true or false")
        if not texts or not len(listed) == len(scores) == len(kinds) == vocab_size:
            raise DataError(f"its tokens are not those of a model of {vocab_size:,}")
        found = of_pieces(
            [VocabularyPiece(*each) for each in zip(listed, scores, kinds, strict=True)], "each" if prefix else "none"
        )
        usual = {f"{KEY}{name}": token for name, token in LLAMA.items()}
        return conventions.with_conventions(found, usual | dict(keys), found.conventions.shown, True)
    except DataError as error:
        why = str(error).rstrip(".")
        raise DataError(f"{path}: its tokenizer: {why}. Name another one with --tokenizer.") from None


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, array)) else []
