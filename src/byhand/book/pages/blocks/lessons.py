"""Generated worked examples: the steps of a lesson as Markdown, number by number."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from byhand.book.lessons import examples
from byhand.book.lessons.lesson import Lesson, Number, Step
from byhand.book.numbers.closed_form import matrix
from byhand.book.pages.blocks.markdown import block, display_lines, link, link_equation, table
from byhand.book.pages.blocks.shapes import LATEX
from byhand.book.words.language import Words, say
from byhand.engine.equation import registry

SMALL = re.compile(r"([−-]?\d+(?:\.\d+)?)e[−-](\d+)")
NOISE = 10  # powers of ten below which a number is printed as 0: rounding decides, differently on each machine
ROUGH = 8  # powers of ten below which the last digits are left out, for the same reason


@block
def lesson(page: Path, lang: str, name: str, part: str = "", form: str = "") -> str:
    """A worked example, or its `forward`, `backward` or `update` part; in the form `brief` only what comes out."""
    whole = examples.make(name)
    parts = {number: where for where, numbers in split(whole).items() for number in numbers}
    steps = [(n, step) for n, step in enumerate(whole.steps, 1) if part in ("", parts[n])]
    return "\n\n".join(_step(page, lang, number, step, form == "brief") for number, step in steps)


@block
def lesson_intro(page: Path, lang: str, name: str) -> str:
    """What a worked example shows, and how to do it with the command line."""
    doing = Words(
        f"Do it yourself: `byhand work {name} --quiz`", f"自己做一遍：`byhand work {name} --quiz --lang zh`"
    ).said(lang)
    return f"{examples.make(name).intro.said(lang)}\n\n{doing}"


@block
def weights(page: Path, lang: str, name: str) -> str:
    """The weights of a worked example, as matrices."""
    found = import_module(f"{examples.__name__}.{name.replace('-', '_')}").WEIGHTS
    lines = [f"{LATEX.get(key.removeprefix('blocks.0.'), key)} = {matrix(value)}" for key, value in found.items()]
    return display_lines(lines)


def split(whole: Lesson) -> dict[str, range]:
    """Return the numbers of the steps that go forward, of those that walk back, and of those that come after."""
    back = [n for n, step in enumerate(whole.steps, 1) if step.is_derivative]
    first, last, end = (back[0], back[-1], len(whole.steps)) if back else (len(whole.steps) + 1,) * 3
    return {"forward": range(1, first), "backward": range(first, last + 1), "update": range(last + 1, end + 1)}


def _step(page: Path, lang: str, number: int, step: Step, brief: bool) -> str:
    title = step.title.said(lang)
    if step.stem in registry:
        title = f"[{title}]({link_equation(page, step.stem, lang).rpartition('(')[2]}"
    place = f" · {link(page, step.where)}" if step.where else ""
    parts = [f"**{number}.** {title}{place}"]
    if step.numbers and (not brief or not step.results):
        rows = [_row(number, lang) for number in step.numbers]
        parts.append(table(Words("Number|Arithmetic|Value", "数|算式|值"), rows, lang))
    elif step.results:
        lines = [quiet(f"{name} = {grid}") for name, grid in step.results]
        parts.append("\n".join(["```text", *lines, "```"]))
    return "\n\n".join(parts)


def _row(number: Number, lang: str) -> list[str]:
    said = [say(text, lang) for text in (number.label, number.expression, number.shown)]
    return [f"`{quiet(text)}`".replace("|", "\\|") for text in said]


def quiet(text: str) -> str:
    """Return arithmetic without the digits in which machines differ."""

    def shorter(small: re.Match[str]) -> str:
        if int(small[2]) >= NOISE:
            return "0"
        return (
            f"{float(small[1].replace('−', '-')):.2f}e−{small[2]}".replace("-", "−")
            if int(small[2]) >= ROUGH
            else small[0]
        )

    return re.sub(r"(?<!\w)\(0\)", "0", SMALL.sub(shorter, text))
