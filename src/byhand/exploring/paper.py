"""The GPT on paper, as a model that is looked at: three words, four columns, numbers that one can check."""

from __future__ import annotations

from byhand.book.lessons.examples.paper_gpt import CONFIG, TEXT, VOCABULARY, WEIGHTS
from byhand.book.numbers import closed_form
from byhand.errors import DataError
from byhand.exploring.view import Subject
from byhand.model import TinyGPT

WORDS = [word.en for word in VOCABULARY]
PROMPT, NEXT = " ".join(WORDS[i] for i in TEXT[:-1]), WORDS[TEXT[-1]]


def subject() -> Subject:
    """Return the model of the lesson, in float64."""
    arrays = {name: closed_form.array(rows).astype("float64") for name, rows in WEIGHTS.items()}
    texts = {i: word.encode() for i, word in enumerate(WORDS)}
    return Subject("paper", None, TinyGPT(CONFIG, dtype="float64", arrays=arrays), _encode, texts, "word")


def _encode(text: bytes) -> list[int]:
    words = text.decode(errors="replace").split()
    if unknown := [word for word in words if word not in WORDS]:
        raise DataError(f"the model on paper knows {', '.join(WORDS)}, and not {unknown[0][:20]!r}.")
    return [WORDS.index(word) for word in words]
