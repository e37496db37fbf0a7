"""The quiz of `byhand work`: asks for the numbers of a lesson one by one, and can be resumed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from byhand.book.lessons.lesson import Array, Lesson, Number, Step, grid
from byhand.book.lessons.letters import letter
from byhand.book.lessons.text import (
    GIVEN,
    heading_lines,
    in_code,
    named_lines,
    number_line,
    result_lines,
    why_lines,
)
from byhand.book.practice.checking import HOW, check, parsed
from byhand.book.practice.selection import questions
from byhand.book.words.language import Words, say
from byhand.cli.terminal.interrupts import at_the_end
from byhand.cli.terminal.say import show
from byhand.errors import ByhandError, command
from byhand.files.user_cache import cache_folder, read_own, write_own

LONGEST, REST = 1000, 1 << 20  # characters of a line read as an answer; further ones skipped
TRIES = 50  # per number, then the quiz shows it: piped answers may never end
LARGEST = 1000  # bytes of a progress file
SAID = {
    "help": Words(
        "Type each number (0.33, 1/3, sqrt(2)/2). Enter shows it, s skips the step, q ends the quiz.",
        "逐个输入数字（0.33、1/3、sqrt(2)/2）。回车显示答案，s 跳过这一步，q 结束。",
    ),
    "some": Words(
        "The quiz asks for {n} of {all} numbers, those that teach most; --all asks for every one.",
        "共 {all} 个数，只问其中最有代表性的 {n} 个；加 --all 全部提问。",
    ),
    "again": Words(
        "Continuing at step {step}: {right} of {asked} right so far.",
        "从第 {step} 步继续：已答 {asked} 题，对 {right} 题。",
    ),
    "right": Words("right: ", "正确："),
    "mistake": Words("not quite: you {mistake}", "不对：{mistake}"),
    "plain_mistake": Words("not quite: {mistake}", "不对：{mistake}"),
    "wrong": Words("not quite", "不对"),
    "same": Words("you gave this number before", "这个数前面已经答过，仍不对"),
    "retry": Words(" (once more, or Enter to see it)", "（再试一次，或按回车看答案）"),
    "hint": Words("in letters: {arithmetic}", "提示（字母）：{arithmetic}"),
    "begun": Words("the first part: {arithmetic}", "提示（先算第一项）：{arithmetic}"),
    "numbers": Words("in numbers: {arithmetic}", "提示（代入数字）：{arithmetic}"),
    "no_number": Words("not a number: {how}", "这不是数字：{how}"),
    "score": Words("{right} of {asked} right at the first try.", "共 {asked} 题，第一次就答对 {right} 题。"),
    "left": Words("To continue: {work} --quiz --resume", "继续：{work} --quiz --resume --lang zh"),
    "not_kept": Words("To continue: {work} --quiz --from {step}", "继续：{work} --quiz --from {step} --lang zh"),
}


@dataclass
class QuizProgress:
    """The progress of a quiz: the step, the number of its questions done, and the score.

    asked  numbers tried or given up, `right` of them at the first try
    every  whether the quiz asks for every number
    """

    step: int = 1
    done: int = 0
    asked: int = 0
    right: int = 0
    every: bool = False


def run(lesson: Lesson, progress: QuizProgress, lang: str) -> None:
    """Ask from where the progress stands to the end, or until the reader leaves with q, Ctrl-D or Ctrl-C."""
    chosen = questions(lesson, progress.every)
    kept = replace(progress)  # as of before the open question
    shown = _Shown(lesson)
    show(lesson.title.said(lang), "", lesson.intro.said(lang), *shown.at_the_start(lang))
    show("", SAID["help"].said(lang))
    asked, there = sum(map(len, chosen)), sum(len(step.numbers) for step in lesson.steps)
    if asked < there:
        show(SAID["some"].said(lang, n=asked, all=there))
    if progress.asked:
        show(SAID["again"].said(lang, step=progress.step, right=progress.right, asked=progress.asked))
    told: set[Words] = set()

    def leave() -> None:
        show("")
        _print_score(progress, lang)
        if kept.step <= len(lesson.steps):
            known = "left" if not lesson.changes and _keep(lesson.name, kept) else "not_kept"
            changes = (word for change in lesson.changes for word in ("--set", change))
            work = command("byhand", "work", lesson.name, *changes)
            show(SAID[known].said(lang, work=work, step=kept.step))

    with at_the_end(leave):
        try:
            for count in range(progress.step, len(lesson.steps) + 1):
                step, numbers = lesson.steps[count - 1], chosen[count - 1]
                show("", *_heading(count, step, numbers, lang), *(shown.before(step, lang) if numbers else ()))
                for number in numbers[progress.done :]:
                    kept = replace(progress, step=count)
                    if not _ask(number, lang, progress):
                        break
                    progress.done += 1
                progress.step, progress.done = count + 1, 0
                kept = replace(progress)
                show(*shown.after(step, lang), *(why_lines(step, lang, told) if numbers else ()))
            if not lesson.changes:
                _forget(lesson.name)
            _print_score(progress, lang)
        except EOFError:
            leave()


class _Shown:
    """Tracks the arrays shown to the reader: each is printed once, at the step that needs it."""

    def __init__(self, lesson: Lesson) -> None:
        read = {array.letter for step in lesson.steps for array in step.inputs}
        self._first = [(name, x) for name, x in lesson.given if letter(say(name, "en")) not in read]
        self._seen: set[str] = set()

    def at_the_start(self, lang: str) -> Iterator[str]:
        """Yield the given arrays that no step lists."""
        if self._first:
            yield from (
                "",
                GIVEN.said(lang),
                *named_lines([(in_code(name, lang), x) for name, x in self._first], lang),
            )

    def before(self, step: Step, lang: str) -> Iterator[str]:
        """Yield the inputs of a step that the reader has not seen yet."""
        arrays = {array.letter: array for array in step.inputs if array.data.ndim and self._is_new(array)}
        self._seen.update(arrays)
        yield from named_lines([(array.label, grid(array.data)) for array in arrays.values()], lang)

    def after(self, step: Step, lang: str) -> Iterator[str]:
        """Yield a step's results."""
        self._seen.update(array.letter for array in step.arrays)
        return result_lines(step, lang)

    def _is_new(self, array: Array) -> bool:
        return not array.name or array.letter not in self._seen


