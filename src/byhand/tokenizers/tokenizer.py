"""Tokenizer: text to token ids, ids back to bytes, and itself to JSON and back.

An id stands for the same bytes wherever it occurs, a special token perhaps for none. So decoding joins bytes, and
counting them turns a loss per token into a loss per byte.
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
from byhand.tokenizers.conventions import NONE, Conventions
from byhand.tokenizers.symbols import encoded

ENDS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>")  # as models name the end of a text
END = b"\0"  # of a document, in a text of several: no text has this character
Table = Mapping[int, str | None]
PLAIN = frozenset(b"\t\n" + bytes(range(32, 127)))  # the bytes of printable ASCII, tab and newline


class Tokenizer(ABC):
    """Token ids from 0 to vocab_size - 1, and the bytes that each stands for.

    kind         its name in the registry and in tokenizer.json
    unit         the word for one of its tokens in messages
    special      texts that are tokens by themselves wherever they stand; decoded, they are these texts again
    token_bytes  id to bytes; encoding never gives a missing id, and decoding refuses it
    conventions  how the models of this tokenizer use its tokens; encoding and decoding do not depend on them
    """

    kind: ClassVar[str]
    unit: ClassVar[str] = "token"
    conventions: Conventions = NONE
    special: Mapping[str, int] = MappingProxyType({})

    def __init__(self, token_bytes: Mapping[int, bytes]) -> None:
        self.token_bytes = token_bytes
        self.vocab_size = max(token_bytes, default=-1) + 1
        self.dtype = np.dtype("<u2" if self.vocab_size <= 1 << 16 else "<u4")  # of ids in files and arrays

    @abstractmethod
    def encode_blocks(self, blocks: Iterable[bytes]) -> Iterator[Sequence[int] | np.ndarray]:
        """Yield the ids of a text that comes in blocks; the blocks' ends change no id."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """Return the values from which `from_json` makes the same tokenizer."""

    @classmethod
    @abstractmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the tokenizer of these untrusted values; DataError if they describe none."""

    def __contains__(self, token: int) -> bool:
        return token in self.token_bytes

    def encode(self, text: str | bytes) -> list[int]:
        """Return the ids of a text, of its UTF-8 if it is a str. DataError if a part of it has none."""
        blocks = self.encode_blocks([utf8(text) if isinstance(text, str) else text])
        return [int(token) for ids in blocks for token in ids]

    def encode_plain(self, text: str, shown: Table, first: bool = True) -> list[int]:
        """Return the ids of a text between special tokens, in which none is one. DataError if a part of it has none.

        shown  what its characters stand for, by `str.translate`, once no special token is looked for
        first  a text begins with it
        """
        return self.encode(text.translate(shown))

    def prompt(self, text: str | bytes) -> list[int]:
        """Return the ids of a text with those that its models' conventions add around it."""
        return [*self.conventions.before, *self.encode(text), *self.conventions.after]

    def described(self) -> dict[str, str]:
        """Return its conventions in words, those that it has."""
        found = self.conventions
        listed = {"begins with": found.before, "ends with": found.after, "ends at": found.ends}
        words = {
            name: ", ".join(self.token_bytes[token].decode(errors="backslashreplace") for token in tokens)
            for name, tokens in listed.items()
        } | {"chat template": ", ".join(found.templates)}
        return {name: said for name, said in words.items() if said}

    def using(self, conventions: Conventions) -> Self:
        """Return the same tokenizer with other conventions; DataError if they name tokens that it lacks."""
        conventions.require(self.token_bytes.keys(), self.special_ids)
        found = copy.copy(self)
        found.conventions = conventions
        for name in ("content", "digest", "ids_digest", "_lengths", "_begins"):  # what the other one has computed
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
        """Return the tokenizer with those of its symbols as special tokens that these texts are."""
        return self

    def array(self, blocks: Iterable[bytes]) -> np.ndarray:
        """Return the ids of a text that comes in blocks, in the type of files; of one block perhaps in place."""
        ids = [np.asarray(ids, self.dtype) for ids in self.encode_blocks(blocks)]
        return ids[0] if len(ids) == 1 else np.concatenate(ids)

    def decode(self, tokens: Iterable[int], after: int | None = None) -> bytes:
        """Return the bytes of ids. DataError if one has none.

        after  the id before them; None: a text begins with them, which matters where encoding adds a space to one
        """
        try:
            return b"".join(self.token_bytes[token] for token in tokens)
        except KeyError as error:
            raise DataError(
                f"the vocabulary has no token with the id {error.args[0]}. Use ids from 0 to {self.vocab_size - 1}."
            ) from None

    def decoder(self, after: int | None = None) -> Callable[[Iterable[int]], bytes]:
        """Return what decodes some ids after the other."""

        def decoded(tokens: Iterable[int]) -> bytes:
            nonlocal after
            tokens = list(tokens)
            content = self.decode(tokens, after)
            after = tokens[-1] if tokens else after
            return content

        return decoded

    @property
    def end_text(self) -> bytes:
        """What stands for `END` where documents are encoded: itself, or the text of a special token."""
        if named := next((text for text in ENDS if text in self.special), None):
            return encoded(named)
        eos = self.conventions.eos
        return self.token_bytes[eos] if eos is not None and eos in self.special_ids else END

    @property
    def begin_text(self) -> bytes:
        """What begins a document where documents are encoded: the texts of the special tokens put before a text."""
        return b"".join(self.token_bytes[token] for token in self.conventions.before)

    @property
    def end(self) -> int:
        """The id of the token that ends a document."""
        (token,) = self.encode(self.end_text)
        return token

    def printable(self, vocab_size: int, ascii_only: bool) -> np.ndarray:
        """Return booleans (V,): the ids with a text, with ascii_only of printable ASCII, tab and newline."""
        return np.array([
            token in self and (not ascii_only or PLAIN.issuperset(self.token_bytes[token]))
            for token in range(vocab_size)
        ])  # fmt: skip

    def count_bytes(self, tokens: np.ndarray, after: int | None = None) -> int:
        """Return how many bytes a vector of ids stands for, behind the id `after` as in `decode`.

        Raises DataError if one is beyond the vocabulary.
        """
        if (bad := beyond(tokens, self.vocab_size)) is not None:
            raise DataError(f"the tokens hold the id {bad}, but the {self.kind} tokenizer has {self.vocab_size}.")
        return int(self._lengths[tokens].sum())

    def require_vocabulary(self, vocab_size: int) -> None:
        """Raise DataError unless a model of this vocabulary fits; it may be padded with ids that have no text."""
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
        """The digest without conventions: the same for tokenizers that give the same ids."""
        return self.using(NONE).digest if self.conventions else self.digest

    @cached_property
    def _lengths(self) -> np.ndarray:
        lengths = np.zeros(self.vocab_size, np.int64)
        for token, content in self.token_bytes.items():
            lengths[token] = len(content)
        lengths[[*self.conventions.before, *self.conventions.after]] = 0  # they are added to the text
        return lengths


def beyond(tokens: np.ndarray, vocab_size: int) -> int | None:
    """Return an id of the tokens that a vocabulary lacks, the largest or the smallest; None if it has all."""
    ends = (int(tokens.max(initial=0)), int(tokens.min(initial=0)))
    return next((id_ for id_ in ends if not 0 <= id_ < vocab_size), None)


def utf8(text: str) -> bytes:
    """Return the UTF-8 of a text; DataError if it holds half of a surrogate pair.

    Bytes of a command line that are no UTF-8 pass through unchanged.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise DataError(f"character {error.start} of the text, {text[error.start]!r}, is no Unicode text.") from None
