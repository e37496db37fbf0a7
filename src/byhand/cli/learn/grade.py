"""`byhand grade ANSWERS`: credit for each step of a worksheet, and the misconceptions behind wrong answers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from byhand.book.practice.grading import Grade, GradedAnswer, find_sheet, grade, language_of, read_answers
from byhand.book.practice.sheets import make
from byhand.book.words.language import SEMICOLON, Language, Words, say
from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import show, show_json
from byhand.cli.terminal.shown import shown
from byhand.errors import ByhandError, reason
from byhand.files.reading import read_regular

LARGEST = 1 << 20  # bytes: no filled-in sheet is longer
SAID = {
    "step": Words("{title}: {right} of {asked}", "{title}：{asked} 题中对 {right} 题"),
    "wrong": Words(
        "{number} {label}: {answer}, but it is {expected}{why}",
        "{number} {label}：写的是 {answer}，应为 {expected}{why}",
    ),
    "known": Words(" ({mistake})", "（{mistake}）"),
    "unreadable": Words(" (not a number: write 0.33, 1/3 or sqrt(2)/2)", "（不是数字：请写 0.33、1/3 或 sqrt(2)/2）"),
    "carried": Words(" (it follows from your earlier numbers: full credit)", "（由你前面的数推得，照样给分）"),
    "blank": Words("{n} not answered", "{n} 题未答"),
    "total": Words("{right} of {asked} right ({percent} %).", "共 {asked} 题，答对 {right} 题（{percent} %）。"),
    "misconceptions": Words("Look again at: {names}.", "请再看一看：{names}。"),
    "times": Words("{name} ({n} times)", "{name}（{n} 次）"),
}


@dataclass(frozen=True)
class Options:
    """Grade a filled-in worksheet: the Markdown file itself, or any text with lines such as `1.1 = 0.33`."""

    answers: Positional[Path]
    """The file; - reads standard input."""
    topic: str | None = None
    """Topic of the sheet, if the file does not name it."""
    seed: int | None = None
    """Seed of the sheet, if the file does not name it."""
    lang: Language | None = None
    """Language; that of the sheet if not given."""
    json: Switch = False
    """Print JSON."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand grade")
    text = _read(options.answers)
    topic, seed = find_sheet(text) or (None, None)
    topic = options.topic if options.topic is not None else topic
    seed = options.seed if options.seed is not None else seed
    if topic is None or seed is None:
        raise ByhandError(
            f"{options.answers} does not say which sheet it answers. "
            "Keep the sheet's comment line, or give --topic and --seed."
        )
    answers = read_answers(text)
    if not answers:
        raise ByhandError(f"{options.answers} holds no answers. Write lines such as 1.1 = 0.33.")
    lang = options.lang or language_of(text)
    graded = grade(make(topic, seed), answers)
    if options.json:
        show_json(graded.as_json(lang), indent=1)
    else:
        show("\n".join(_lines(graded, lang)))
    return 0


def _read(path: Path) -> str:
    name = shown(path, 200)
    try:
        content = sys.stdin.buffer.read(LARGEST + 1) if str(path) == "-" else read_regular(path, LARGEST)
    except OSError as error:
        raise ByhandError(
            f"cannot read {name}: {reason(error)}. Give a filled-in worksheet, or - for standard input."
        ) from None
    if len(content) > LARGEST:
        raise ByhandError(f"{name} is larger than {LARGEST} bytes. Give a filled-in worksheet.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ByhandError(f"{name} is not UTF-8 text. Save it as UTF-8.") from None


def _lines(graded: Grade, lang: str) -> list[str]:
    lines: list[str] = []
    for step in graded.steps:
        title = f"{step.number}. {step.title.said(lang)}"
        lines.append(SAID["step"].said(lang, title=title, right=step.right, asked=len(step.answers)))
        lines += [f"   {_wrong(a, lang)}" for a in step.answers if a.written and not a.right]
        blank = sum(not a.written for a in step.answers)
        if blank:
            lines.append(f"   {SAID['blank'].said(lang, n=blank)}")
    percent = round(100 * graded.right / graded.asked)
    lines += ["", SAID["total"].said(lang, right=graded.right, asked=graded.asked, percent=percent)]
    names = [SAID["times"].said(lang, name=name, n=n) if n > 1 else name for name, n in graded.misconceptions(lang)]
    if names:
        lines.append(SAID["misconceptions"].said(lang, names=SEMICOLON.said(lang).join(names)))
    return lines


def _wrong(answer: GradedAnswer, lang: str) -> str:
    why = ""
    if not answer.readable or answer.carried:
        why = SAID["carried" if answer.readable else "unreadable"].said(lang)
    if answer.mistake:
        why = SAID["known"].said(lang, mistake=answer.mistake.said(lang))
    return SAID["wrong"].said(
        lang,
        number=answer.number,
        label=say(answer.question.label, lang),
        answer=shown(answer.written, 60),
        expected=answer.question.shown,
        why=why,
    )
