"""Generated worked numbers: the hand-sized example of an equation, forward and back, as formulas."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.examples import TITLES
from byhand.book.numbers import closed_form as example
from byhand.book.pages.blocks.markdown import block, display_lines
from byhand.book.words.language import Words
from byhand.engine.equation import registry

LONG = 250  # LaTeX longer than this is harder to read than the numbers it stands for


@block
def worked(page: Path, lang: str, stem: str) -> str:
    """An equation's worked example: inputs, result, upstream gradient, and gradients of the inputs."""
    equation, numbers = registry[stem], ENTRIES[stem]
    latex = {s.name: s.latex for s in equation.inputs}
    results = [symbol.latex for symbol in equation.results]
    said = Words("Given", "已知").said(lang) + _settings(numbers.static, lang)
    given = [(latex[name], x) for name, x in numbers.inputs.items()]
    result = list(zip(results, example.several(numbers.result), strict=True))
    back = [(rf"\partial {name}", d) for name, d in zip(results, example.several(numbers.d_result), strict=True)]
    gradients = [(rf"\partial {latex[name]}", d) for name, d in numbers.gradients.items()]
    pairs = [
        (said, given),
        (Words("Result", "结果").said(lang), result),
        (Words("Upstream gradient", "上游梯度").said(lang), back),
        (Words("Gradients of the inputs", "各输入的梯度").said(lang), gradients),
    ]
    colon = Words(":", "：").said(lang)
    parts = [f"{words}{colon}\n\n{_equalities(lines)}" for words, lines in pairs if lines]
    return "\n\n".join([*parts, Words(numbers.note, numbers.note_zh).said(lang), *_command(stem, lang)])


def _command(stem: str, lang: str) -> list[str]:
    """Return the command that works the equation step by step, if it has such an example."""
    name = stem.replace("_", "-")
    if name not in TITLES:
        return []
    return [
        Words(
            f"Step by step, with a quiz: `byhand work {name} --quiz`",
            f"逐步演算并带提问：`byhand work {name} --quiz --lang zh`",
        ).said(lang)
    ]


def _settings(static: dict[str, Any], lang: str) -> str:
    """Return the settings that an example uses, such as eps = 0."""
    shown = [f"`{name}={setting}`" for name, setting in static.items()]
    return Words(f", with {', '.join(shown)}", f"（{'、'.join(shown)}）").said(lang) if shown else ""


def _equalities(lines: list[tuple[str, example.Numbers]]) -> str:
    return display_lines([f"{name} {_numbers(x)}" for name, x in lines])


def _numbers(numbers: example.Numbers) -> str:
    """Return = the closed form, with decimals unless it is rational; decimals alone if the form is long."""
    exact = example.matrix(numbers)
    if not re.search(r"[a-z]{2}", str(numbers).replace("inf", "")):
        return f"= {exact}"
    decimals = rf"\approx {example.matrix(example.each(_decimal, numbers))}"
    return f"= {exact} {decimals}" if len(exact) <= LONG else decimals


def _decimal(written: Any) -> str:
    number = example.value(written)
    return str(written) if abs(number) == float("inf") else f"{round(number, 6) + 0.0:.6f}".rstrip("0").rstrip(".")
