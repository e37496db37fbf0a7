"""The registered tokenizers; writing tokenizer.json, and reading it from untrusted files."""

from __future__ import annotations

from pathlib import Path

from byhand.errors import DataError, brief, reason
from byhand.files.reading import parse_json, read_regular
from byhand.tokenizers.byte import ByteTokenizer
from byhand.tokenizers.conventions import Conventions
from byhand.tokenizers.tokenizer import Tokenizer

MOST = 1 << 26  # bytes of a tokenizer's file; GPT-2's has 2 million, today's largest 20 million
DEPTH = 4  # nesting of its tables and lists

_kinds: dict[str, type[Tokenizer]] = {}


def register(tokenizer: type[Tokenizer]) -> type[Tokenizer]:
    """Register a tokenizer's class, so that checkpoints can store it; a decorator."""
    _kinds[tokenizer.kind] = tokenizer
    return tokenizer


def stored(tokenizer: Tokenizer) -> bytes:
    """Return the tokenizer.json for `restored`; DataError if it could not be read back."""
    if _class_of(tokenizer.kind) is not type(tokenizer):
        raise DataError(f"a {tokenizer.kind} tokenizer cannot be stored: it is not registered. Use `register`.")
    if len(tokenizer.content) > MOST:
        raise DataError(
            f"the tokenizer takes {len(tokenizer.content):,} bytes of JSON, more than the {MOST:,} allowed."
        )
    return tokenizer.content


def file_content(path: Path) -> bytes:
    """Return the bytes of a tokenizer's file; DataError if it cannot be read or is larger than any tokenizer's."""
    try:
        return read_regular(path, MOST)
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}. Check the path and its permissions.") from None


def restored(content: bytes) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json. DataError unless storing it again gives the same bytes."""
    try:
        values = parse_json(content, DEPTH)
    except ValueError as error:
        raise DataError(f"it is not valid JSON: {brief(error)}") from None
    kind = values.pop("kind", None) if isinstance(values, dict) else None
    known = _class_of(str(kind))
    if known is None:
        raise DataError(f"its kind is {str(kind)[:40]!r}, which is not one of {', '.join(sorted(_kinds))}")
    conventions = values.pop("conventions", None)
    tokenizer = known.from_json(values)
    if conventions is not None:
        tokenizer = tokenizer.using(Conventions.of_json(conventions))
    if tokenizer.content != content:
        raise DataError("it differs from what byhand writes")
    return tokenizer


def _class_of(kind: str) -> type[Tokenizer] | None:
    """Return the class registered under this name; those that a run on bytes does not need are imported here."""
    if kind not in _kinds:
        from byhand.tokenizers.bpe import BytePairTokenizer
        from byhand.tokenizers.sentencepiece import SentencePieceTokenizer

        for tokenizer in (BytePairTokenizer, SentencePieceTokenizer):
            _kinds.setdefault(tokenizer.kind, tokenizer)
    return _kinds.get(kind)


register(ByteTokenizer)
