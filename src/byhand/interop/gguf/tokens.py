"""Tokenizers in a GGUF's metadata: symbols, their types, merges, and which pre-tokenizer cuts the words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byhand.errors import ConfigError, DataError
from byhand.interop.hugging_face.tokens import end_of_text, symbols
from byhand.tokenizers.bpe import BytePairTokenizer, visible_bytes
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.tokenizer import Tokenizer

KEY = "tokenizer.ggml."
NORMAL, CONTROL, UNUSED = 1, 3, 5
NO_MERGE = "<|no|> <|merge|>"  # llama.cpp refuses an empty list; these never stand side by side in a word
END_OF_BYTES = 0  # llama.cpp takes token 11 for the end of a text unless it is told another one
SPLITS = {"gpt-2": "gpt2"}


def as_keys(tokenizer: Tokenizer, vocab_size: int) -> dict[str, Any]:
    """Return the metadata of a tokenizer; ids that it lacks get a name and the type `unused`."""
    vocabulary, merges = symbols(tokenizer)
    names = {token: symbol for symbol, token in vocabulary.items()}
    if vocab_size < len(names):
        raise ConfigError(f"the model has {vocab_size} tokens, but its tokenizer {len(names)}.")
    end = end_of_text(tokenizer)
    ending = END_OF_BYTES if end is None else end
    kinds = [CONTROL if i == end else NORMAL if i in names else UNUSED for i in range(vocab_size)]
    return {
        f"{KEY}model": "gpt2",
        f"{KEY}pre": "gpt-2",
        f"{KEY}tokens": [names.get(i, f"[PAD{i}]") for i in range(vocab_size)],
        f"{KEY}token_type": kinds,
        f"{KEY}merges": [" ".join(pair) for pair in merges] or [NO_MERGE],
        f"{KEY}bos_token_id": ending,
        f"{KEY}eos_token_id": ending,
        f"{KEY}add_bos_token": False,
    }


def of_keys(keys: Mapping[str, Any], vocab_size: int, path: Path) -> Tokenizer | None:
    """Return the tokenizer that the metadata describe; None if they name none. DataError if it is not known."""
    if f"{KEY}model" not in keys:
        return None
    listed, merges, kinds = (_list(keys.get(f"{KEY}{name}")) for name in ("tokens", "merges", "token_type"))
    if keys[f"{KEY}model"] != "gpt2" or keys.get(f"{KEY}pre") not in SPLITS:
        said = f"{str(keys[f'{KEY}model'])[:20]}, {str(keys.get(f'{KEY}pre'))[:20]}"
        raise DataError(f"{path}: its tokenizer is {said}, but only byte-level BPE with GPT-2's words is known.")
    if not all(isinstance(item, str) for item in listed + merges) or len(listed) != vocab_size:
        raise DataError(
            f"{path} is damaged: its tokens are not those of a model of {vocab_size:,}. Use another copy."
        )
    kinds = kinds if len(kinds) == vocab_size else [NORMAL] * vocab_size
    vocabulary = {s: i for i, (s, kind) in enumerate(zip(listed, kinds, strict=True)) if kind != UNUSED}
    if len(vocabulary) != sum(kind != UNUSED for kind in kinds):
        raise DataError(f"{path} is damaged: it has a token twice. Use another copy.")
    pairs = [tuple(merge.split(" ")) for merge in merges if merge != NO_MERGE]
    if not pairs and vocabulary == {sign: byte for byte, sign in enumerate(visible_bytes())}:
        return BYTES
    try:
        return BytePairTokenizer.from_json({"vocabulary": vocabulary, "merges": list(map(list, pairs))})
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