def left(lesson: Lesson) -> QuizProgress:
    """Return the progress of this lesson's last unfinished quiz; ByhandError if there is none."""
    # In the user's cache folder, under the lesson's name: the user names no file, and losing it costs nothing, since
    # --from begins at any step.
    path = _path(lesson.name)
    with suppress(OSError, ValueError, TypeError):
        found = QuizProgress(**json.loads(read_own(path, LARGEST))) if path else QuizProgress(0)
        numbers = (found.step, found.done, found.asked, found.right)
        if all(type(n) is int and n >= 0 for n in numbers) and 1 <= found.step <= len(lesson.steps):
            return found
    raise ByhandError(f"no quiz of {lesson.name} was left unfinished. Leave out --resume, or use --from STEP.")


def _path(name: str) -> Path | None:
    folder = cache_folder()
    return folder / "quiz" / f"{name}.json" if folder else None


def _keep(name: str, progress: QuizProgress) -> bool:
    """Save the progress; return whether that worked."""
    with suppress(OSError):
        if path := _path(name):
            write_own(path, json.dumps(asdict(progress)).encode())
            return True
    return False


def _forget(name: str) -> None:
    with suppress(OSError):
        if path := _path(name):
            path.unlink(missing_ok=True)


def _heading(count: int, step: Step, numbers: tuple[Number, ...], lang: str) -> list[str]:
    """Return a step's whole heading; only its title if it has numbers but none is asked."""
    lines = list(heading_lines(count, step, lang))
    return lines if numbers or not step.numbers else lines[:1]


def _print_score(progress: QuizProgress, lang: str) -> None:
    if progress.asked:
        show(SAID["score"].said(lang, right=progress.right, asked=progress.asked))


def _ask(number: Number, lang: str, score: QuizProgress) -> bool:
    """Ask for a number until it is right or given up, at most TRIES times; the first counts. False skips the step."""
    first, given, hints = True, set[float](), _hints(number, lang)
    asked = say(number.label, lang)
    for _ in range(TRIES):
        answer = _read(f"   {asked}\n   ? ").strip()
        if answer == "q":
            raise EOFError
        if answer == "s":
            return False
        if not answer:
            score.asked += first
            show(f"   {number_line(number, lang)}")
            return True
        try:
            verdict = check(number, answer)
        except ByhandError:
            show(f"   {SAID['no_number'].said(lang, how=HOW.said(lang))}")
            continue
        score.asked += first
        if verdict.right:
            score.right += first
            show(f"   {SAID['right'].said(lang)}{number_line(number, lang)}")
            return True
        first = False
        again = parsed(answer) in given
        given.add(parsed(answer))
        said = SAID["same" if again else "wrong"].said(lang)
        if verdict.mistake and not again:
            words = verdict.mistake.said(lang)
            key = "plain_mistake" if words.startswith(("the ", "that ")) else "mistake"
            said = SAID[key].said(lang, mistake=words)
        show(f"   {said}{SAID['retry'].said(lang)}")
        if hint := next(hints, ""):
            show(f"   {hint}")
    show(f"   {number_line(number, lang)}")
    return True


def _hints(number: Number, lang: str) -> Iterator[str]:
    """Yield a number's arithmetic in letters, then in numbers; of several operations the first is done."""
    label, worked = say(number.label, lang), say(number.expression, lang)
    if number.letters not in ("", number.expression):
        yield SAID["hint"].said(lang, arithmetic=f"{label} = {say(number.letters, lang)}")
    if number.begun:
        yield SAID["begun"].said(lang, arithmetic=f"{worked} = {number.begun}")
    elif worked != number.shown:
        yield SAID["numbers"].said(lang, arithmetic=worked)


def _read(prompt: str) -> str:
    """Read a line; print the prompt on standard output even if that is not a terminal."""
    show(prompt, end="", flush=True)
    line = sys.stdin.readline(LONGEST)
    if not line:
        raise EOFError
    if len(line) == LONGEST and not line.endswith("\n"):
        sys.stdin.readline(REST)
    return line
