r"""Multiple choice: which of several endings of a context does a model find likeliest?

    s(e) = \sum_{t in e} \ln p(t | every token before it)        in nats, over the ending's tokens only

The model chooses the ending with the largest s, or the largest s per token, or the largest s per byte. Accuracy p is
the share of right answers to n questions; its standard error is sqrt(p (1 - p) / (n - 1)). Wilson's 95 % interval,
with z = 1.96, is

    (p + z^2 / (2 n) ± z sqrt(p (1 - p) / n + z^2 / (4 n^2))) / (1 + z^2 / n)

Context and ending are encoded together, as in lm-evaluation-harness: trailing white space of the context moves to the
ending, and the ending's tokens are those after the number of tokens of the context alone. Without a context the
ending follows the token that ends a document, or a newline.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from byhand.corpus.dataset import SHORTEST, padded
from byhand.corpus.questions import Question, questions_of
from byhand.errors import UNSOUND_LOGITS, DataError, NonFiniteError
from byhand.evaluate import evaluating, progress
from byhand.flops import step_flops
from byhand.formats.names import Weights
from byhand.model import TinyGPT
from byhand.runtimes.protocol import Request, TrainingSession
from byhand.tokenizers.tokenizer import Tokenizer

log = logging.getLogger(__name__)
ROWS, TOKENS = 16, 2048  # the most endings, and tokens in total, computed at once
Z = 1.96  # 95 % of a normal distribution lies within so many standard deviations


@dataclass(frozen=True)
class MultipleChoice:
    """Accuracies, each with its standard error (None for a single question).

    acc         by sums of log-probabilities
    acc_tokens  by their means over the ending's tokens
    acc_bytes   by sums divided by the bytes of the ending, as in the file
    chance      accuracy of guessing
    cut         endings with a context longer than the model's, truncated at the beginning
    runtime     name of the runtime used
    why         why auto did not take a faster runtime; "" if it did
    """

    questions: int
    acc: float
    acc_stderr: float | None
    acc_tokens: float
    acc_tokens_stderr: float | None
    acc_bytes: float
    acc_bytes_stderr: float | None
    chance: float
    cut: int
    runtime: str
    why: str


class Ending(NamedTuple):
    """An ending after its context: ids, the number of the ending's tokens, and its answer."""

    ids: list[int]
    own: int
    answer: Scored
    ending: int


@dataclass
class Scored:
    """A question, with each ending's log-likelihood in nats and number of tokens."""

    question: Question
    sums: list[float | None]
    counts: list[int] = field(default_factory=list)

    @property
    def chosen(self) -> tuple[int, int, int]:
        """The endings with the largest sum, mean over tokens, and sum per byte; ties go to the first."""
        sums = np.array(self.sums)
        sizes = [len(ending.encode()) for ending in self.question.endings]
        return tuple(int(np.argmax(sums / by)) for by in (1, self.counts, sizes))  # pyright: ignore


class Chooser:
    """Rows for a model: encoded, truncated to its context, and padded to few shapes.

    cut  number of truncated rows
    """

    def __init__(self, model: TinyGPT, tokenizer: Tokenizer, ends: Iterable[int] = (), separator: str = " ") -> None:
        self.config, self.tokenizer, self.separator = model.config, tokenizer, separator
        self.start = list(ends)[:1] or tokenizer.encode("\n")
        self.cut = 0

    def rows(self, question: Question) -> list[Ending]:
        """Return a question's endings. DataError if one is longer than the model's context."""
        answer, most = Scored(question, [None] * len(question.endings)), self.config.seq_len
        rows = list[Ending]()
        for i, ending in enumerate(question.endings):
            ids, count = self.encoded(question.context, ending)
            if count > most:
                raise DataError(
                    f"{question.where}: ending {i} has {count} tokens, but the model's seq_len is {most}. Remove it."
                )
            if len(ids) > most + 1:
                if not self.cut:
                    log.info("%s: a context of more than %d tokens loses its beginning", question.where, most)
                self.cut += 1
            answer.counts.append(count)
            rows.append(Ending(ids[-most - 1 :], count, answer, i))
        return rows

    def encoded(self, context: str, ending: str) -> tuple[list[int], int]:
        """Return the ids of context and ending, and the number of the ending's."""
        if context and not (context[-1].isspace() or ending[0].isspace()):
            ending = self.separator + ending
        begin, before = list(self.tokenizer.conventions.before), context.rstrip()
        ids = self.tokenizer.encode(context + ending)
        if not before:
            return (begin or self.start) + ids, len(ids)
        known = min(len(self.tokenizer.encode(before)), len(ids) - 1)  # one token may span the whole ending
        return begin + ids, len(ids) - known

    def length(self, row: Ending) -> int:
        """Return a row's padded length; padding is harmless, since no position looks ahead."""
        needed = len(row.ids) - 1
        if not self.config.causal:
            return needed
        return padded(needed, self.config.seq_len)


