"""`byhand work NAME`: worked examples to do on paper, and a quiz on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from byhand.book.lessons.changes import before_and_after
from byhand.book.lessons.examples import TITLES, make
from byhand.book.lessons.lesson import Lesson
from byhand.book.lessons.text import text
from byhand.book.numbers.arithmetic import decimal
from byhand.book.words.language import Language, Words, preferred, say
from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional, Repeated, Switch
from byhand.cli.learn import quiz
from byhand.cli.learn.plotting import Plot, write
from byhand.cli.terminal.say import show
from byhand.errors import ByhandError

LIST = Words(
    "Worked examples. Read one: byhand work NAME. Do it yourself: byhand work NAME --quiz. "
    "A title, or part of one, is a name too:",
    "手算例子。阅读：byhand work 名称；自己做：byhand work 名称 --quiz。名称也可以是标题或标题的一部分：",
)

DIGITS = 9  # shown of numbers that a nudge barely changes
COMPARED = Words("Before → after:", "原来 → 现在：")


@dataclass(frozen=True)
class Options:
    """Show a worked example step by step, each number with its arithmetic."""

    name: Positional[str] = ""
    """An example's name, or its title in either language; or any equation, with its own small numbers. Omit it to
    list the examples."""
    quiz: Switch = False
    """Ask for about 30 instructive numbers, with hints; common mistakes are named."""
    all: Switch = False
    """With --quiz: ask for every number of the example."""
    from_: int = 1
    """First step."""
    resume: Switch = False
    """Continue the last unfinished quiz of this example."""
    plot: Plot = None
    """Draw its pictures as SVG; without a file name, work-NAME.svg in the current folder."""
    set: Repeated[str] = ()
    """Change a given number of the example: W_K=W_Q, X[0]=X[1], W_Q[0,0]=1.001, rate=1/5. Repeat it for several. The
    effects are listed at the end."""
    exact: Switch = False
    """Show exact values where possible: fractions, roots, logarithms."""
    lang: Language = field(default_factory=preferred)
    """Language; from LANG if not given."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand work")
    options = given.over()
    if not options.name:
        given.refuse({*given.values} - {"lang"}, "without an example, such as gelu")
        width = max(map(len, TITLES))
        show(LIST.said(options.lang))
        show("\n".join(f"  {name:<{width}}  {words.said(options.lang)}" for name, words in TITLES.items()))
        return 0
    if not options.quiz:
        given.refuse(("all", "resume"), "without --quiz")
    if options.resume:
        given.refuse(("all", "from_", "set"), "with --resume, which continues the last quiz")
    lesson = make(options.name, options.exact, options.set)
    _require_step(lesson, options.from_)
    wrote = ""
    if options.plot is not None:
        wrote = _plot(lesson, options.plot, options.lang)
    if not options.quiz:
        show(text(lesson, options.lang, options.from_), *_beside(lesson, options))
    elif options.resume:
        quiz.run(lesson, quiz.left(lesson), options.lang)
    else:
        quiz.run(lesson, quiz.QuizProgress(options.from_, every=options.all), options.lang)
    if wrote:
        show(wrote)
    return 0


def _beside(lesson: Lesson, options: Options) -> Iterator[str]:
    """Yield the effects of an example's changes."""
    if not lesson.changes:
        return
    yield ""
    yield COMPARED.said(options.lang)
    for before, now in before_and_after(lesson, make(lesson.name, options.exact)):
        yield f"   {say(now.label, options.lang)}: {decimal(before.value, DIGITS)} → {decimal(now.value, DIGITS)}"


def _plot(lesson: Lesson, path: Path, lang: str) -> str:
    """Write the lesson's pictures; return a line that names the file."""
    from byhand.book.pictures.of_lessons import svg

    if lesson.changes:
        raise ByhandError("--plot draws an example as it is. Leave out --plot or --set.")
    if lesson.name not in TITLES:
        raise ByhandError(f"{lesson.name} has no pictures. Leave out --plot.")
    return write(svg(lesson.name, lesson.title, lang), path, f"work-{lesson.name}.svg", lang)


def _require_step(lesson: Lesson, step: int) -> None:
    if not 1 <= step <= len(lesson.steps):
        raise ByhandError(
            f"--from is {step}, but {lesson.name} has the steps 1 to {len(lesson.steps)}. Use one of them."
        )
