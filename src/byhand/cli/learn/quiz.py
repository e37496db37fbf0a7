"""The quiz of `byhand work`: asks for the numbers of a lesson one by one, and can be resumed."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from byhand.book.lessons.lesson import Lesson, Number, Step
from byhand.book.lessons.text import given_lines, heading_lines, named_lines, number_line, result_lines, why_lines
from byhand.book.practice.checking import HOW, check
from byhand.book.practice.selection import questions
from byhand.book.words.language import Words, say
from byhand.cli.terminal.interrupts import at_the_end
from byhand.cli.terminal.say import show
from byhand.errors import ByhandError, command
from byhand.files.user_cache import cache_folder, read_own, write_own

LONGEST, REST = 1000, 1 << 20  # characters read of an answer; then skipped of its line
TRIES = 50  # for one number, then the quiz shows it: a pipe of answers may never end
LARGEST = 1000  # bytes of a file that holds progress
SAID = {
    "help": Words(
        "Type each number (0.33, 1/3, sqrt(2)/2). Enter shows it, s skips the step, q ends.",
        "逐个输入数字（0.33、1/3、sqrt(2)/2）。回车显示答案，s 跳过这一步，q 结束。",
    ),
    "some": Words(
        "Asked for: {n} of {all} numbers, those that teach; --all asks for all.",
        "共 {all} 个数，只问其中有代表性的 {n} 个；加 --all 全部提问。",
    ),
    "known": Words("Known from the steps before", "前面各步的结果"),
    "again": Words(
        "Going on at step {step}: {right} of {asked} right so far.",
        "从第 {step} 步继续：已答 {asked} 题，对 {right} 题。",
    ),
    "right": Words("right: ", "正确："),
    "mistake": Words("not quite: you {mistake}", "不对：{mistake}"),
    "plain_mistake": Words("not quite: {mistake}", "不对：{mistake}"),
    "wrong": Words("not quite", "不对"),
    "retry": Words(" (once more, or Enter to see it)", "（再试一次，或按回车看答案）"),
    "no_number": Words("that is no number: {how}", "这不是数字：{how}"),
    "score": Words("{right} of {asked} right at the first try.", "共 {asked} 题，第一次就答对 {right} 题。"),
    "left": Words("To go on: {work} --quiz --resume", "继续：{work} --quiz --resume --lang zh"),
    "not_kept": Words("To go on: {work} --quiz --from {step}", "继续：{work} --quiz --from {step} --lang zh"),
}


@dataclass
class QuizProgress:
    """The progress of a quiz: the step, how many of its questions are done, and the score.

    asked  numbers tried or given up, `right` of them at the first try
    every  whether the quiz asks for every number
    """

    step: int = 1
    done: int = 0
    asked: int = 0
    right: int = 0
    every: bool = False


def run(lesson: Lesson, progress: QuizProgress, lang: str) -> None:
    """Ask from the place that the progress names to the end, or until the reader leaves: q, Ctrl-D or Ctrl-C."""
    chosen = questions(lesson, progress.every)
    kept = replace(progress)  # as it was before the question that is open
    show(lesson.title.said(lang), "", lesson.intro.said(lang), *given_lines(lesson, lang))
    if earlier := dict(row for step in lesson.steps[: progress.step - 1] for row in step.results):
        show("", SAID["known"].said(lang), *named_lines(tuple(earlier.items()), lang))
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
                show("", *_heading(count, step, numbers, lang))
                for number in numbers[progress.done :]:
                    kept = replace(progress, step=count)
                    if not _ask(number, lang, progress):
                        break
                    progress.done += 1
                progress.step, progress.done = count + 1, 0
                kept = replace(progress)
                show(*result_lines(step, lang), *(why_lines(step, lang, told) if numbers else ()))
            if not lesson.changes:
                _forget(lesson.name)
            _print_score(progress, lang)
        except EOFError:
            leave()


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
    raise ByhandError(f"no quiz of {lesson.name} was left to go on with. Leave out --resume, or use --from STEP.")


def _path(name: str) -> Path | None:
    folder = cache_folder()
    return folder / "quiz" / f"{name}.json" if folder else None


def _keep(name: str, progress: QuizProgress) -> bool:
    """Write the progress down, and say whether that was possible."""
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
    """Return a step's whole heading if it asks for something, or has nothing to ask for; else its title alone."""
    lines = list(heading_lines(count, step, lang))
    return lines if numbers or not step.numbers else lines[:1]


def _print_score(progress: QuizProgress, lang: str) -> None:
    if progress.asked:
        show(SAID["score"].said(lang, right=progress.right, asked=progress.asked))


def _ask(number: Number, lang: str, score: QuizProgress) -> bool:
    """Ask for one number until it is right or given up; a number counts from its first try. False skips the step.

    After TRIES it is shown.
    """
    first = True
    asked = " = ".join(filter(None, (say(number.label, lang), say(number.letters, lang))))
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
        said = SAID["wrong"].said(lang)
        if verdict.mistake:
            words = verdict.mistake.said(lang)
            key = "plain_mistake" if words.startswith(("the ", "that ")) else "mistake"
            said = SAID[key].said(lang, mistake=words)
        show(f"   {said}{SAID['retry'].said(lang)}")
    show(f"   {number_line(number, lang)}")
    return True


def _read(prompt: str) -> str:
    """Read a line; print the prompt on standard output even if that is no terminal."""
    show(prompt, end="", flush=True)
    line = sys.stdin.readline(LONGEST)
    if not line:
        raise EOFError
    if len(line) == LONGEST and not line.endswith("\n"):
        sys.stdin.readline(REST)
    return line
