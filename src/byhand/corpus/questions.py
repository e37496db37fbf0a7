"""Multiple-choice questions in JSON lines: a context, its endings, and which of them is right.

    HellaSwag  {"ctx": "To be, or", "endings": ["not to be", "to bee"], "label": 0}
    ARC        {"question": "…", "choices": {"text": ["…", "…"], "label": ["A", "B"]}, "answerKey": "B"}

CONTEXTS, ENDINGS and RIGHT are the common names of a field; two of them with different values are refused, as is a
field whose name says that it changes the question (CHANGING). A `question` becomes "Question: …\\nAnswer:", as
lm-evaluation-harness asks ARC's; every other context stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from byhand.conversations.messages import changes
from byhand.corpus.documents import lines_of
from byhand.errors import DataError, brief
from byhand.files.reading import parse_json

CONTEXTS, ASKED = ("ctx", "context", "query"), "question"
ENDINGS = ("endings", "choices", "options")
RIGHT = ("label", "gold", "answerKey", "answer")
CHANGING = re.compile(
    "passage|article|story|support|paragraph|background|documents?|hints?|system|prompt|instructions?|images?|audio|"
    "video|weights?|fewshot"
)
EXAMPLE = '{"ctx": "To be, or", "endings": ["not to be", "to bee"], "label": 0}'


@dataclass(frozen=True)
class Question:
    """A context, at least two endings, and the number of the right one, from 0.

    where  its place in the file, for messages
    bytes  length of its line
    """

    context: str
    endings: tuple[str, ...]
    label: int
    where: str
    bytes: int = 0


def questions_of(path: Path) -> Iterator[Question]:
    """Yield the questions of a file, which may be compressed. DataError names a line that is not valid."""
    for where, line in lines_of(path):
        try:
            yield replace(question(parse_json(line), where), bytes=len(line) + 1)
        except (ValueError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{where} is not valid JSON: {brief(error)}. Fix or delete that line.") from None


def question(found: Any, where: str) -> Question:
    """Return the question of an object of JSON."""
    if not isinstance(found, dict):
        raise DataError(f"{where} is not an object of JSON. Write lines like {EXAMPLE}.")
    context = _named(found, (*CONTEXTS, ASKED), where)
    if not isinstance(found[context], str):
        raise DataError(f"{where}: {context} is not a text. Write lines like {EXAMPLE}.")
    asked = f"Question: {found[ASKED]}\nAnswer:" if context == ASKED else found[context]
    listed = _named(found, ENDINGS, where)
    endings, names = _endings(found[listed])
    if len(endings) < 2 or not all(isinstance(ending, str) and ending.strip() for ending in endings):
        raise DataError(f"{where}: {listed} is not a list of two or more texts. Write lines like {EXAMPLE}.")
    key = _named(found, RIGHT, where)
    label = _place(found[key], key, endings, names)
    for name, value in found.items():
        again = {context: (*CONTEXTS, ASKED), listed: ENDINGS, key: RIGHT}
        other = next((used for used, same in again.items() if name in same and value != found[used]), None)
        if other or (changes(name, CHANGING) and value not in (None, "", [], {}, found[context])):
            beside = f" beside {other!r}" if other else ""
            raise DataError(f"{where}: {name!r}{beside} is not read, but may change the question. Remove it.")
    if label is None:
        raise DataError(
            f"{where}: {key} names none of its {len(endings)} endings. Give the number of the right one, from 0."
        )
    for text in (asked, *endings):
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise DataError(f"{where} holds half a character. Fix or delete that line.")
    return Question(asked, tuple(endings), label, where)


def _named(found: Mapping[str, Any], names: tuple[str, ...], where: str) -> str:
    """Return which of the names an object has."""
    name = next((name for name in names if name in found), None)
    if name is None:
        raise DataError(f"{where} has none of the fields {', '.join(names)}. Write lines like {EXAMPLE}.")
    return name


def _endings(value: Any) -> tuple[list[Any], list[Any]]:
    """Return the endings, and their names: as given, else letters."""
    if isinstance(value, dict):
        texts, names = value.get("text"), value.get("label")
        if isinstance(texts, list) and isinstance(names, list) and len(texts) == len(names):
            return texts, names
        return [], []
    return (value, list(ascii_uppercase[: len(value)])) if isinstance(value, list) else ([], [])


def _place(value: Any, key: str, endings: list[str], names: list[Any]) -> int | None:
    """Return the index of the ending given by number, by name or, as `answer`, by text; None if there is none."""
    if key == "answer" and value in endings:
        return endings.index(value)
    if isinstance(value, str) and value in names:
        return names.index(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 4:
        value = int(value)
    return value if type(value) is int and 0 <= value < len(endings) else None