def choose(
    model: TinyGPT, chooser: Chooser, path: Path, runtime: str = "auto", weights: Weights = "float32"
) -> MultipleChoice:
    """Answer the questions of a file.

    Raises DataError if it has none, or an invalid line; NonFiniteError if a likelihood is not finite.
    """
    name, size = str(path), path.stat().st_size if path.exists() else 0
    work = step_flops(model.config, 1) / 3 * max(1, size / model.config.seq_len)
    request = Request("evaluate", model.config, runtime, str(model.dtype), operations=work, weights=weights)
    right, chance = np.zeros(3), 0.0
    n = 0
    shortest = min(SHORTEST, model.config.seq_len)
    with evaluating(model, request, lambda session: list(_computed(session, [], shortest))) as (session, choice):
        for answer in answered(session, _told(questions_of(path), name, size), chooser):
            right += np.array(answer.chosen) == answer.question.label
            chance += 1 / len(answer.question.endings)
            n += 1
    if not n:
        raise DataError(f"{name} holds no question. Write one question per line.")
    shares = [float(p) for p in right / n]
    errors = [math.sqrt(p * (1 - p) / (n - 1)) if n > 1 else None for p in shares]
    told = [value for pair in zip(shares, errors, strict=True) for value in pair]
    return MultipleChoice(n, *told, chance / n, chooser.cut, choice.runtime.name, choice.why)  # pyright: ignore


def interval(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for an accuracy on n questions."""
    middle, scale = share + Z**2 / (2 * n), 1 + Z**2 / n
    side = Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return max(0.0, (middle - side) / scale), min(1.0, (middle + side) / scale)


def _told(questions: Iterable[Question], name: str, size: int) -> Iterator[Question]:
    """Yield the questions, and report progress by the file's bytes."""
    report = progress(name, size)
    for question in questions:
        yield question
        report(question.bytes)


def answered(session: TrainingSession, questions: Iterable[Question], chooser: Chooser) -> Iterator[Scored]:
    """Yield each question's answer once its last ending is computed."""
    waiting: defaultdict[int, list[Ending]] = defaultdict(list)
    for question in questions:
        for row in chooser.rows(question):
            length = chooser.length(row)
            waiting[length].append(row)
            if len(waiting[length]) == _together(length):
                yield from _computed(session, waiting.pop(length), length)
    for length, rows in waiting.items():
        yield from _computed(session, rows, length)


def _together(length: int) -> int:
    return max(1, min(ROWS, TOKENS // length))


def _computed(session: TrainingSession, rows: Sequence[Ending], length: int) -> Iterator[Scored]:
    """Compute rows together, padded to the usual number for their length; yield the answers completed."""
    shape = (_together(length), length)
    tokens, targets, counted = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, bool)
    for i, (ids, own, *_) in enumerate(rows):
        end = len(ids) - 1
        tokens[i, :end], targets[i, :end] = ids[:-1], ids[1:]
        counted[i, end - own : end] = True
    for row, loss in zip(rows, session.row_losses(tokens, targets, counted), strict=False):
        if not math.isfinite(loss):
            raise NonFiniteError(UNSOUND_LOGITS)
        row.answer.sums[row.ending] = -float(loss)
        if None not in row.answer.sums:
            yield row.answer
