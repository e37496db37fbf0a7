"""Tokenizer: text to token ids, ids back to bytes, and itself to JSON and back.

An id stands for the same bytes wherever it occurs, so decoding joins bytes. `count_bytes` counts those that belong to
a text, which turns a loss per token into a loss per byte, comparable between vocabularies.
"""

from __future__ import annotations

import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from byhand.errors import DataError
from byhand.tokenizers.conventions import NONE, Conventions, in_words
from byhand.tokenizers.symbols import encoded

ENDS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>")  # common names for the end of a text
END = b"\0"  # ends a document in a text of several; documents do not contain it
Table = Mapping[int, str | None]
PLAIN = frozenset(b"\t\n" + bytes(range(32, 127)))  # the bytes of printable ASCII, tab and newline


class Tokenizer(ABC):
    """Token ids from 0 to vocab_size - 1, and the bytes that each stands for.

    kind         its name in the registry and in tokenizer.json
    unit         the word for one of its tokens in messages
    special      texts that are tokens wherever they occur; they decode to the same texts
    token_bytes  id to bytes; encoding never returns a missing id, and decoding refuses it
    conventions  how models use its tokens; encoding and decoding do not depend on them
    """

    kind: ClassVar[str]
    unit: ClassVar[str] = "token"
    faithful: bool = True  # decoding returns every text byte for byte
    conventions: Conventions = NONE
    special: Mapping[str, int] = MappingProxyType({})

    def __init__(self, token_bytes: Mapping[int, bytes]) -> None:
        self.token_bytes = token_bytes
        self.vocab_size = max(token_bytes, default=-1) + 1
        self.dtype = np.dtype("<u2" if self.vocab_size <= 1 << 16 else "<u4")  # of ids in files and arrays

    @abstractmethod
    def encode_blocks(self, blocks: Iterable[bytes]) -> Iterator[Sequence[int] | np.ndarray]:
        """Yield the ids of a text that comes in blocks; ids do not depend on the blocks' ends."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """Return values from which `from_json` makes the same tokenizer."""

    @classmethod
    @abstractmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the tokenizer from untrusted values; DataError if they are invalid."""

    def __contains__(self, token: int) -> bool:
        return token in self.token_bytes

    def encode(self, text: str | bytes) -> list[int]:
        """Return the ids of a text, of its UTF-8 if it is a str. DataError if some part has no id."""
        blocks = self.encode_blocks([utf8(text) if isinstance(text, str) else text])
        return [int(token) for ids in blocks for token in ids]

    def encode_plain(self, text: str, shown: Table, first: bool = True) -> list[int]:
        """Return the ids of a text without special tokens. DataError if some part has no id.

        shown  a table for `str.translate` that restores its characters, after special tokens have been matched
        first  it begins the whole text
        """
        return self.encode(text.translate(shown))

    def prompt(self, text: str | bytes) -> list[int]:
        """Return the ids of a text, with the tokens that the conventions add around it."""
        return [*self.conventions.before, *self.encode(text), *self.conventions.after]

    def described(self) -> dict[str, str]:
        """Return its conventions in words."""
        found = self.conventions
        listed = {"begins with": found.before, "ends with": found.after, "ends at": found.ends}
        words = {
            name: ", ".join(self.token_bytes[token].decode(errors="backslashreplace") for token in tokens)
            for name, tokens in listed.items()
        } | {"chat template": ", ".join(found.templates), "sampling": in_words(found.sampling)}
        return {name: said for name, said in words.items() if said}

    def using(self, conventions: Conventions) -> Self:
        """Return the same tokenizer with other conventions; DataError if they name tokens that it lacks."""
        conventions.require(self.token_bytes.keys(), self.special_ids)
        found = copy.copy(self)
        found.conventions = conventions
        # cached properties of the original
        for name in ("content", "digest", "ids_digest", "_lengths", "_begins", "_spaced"):
            vars(found).pop(name, None)
        return found

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids of its special tokens."""
        return frozenset(self.special.values())

    def symbols(self) -> dict[str, int]:
        """Return the ids of all symbols and special tokens."""
        return dict(self.special)

    def with_special(self, texts: Collection[str]) -> Self:
        """Return the tokenizer with these texts as special tokens, if they are symbols."""
        return self

    def array(self, blocks: Iterable[bytes]) -> np.ndarray:
        """Return the ids of a text that comes in blocks, in the type of files; may be a view of a single block."""
        ids = [np.asarray(ids, self.dtype) for ids in self.encode_blocks(blocks)]
        return ids[0] if len(ids) == 1 else np.concatenate(ids)

    def decode(self, tokens: Iterable[int], after: int | None = None) -> bytes:
        """Return the bytes of ids. DataError if an id has none.

        after  the id before them; None: they begin a text, to which encoding may have added a space
        """
        try:
            return b"".join(self.token_bytes[token] for token in tokens)
        except KeyError as error:
            raise DataError(
                f"the vocabulary has no token with the id {error.args[0]}. Use ids from 0 to {self.vocab_size - 1}."
            ) from None

    def decoder(self, after: int | None = None) -> Callable[[Iterable[int]], bytes]:
        """Return an incremental decoder."""

        def decoded(tokens: Iterable[int]) -> bytes:
            nonlocal after
            tokens = list(tokens)
            content = self.decode(tokens, after)
            after = tokens[-1] if tokens else after
            return content

        return decoded

    @property
    def end_text(self) -> bytes:
        """What replaces `END` when documents are encoded: itself, or the text of a special token."""
        if named := next((text for text in ENDS if text in self.special), None):
            return encoded(named)
        eos = self.conventions.eos
        return self.token_bytes[eos] if eos is not None and eos in self.special_ids else END

    @property
    def begin_text(self) -> bytes:
        """What begins a document when documents are encoded: the texts of the special tokens put before a text."""
        return b"".join(self.token_bytes[token] for token in self.conventions.before)

    @property
    def end(self) -> int:
        """The id of the token that ends a document."""
        (token,) = self.encode(self.end_text)
        return token

    def printable(self, vocab_size: int, ascii_only: bool) -> np.ndarray:
        """Return booleans (V,): the ids with text; with ascii_only, only of printable ASCII, tab and newline."""
        found, texts = np.zeros(vocab_size, bool), self.token_bytes.items()
        tokens = [token for token, text in texts if PLAIN.issuperset(text)] if ascii_only else [*self.token_bytes]
        found[[token for token in tokens if token < vocab_size]] = True
        return found

    def count_bytes(self, tokens: np.ndarray, before: np.ndarray | None = None) -> int:
        """Return the number of a text's bytes that a vector of ids stands for: the bytes in "bits per byte".

        A special token stands for none, unless readers see it as text (`Conventions.shown`). If `END` is a byte, for
        lack of a special token, it counts like any other.

        before  the id before each of them, -1 at the beginning of a text; None: they begin a text
        Raises DataError if one is beyond the vocabulary.
        """
        if (bad := beyond(tokens, self.vocab_size)) is not None:
            raise DataError(f"the tokens hold the id {bad}, but the {self.kind} tokenizer has {self.vocab_size}.")
        return int(self._lengths[0, tokens].sum())

    def count_special(self, tokens: np.ndarray) -> int:
        """Return the bytes in the texts of the special tokens that `count_bytes` ignores."""
        return int(self._lengths[1, tokens].sum())

    def require_vocabulary(self, vocab_size: int) -> None:
        """Raise DataError unless a model with this vocabulary fits; it may be padded with ids without text."""
        if vocab_size < self.vocab_size:
            raise DataError(
                f"the {self.kind} tokenizer has {self.vocab_size:,} tokens, but the model's vocab_size is "
                f"{vocab_size:,}. It must not be smaller."
            )

    @cached_property
    def content(self) -> bytes:
        """The bytes of tokenizer.json: the same for equal tokenizers."""
        conventions = {"conventions": self.conventions.as_json()} if self.conventions else {}
        values = {**self.as_json(), **conventions, "kind": self.kind}
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of `content`."""
        return sha256(self.content).hexdigest()

    @cached_property
    def ids_digest(self) -> str:
        """The digest without conventions: equal for tokenizers that give the same ids."""
        return self.using(NONE).digest if self.conventions else self.digest

    @cached_property
    def _lengths(self) -> np.ndarray:
        """Integers (2, V): the bytes of each token, as text and as a control token."""
        lengths = np.zeros((2, self.vocab_size), np.int64)
        steering = self.special_ids.difference(self.conventions.shown)
        steering = steering.union(self.conventions.before, self.conventions.after)
        for token, content in self.token_bytes.items():
            lengths[int(token in steering), token] = len(content)
        return lengths


def beyond(tokens: np.ndarray, vocab_size: int) -> int | None:
    """Return an id beyond a vocabulary, the largest or the smallest; None if there is none."""
    ends = (int(tokens.max(initial=0)), int(tokens.min(initial=0)))
    return next((id_ for id_ in ends if not 0 <= id_ < vocab_size), None)


def utf8(text: str) -> bytes:
    """Return the UTF-8 of a text; DataError if it has half of a surrogate pair.

    Bytes of a command line that are not UTF-8 pass through unchanged.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise DataError(f"character {error.start} of the text, {text[error.start]!r}, is invalid Unicode.") from None
