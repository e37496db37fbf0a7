"""`byhand work NAME`: worked examples to do on paper, and a quiz on them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

from byhand.book.lessons.examples import TITLES, make
from byhand.book.lessons.lesson import Lesson, Number
from byhand.book.lessons.text import given_lines, heading_lines, number_line, result_lines, text
from byhand.book.practice.quiz import check
from byhand.book.words.language import Language, Words, say
from byhand.cli.arguments.parsing import parse
from byhand.errors import ByhandError

LONGEST, REST = 1000, 1 << 20  # characters read of an answer; then skipped of its line
TRIES = 50  # for one number, then the quiz shows it: a pipe of answers may never end
SAID = {
    "list": Words(
        "Worked examples (byhand work NAME; --quiz asks for each number):",
        "手算例子（byhand work 名称；--quiz 逐个提问）：",
    ),
    "help": Words(
        "Type each number (0.33, 1/3, sqrt(2)/2). Enter shows it, s skips the step, q ends.",
        "逐个输入数字（0.33、1/3、sqrt(2)/2）。回车显示答案，s 跳过这一步，q 结束。",
    ),
    "right": Words("right: ", "正确："),
    "known": Words("not quite: you {mistake}", "不对：{mistake}"),
    "known_plain": Words("not quite: {mistake}", "不对：{mistake}"),
    "wrong": Words("not quite", "不对"),
    "again": Words(" (once more, or Enter to see it)", "（再试一次，或按回车看答案）"),
    "no_number": Words("that is no number: write 0.33, 1/3 or sqrt(2)/2", "这不是数字：请写 0.33、1/3 或 sqrt(2)/2"),
    "score": Words("{right} of {asked} right at the first try.", "共 {asked} 题，第一次就答对 {right} 题。"),
}


@dataclass(frozen=True)
class Options:
    """Show a worked example step by step, each number with its arithmetic."""

    name: Annotated[str, tyro.conf.Positional] = ""
    """Which example; nothing lists them."""
    quiz: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Ask for each number before showing it, and name the mistake where it is a known one."""
    exact: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Show fractions and roots where they exist."""
    lang: Language = "en"
    """Language."""


@dataclass
class Score:
    """How many numbers were tried, or given up, and how many were right at the first try."""

    asked: int = 0
    right: int = 0


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand work")
    if not options.name:
        if options.quiz or options.exact:
            raise ByhandError(f"--quiz and --exact need an example. Use one of {', '.join(TITLES)}.")
        width = max(map(len, TITLES))
        print(SAID["list"].said(options.lang))
        print("\n".join(f"  {name:<{width}}  {words.said(options.lang)}" for name, words in TITLES.items()))
        return 0
    lesson = make(options.name, options.exact)
    if options.quiz:
        return _quiz(lesson, options.lang)
    print(text(lesson, options.lang))
    return 0


def _quiz(lesson: Lesson, lang: str) -> int:
    score = Score()
    print(
        lesson.title.said(lang),
        "",
        lesson.intro.said(lang),
        *given_lines(lesson, lang),
        "",
        SAID["help"].said(lang),
        sep="\n",
    )
    try:
        for count, step in enumerate(lesson.steps, 1):
            print("", *heading_lines(count, step, lang), sep="\n")
            for number in step.numbers:
                if not _ask(number, lang, score):
                    break
            print(*result_lines(step, lang), sep="\n")
    except EOFError:
        print()
    if score.asked:
        print(SAID["score"].said(lang, right=score.right, asked=score.asked))
    return 0


def _ask(number: Number, lang: str, score: Score) -> bool:
    """Ask for one number until it is right or given up; a number counts from its first try. False skips the step.

    After TRIES it is shown.
    """
    first = True
    for _ in range(TRIES):
        answer = _read(f"   {say(number.label, lang)} = {say(number.letters, lang)}\n   ? ").strip()
        if answer == "q":
            raise EOFError
        if answer == "s":
            return False
        if not answer:
            score.asked += first
            print(f"   {number_line(number, lang)}")
            return True
        try:
            verdict = check(number, answer)
        except ByhandError:
            print(f"   {SAID['no_number'].said(lang)}")
            continue
        score.asked += first
        if verdict.right:
            score.right += first
            print(f"   {SAID['right'].said(lang)}{number_line(number, lang)}")
            return True
        first = False
        if verdict.mistake:
            words = verdict.mistake.said(lang)
            plain = words.startswith(("the ", "that "))
            print(
                f"   {SAID['known_plain' if plain else 'known'].said(lang, mistake=words)}{SAID['again'].said(lang)}"
            )
        else:
            print(f"   {SAID['wrong'].said(lang)}{SAID['again'].said(lang)}")
    print(f"   {number_line(number, lang)}")
    return True


def _read(prompt: str) -> str:
    """Read a line; print the prompt on standard output even if that is no terminal."""
    print(prompt, end="", flush=True)
    line = sys.stdin.readline(LONGEST)
    if not line:
        raise EOFError
    if len(line) == LONGEST and not line.endswith("\n"):
        sys.stdin.readline(REST)
    return line
