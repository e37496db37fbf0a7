"""Tokenizers in a folder of transformers: tokenizer.json, or vocab.json and merges.txt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from byhand.errors import DataError, reason
from byhand.files.reading import parse_json, read_regular
from byhand.tokenizers.bpe import BytePairTokenizer, visible_bytes
from byhand.tokenizers.byte import BYTES, ByteTokenizer
from byhand.tokenizers.tokenizer import Tokenizer

TOKENIZER, SETTINGS, VOCABULARY, MERGES = "tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"
MOST = 1 << 26  # bytes; today's largest tokenizer.json has 20 million
ENDS = ("<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "</s>")  # names of the token that ends a text


def of_folder(folder: Path) -> Tokenizer | None:
    """Return the tokenizer of a folder, None if it has no file of one."""
    if (folder / TOKENIZER).exists():
        return of_file(folder / TOKENIZER)
    if (folder / VOCABULARY).exists() and (folder / MERGES).exists():
        return BytePairTokenizer.from_files(folder / VOCABULARY, folder / MERGES)
    return None


def of_file(path: Path) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json. DataError if it is damaged, or of a kind that is not known."""
    try:
        found = parse_json(read_regular(path, MOST))
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}. Check the path.") from None
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {' '.join(str(error).split())[:80]}.") from None
    try:
        return _of_json(found)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError):
        raise DataError(f"{path} is damaged: it is no tokenizer.json of the tokenizers library.") from None


def _of_json(found: dict[str, Any]) -> Tokenizer:
    model, split = found["model"], found["pre_tokenizer"]
    if model["type"] != "BPE" or model.get("byte_fallback") or found["normalizer"] is not None:
        raise DataError(f"its model is {str(model['type'])[:40]!r}, but only byte-level BPE is known.")
    if split["type"] != "ByteLevel" or split.get("add_prefix_space"):
        raise DataError(f"its pre_tokenizer is {str(split['type'])[:40]!r}, but only GPT-2's is known.")
    vocabulary = dict(model["vocab"])
    merges = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in model["merges"]]
    for added in found.get("added_tokens") or []:
        if vocabulary.setdefault(added["content"], added["id"]) != added["id"]:
            raise DataError(f"it has two ids for {added['content'][:40]!r}.")
    if not merges and vocabulary == {sign: byte for byte, sign in enumerate(visible_bytes())}:
        return BYTES
    return BytePairTokenizer.from_json({"vocabulary": vocabulary, "merges": list(map(list, merges))})


def files(tokenizer: Tokenizer, seq_len: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files that AutoTokenizer loads; bytes become a vocabulary of 256 symbols without merges."""
    vocabulary, merges = symbols(tokenizer)
    words = not isinstance(tokenizer, ByteTokenizer)
    end = end_of_text(tokenizer)
    name = None if end is None else next(s for s, token in vocabulary.items() if token == end)
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": words}
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    found = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [] if name is None else [{"id": end, "content": name, **added}],
        "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": {**level, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": vocabulary, "merges": merges,
        },
    }  # fmt: skip
    yield TOKENIZER, json.dumps(found, ensure_ascii=False).encode()
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": seq_len,
        "clean_up_tokenization_spaces": False, "bos_token": name, "eos_token": name,
    }  # fmt: skip
    yield SETTINGS, (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()


def symbols(tokenizer: Tokenizer) -> tuple[dict[str, int], list[list[str]]]:
    """Return the vocabulary and the merges; DataError for a tokenizer that other programs do not know."""
    if isinstance(tokenizer, ByteTokenizer):
        return {sign: byte for byte, sign in enumerate(visible_bytes())}, []
    if isinstance(tokenizer, BytePairTokenizer):
        return dict(tokenizer.vocabulary), list(map(list, tokenizer.ranks))
    raise DataError(f"a {tokenizer.kind} tokenizer has no form in other programs. Use byte-pair encoding or bytes.")


def end_of_text(tokenizer: Tokenizer) -> int | None:
    """Return the id of the token that ends a text, by its name; None if there is none."""
    if not isinstance(tokenizer, BytePairTokenizer):
        return None
    return next((tokenizer.vocabulary[name] for name in ENDS if name in tokenizer.vocabulary), None)
