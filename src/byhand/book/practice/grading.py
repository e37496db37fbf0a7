"""Grading a filled-in worksheet: credit for each step, and the misconceptions behind wrong answers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from byhand.book.lessons.lesson import Number
from byhand.book.practice.checking import agrees, check, narrow, parsed
from byhand.book.practice.edits import Mistake
from byhand.book.practice.sheet_pages import BLANK, SAID
from byhand.book.practice.sheets import Sheet
from byhand.book.words.language import Language, Words, say
from byhand.errors import ByhandError
from byhand.files.reading import parse_integer

HEADER = re.compile(r"byhand worksheet: topic=(?P<topic>[\w-]+) seed=(?P<seed>\d+)")
ANSWER = re.compile(r"^[\s>|*+-]*(?P<number>\d+\.\d+)\b(?P<separator>[*|:)\s]*)(?P<rest>.*)$")


@dataclass(frozen=True)
class GradedAnswer:
    """One answered question, with the typical mistake if the answer is one.

    `carried`: the answer follows, by right arithmetic, from a wrong earlier number, and earns its credit.
    """

    number: str
    question: Number
    written: str
    right: bool
    mistake: Mistake | None = None
    readable: bool = True
    carried: bool = False


@dataclass(frozen=True)
class StepGrade:
    """The credit of one step, numbered as on the sheet."""

    number: int
    title: Words
    answers: tuple[GradedAnswer, ...]

    @property
    def right(self) -> int:
        """The number of answers that are right, or follow from the reader's own earlier numbers."""
        return sum(a.right or a.carried for a in self.answers)


@dataclass(frozen=True)
class Grade:
    """The whole sheet, step by step."""

    sheet: Sheet
    steps: tuple[StepGrade, ...]

    @property
    def right(self) -> int:
        """The number of right answers."""
        return sum(step.right for step in self.steps)

    @property
    def asked(self) -> int:
        """The number of questions."""
        return sum(len(step.answers) for step in self.steps)

    def misconceptions(self, lang: str = "en") -> list[tuple[str, int]]:
        """Return the typical mistakes by name and their counts, the most frequent first."""
        made = [a.mistake for step in self.steps for a in step.answers if a.mistake]
        return Counter(m.said(lang) for m in made).most_common()

    def as_json(self, lang: str = "en") -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "topic": self.sheet.topic,
            "seed": self.sheet.seed,
            "right": self.right,
            "asked": self.asked,
            "steps": [
                {
                    "number": step.number,
                    "title": step.title.said(lang),
                    "right": step.right,
                    "asked": len(step.answers),
                    "wrong": [
                        {
                            "number": a.number,
                            "label": say(a.question.label, lang),
                            "answer": a.written,
                            "expected": a.question.value,
                            "mistake": a.mistake.said(lang) if a.mistake else None,
                            "carried": a.carried,
                        }
                        for a in step.answers
                        if not a.right
                    ],
                }
                for step in self.steps
            ],
            "misconceptions": [{"name": name, "times": times} for name, times in self.misconceptions(lang)],
        }


def find_sheet(text: str) -> tuple[str, int] | None:
    """Return topic and seed of the sheet that a text answers, from its comment line."""
    match = HEADER.search(text)
    return (match["topic"], parse_integer(match["seed"], "the sheet's seed")) if match else None


def language_of(text: str) -> Language:
    """Return the language of the sheet that a text answers, English by default."""
    return "zh" if SAID["sheet"].zh in text else "en"


def read_answers(text: str) -> dict[str, str]:
    """Return the text after the last `=` of each numbered line, or after `1.1:`; the last line of a number counts."""
    answers: dict[str, str] = {}
    for line in narrow(text).splitlines():
        match = ANSWER.match(line)
        if match and ("=" in match["rest"] or (":" in match["separator"] and match["rest"])):
            written = match["rest"].rpartition("=")[2].strip(" \t`|*")
            answers[match["number"]] = "" if set(written) <= {"_"} else written.strip("_ ")
    return answers


def grade(sheet: Sheet, answers: dict[str, str]) -> Grade:
    """Judge every answer; ByhandError for a number that the sheet does not have."""
    questions = sheet.questions()
    unknown = [n for n in answers if n not in questions]
    if unknown:
        last = list(questions)[-1]
        raise ByhandError(
            f"the answers have a number {unknown[0][:40]}, but sheet {sheet.topic} {sheet.seed} ends at {last}. "
            "Check topic and seed."
        )
    steps = []
    own: dict[str, float] = {}  # the reader's numbers so far, by label
    for i, step in enumerate(sheet.steps, 1):
        numbered = ((f"{i}.{j}", number) for j, number in enumerate(step.numbers, 1))
        judged = tuple(_judge(n, question, answers.get(n, ""), own) for n, question in numbered)
        if judged:
            steps.append(StepGrade(i, step.title, judged))
    return Grade(sheet, tuple(steps))


def _judge(number: str, question: Number, written: str, own: dict[str, float]) -> GradedAnswer:
    """Judge one answer by the right number, and by the number that follows from the reader's own earlier ones."""
    if not written or written == BLANK:
        return GradedAnswer(number, question, "", False)
    try:
        verdict = check(question, written)
    except ByhandError:
        return GradedAnswer(number, question, written, False, readable=False)
    given = parsed(written)
    carried = not verdict.right and _follows(question, given, own)
    own[say(question.label, "en")] = question.value if verdict.right else given
    return GradedAnswer(
        number, question, written, verdict.right, None if carried else verdict.mistake, carried=carried
    )


def _follows(question: Number, given: float, own: dict[str, float]) -> bool:
    """Return whether right arithmetic on the reader's own numbers gives this one."""
    if question.follow is None:
        return False
    try:
        return agrees(given, question.follow(own))
    except (ArithmeticError, ValueError):  # a slip can lead to the logarithm of a negative number
        return False
