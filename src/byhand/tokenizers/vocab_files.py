"""GPT-2's vocab.json (symbol to id) and merges.txt (two symbols per line, `#version` first)."""

from __future__ import annotations

from pathlib import Path

from byhand.errors import DataError
from byhand.files.reading import parse_json
from byhand.tokenizers.registry import file_content
from byhand.tokenizers.symbols import is_pair, is_vocabulary


def read(vocab: Path, merges: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the vocabulary and the merges. DataError if the files are damaged."""
    try:
        vocabulary = parse_json(_text(vocab), depth=1)
    except DataError:
        raise
    except ValueError:
        raise DataError(f"{vocab} is not valid JSON. Use the vocab.json of the tokenizer.") from None
    if not is_vocabulary(vocabulary):
        raise DataError(f"{vocab} must be one JSON object of symbols and their ids. Use the tokenizer's vocab.json.")
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(_text(merges).split("\n"), 1):
        if not line.strip() or (number == 1 and line.startswith("#version")):
            continue
        pair = tuple(line.rstrip("\r").split(" "))
        if not is_pair(pair) or not all(pair):
            raise DataError(
                f"{merges}, line {number}: {line[:80]!r} is not a pair of symbols. Use the merges.txt of {vocab}."
            )
        pairs.append(pair)
    return vocabulary, pairs


def _text(path: Path) -> str:
    try:
        return file_content(path).decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text. Use the file of the tokenizer.") from None
