"""The GPTs of the lessons, as models that are looked at: few words, four columns, numbers that one can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from byhand.book.lessons.examples import paper_gpt, post_norm
from byhand.book.numbers import closed_form
from byhand.config import ModelConfig
from byhand.errors import DataError
from byhand.exploring.view import Subject
from byhand.model import TinyGPT

WORDS = [word.en for word in paper_gpt.VOCABULARY]
PROMPT, NEXT = " ".join(WORDS[i] for i in paper_gpt.TEXT[:-1]), WORDS[paper_gpt.TEXT[-1]]


def subject() -> Subject:
    """Return the model of the lesson paper-gpt, in float64."""
    return _subject("paper", paper_gpt.CONFIG, paper_gpt.WEIGHTS, WORDS)


def of_lesson(name: str) -> tuple[Subject, str, str] | None:
    """Return the GPT that a lesson works, its text and what follows that; None if it works none."""
    if name in ("paper", "paper-gpt", "kv-cache"):
        return subject(), PROMPT, NEXT
    if name != "post-norm":
        return None
    config, (tokens,), (targets,) = post_norm.CONFIG, post_norm.TOKENS, post_norm.TARGETS
    model = _subject(name, config, post_norm.WEIGHTS, [*map(str, range(config.vocab_size))])
    return model, " ".join(map(str, tokens)), str(targets[-1])


def _subject(name: str, config: ModelConfig, weights: Mapping[str, Any], words: Sequence[str]) -> Subject:
    arrays = {name: closed_form.array(rows).astype("float64") for name, rows in weights.items()}
    texts = {i: word.encode() for i, word in enumerate(words)}
    return Subject(
        name, None, TinyGPT(config, dtype="float64", arrays=arrays), partial(_encode, words), texts, "word"
    )


def _encode(known: Sequence[str], text: bytes) -> list[int]:
    words = text.decode(errors="replace").split()
    if unknown := [word for word in words if word not in known]:
        raise DataError(f"the model on paper knows {', '.join(known)}, and not {unknown[0][:20]!r}.")
    return [known.index(word) for word in words]
