"""Conversations as a corpus: their files, and rows of tokens in which only the answers are targets.

A conversation is a document, one line of JSON in one form, so the rules of documents (`prepared`) apply; validation
takes whole conversations. Their tokens are in memory.

A training row packs conversations drawn with equal probability as long as they fit whole; the first that does not fit
begins the next row. In validation each has a row of its own, as it is asked. The rest of a row has no target. A
conversation longer than a row loses its oldest questions with their answers; if the last pair is still too long, its
beginning.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, ClassVar, Self

import numpy as np

from byhand.conversations.formats import Chat
from byhand.conversations.messages import Messages, conversation, shortened
from byhand.corpus.dataset import Corpus, Integers
from byhand.corpus.documents import Document, Reading, lines_of, lines_of_stream, refused
from byhand.corpus.json_values import values_of
from byhand.corpus.text_file import blocks
from byhand.corpus.texts import LIBRARY, SHAKESPEARE, Text, Validation, open_text
from byhand.errors import DataError
from byhand.files.reading import parse_json
from byhand.quantities import counted
from byhand.tokenizers.tokenizer import END, Tokenizer, utf8

log = logging.getLogger(__name__)
EVERY = 20_000  # conversations between two lines of progress


def open_chats(
    sources: tuple[str, ...], validation: Validation | None = None, reading: Reading | None = None
) -> Text:
    """Return the conversations of files, folders or patterns of JSON lines, or of standard input (-), as one text."""
    if alone := {LIBRARY, SHAKESPEARE} & {*sources, *(validation.sources if validation else ())}:
        raise DataError(f"{alone.pop()} holds no conversations. Name JSON lines.")
    reading = reading or Reading()
    return open_text(sources, Conversations(exclude=reading.exclude, strict=reading.strict), validation)


@dataclass(frozen=True)
class Conversations(Reading):
    """How files of conversations are read: each becomes a document; those without an answer are left out."""

    what: ClassVar[str] = "conversation with an answer"

    def documents(self, path: Path, named: bool = True) -> Iterator[Document]:
        """Yield the conversations of a file of JSON lines, or of one array, which may be compressed."""
        return self._read(lines_of(path), str(path), named)

    def of_stream(self, stream: BinaryIO, name: str) -> Iterator[Document]:
        """Yield the conversations of a stream."""
        return self._read(lines_of_stream(stream, name), name, True)

    def plain(self, path: Path) -> bool:
        """Return False: conversations are always rewritten in one form."""
        return False

    def _read(self, found: Iterable[tuple[str, bytes]], name: str, named: bool) -> Iterator[Document]:
        without = 0
        for where, value in values_of(found, "role"):
            try:
                if isinstance(value, DataError):
                    raise value
                messages = conversation(value, where)
            except DataError as error:
                yield Document(refused(error), name, named)
                continue
            while messages and not messages[-1].learnt:
                messages.pop()  # no answer to learn follows it
            if messages:
                content = json.dumps([message.as_json() for message in messages], ensure_ascii=False)
                yield Document([content.encode()], name, named)
            else:
                without += 1
        if without:
            log.info("%s: %s without an answer left out", name, counted(without, "conversation"))


def chats_of(text: Text, tokenizer: Tokenizer, seq_len: int) -> ChatCorpus:
    """Return the corpus of conversations, each at most a row of `seq_len` targets.

    DataError if the tokenizer's template cannot write one.
    """
    chat, cut, missed = Chat(tokenizer), 0, 0
    ids, learnt, lost, ends = list[np.ndarray](), list[np.ndarray](), list[int](), [0]
    for number, line in enumerate(_lines(text), 1):
        messages = conversation(parse_json(line), "the text of the run")
        try:
            row, marked, whole = fitted(chat, messages, seq_len + 1)
        except DataError as error:
            begin = f"{messages[0].content[:60]!r}"
            raise DataError(f"{text.name}, the conversation that begins {begin}: {error}") from None
        if not any(marked):
            raise DataError(f"{text.name}: the model's chat template marks nothing to learn.")
        cut, missed = cut + (not whole), missed + chat.format.missed
        lost.append(_lost(tokenizer, messages) if whole else 0)
        ids.append(np.array(row, tokenizer.dtype))
        learnt.append(np.array(marked, bool))
        ends.append(ends[-1] + len(row))
        if number % EVERY == 0:
            log.info("%s: encoded %s", text.name, counted(number, "conversation"))
    if cut:
        log.info("%s: %s cut at the beginning, to %d tokens", text.name, counted(cut, "conversation"), seq_len + 1)
    if missed:
        log.info(
            "%s: %s not learnt: the model's chat template writes before them what it does not write to ask for them",
            text.name, counted(missed, "answer"),
        )  # fmt: skip
    return ChatCorpus(
        np.concatenate(ids), np.concatenate(learnt), np.array(ends), tokenizer, text.name, text.training,
        np.array(lost),
    )  # fmt: skip


def _lost(tokenizer: Tokenizer, messages: Messages) -> int:
    """Return how many bytes of the answers their tokens do not decode to."""
    if tokenizer.faithful:
        return 0
    answers = [m.content for m in messages if m.learnt and not m.content.isascii()]
    tokens = (np.array(tokenizer.encode_plain(text, {})) for text in answers)
    return sum(len(utf8(text)) - tokenizer.count_bytes(own) for text, own in zip(answers, tokens, strict=True))


def fitted(chat: Chat, messages: Messages, most: int) -> tuple[list[int], list[bool], bool]:
    """Return at most `most` ids of a conversation, which of them are learnt, and whether these are all."""
    rest, whole = shortened(messages, lambda some: len(chat.conversation(some)[0]), most)
    ids, learnt = chat.conversation(rest)
    return ids[-most:], learnt[-most:], whole and len(ids) <= most


def _lines(text: Text) -> Iterator[bytes]:
    left = b""
    for block in blocks(text.content):
        *whole, left = (left + block.tobytes()).split(END)
        yield from whole
    if left:
        yield left


class ChatCorpus(Corpus):
    """Conversations one after the other, and rows of them.

    learnt  booleans (N,): which tokens are answers
    ends    where each conversation begins, and where the last one ends
    lost    how many bytes of its answers their tokens do not decode to; None: none
    """

    def __init__(
        self,
        tokens: np.ndarray,
        learnt: np.ndarray,
        ends: np.ndarray,
        tokenizer: Tokenizer,
        name: str,
        training: int = 0,
        lost: np.ndarray | None = None,
    ) -> None:
        super().__init__(tokens, tokenizer, name, training)
        self.learnt, self.ends, self.lost = learnt, ends, np.zeros(len(ends) - 1, int) if lost is None else lost

    @cached_property
    def stretch(self) -> float:
        """Bytes of the answers per byte that their tokens decode to."""
        learnt, tokens = np.flatnonzero(self.learnt), self.tokens[:]
        decoded = self.tokenizer.count_bytes(tokens[learnt], tokens[learnt - 1])
        return 1 + int(self.lost.sum()) / max(1, decoded)

    def sample_batch(
        self, batch_size: int, seq_len: int, rng: Integers, rows: slice | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets), each int64 (B, T), of conversations drawn with equal probability; -1: no target.

        rows  ignored: all hosts draw the same rows, and return all of them
        """
        self.require(seq_len)
        drawn, filled = self._drawn(rng, batch_size), list[list[int]]()
        number = next(drawn)
        while len(filled) < batch_size:
            row, left = list[int](), seq_len + 1
            while (size := self.size(number)) <= left:
                row, left, number = [*row, number], left - size, next(drawn)
            filled.append(row)
        return self._rows(filled, seq_len)

    def spread_windows(self, count: int, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets) of at most `count` conversations, spread evenly over them, the shortest first."""
        self.require(seq_len)
        chosen = np.unique(np.linspace(0, self.count - 1, min(count, self.count)).astype(np.int64))
        return self.alone(sorted(chosen.tolist(), key=self.size), seq_len)

    def alone(self, numbers: Iterable[int], seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (tokens, targets) of these conversations, each in a row of its own."""
        return self._rows([[number] for number in numbers], seq_len)

    def split(self, val_fraction: float, seq_len: int) -> tuple[Self, Self]:
        """Return (training, validation): whole conversations."""
        self.require(seq_len)
        if self.count < 2:
            raise DataError(
                f"{self.name} holds one conversation, but training and validation need one each. Add some."
            )
        cut = self.training or min(self.count - 1, max(1, self.count - round(self.count * val_fraction)))
        return self._chats(0, cut, f"the training part of {self.name}"), self._chats(
            cut, self.count, f"the validation part of {self.name}"
        )

    def require(self, seq_len: int) -> None:
        """Raise DataError if a conversation was cut for longer rows."""
        if (longest := int(np.diff(self.ends).max())) > seq_len + 1:
            raise DataError(f"{self.name} has a conversation of {longest:,} tokens, more than seq_len {seq_len} + 1.")

    @property
    def count(self) -> int:
        """The number of conversations."""
        return len(self.ends) - 1

    def size(self, number: int) -> int:
        """Return how many tokens a conversation has."""
        return int(self.ends[number + 1] - self.ends[number])

    def _drawn(self, rng: Integers, size: int) -> Iterator[int]:
        while True:
            yield from rng.integers(0, self.count, size=size).tolist()

    def _rows(self, filled: list[list[int]], seq_len: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of these conversations; the target of a token is the next one if that is learnt."""
        tokens = np.zeros((len(filled), seq_len + 1), np.int64)
        targets = np.full((len(filled), seq_len + 1), -1, np.int64)
        for i, row in enumerate(filled):
            at = 0
            for number in row:
                begin, end = int(self.ends[number]), int(self.ends[number + 1])
                ids, learnt = self.tokens[begin:end], self.learnt[begin:end]
                tokens[i, at : at + len(ids)] = ids
                targets[i, at : at + len(ids)][learnt] = ids[learnt]
                targets[i, at] = -1  # the token before it is of another conversation
                at += len(ids)
        return tokens[:, :-1], targets[:, 1:]

    def _chats(self, first: int, last: int, name: str) -> Self:
        begin, end = int(self.ends[first]), int(self.ends[last])
        part = self._part(begin, end, name)
        part.learnt, part.ends = self.learnt[begin:end], self.ends[first : last + 1] - begin
        part.lost = self.lost[first:last]
        part.training = 0
        return part
