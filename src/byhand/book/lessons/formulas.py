"""The formula of a step: an equation, or its derivative, on paper and in the letters of the step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding.equations import of_equations
from byhand.book.lessons.lesson import Array, grid
from byhand.book.lessons.letters import IN_ARITHMETIC, MEAN, PARTIAL, in_letters, label
from byhand.book.numbers.arithmetic import decimal
from byhand.book.words.language import Words
from byhand.book.words.plain_math import plain
from byhand.engine import Equation
from byhand.engine.equation import registry

QUAD = r", \quad "  # between formulas on one line


class StepFormula:
    """The formula of an equation for these arrays, without the inputs that are left out.

    settings  letters that replace those of the equation's settings
    """

    def __init__(
        self,
        equation: Equation,
        inputs: Sequence[Array],
        results: Sequence[Array],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.entry, finding = ENTRIES[equation.name], of_equations()[equation.name]
        self.symbols = [symbol.latex for symbol in equation.inputs]
        pairs = (*zip(equation.results, results, strict=False), *zip(equation.inputs, inputs, strict=False))
        self.letters = {symbol.latex: array.letter for symbol, array in pairs} | dict(settings or {})
        self._result = results[0].letter
        axes = [array.data.ndim for array in (*inputs, *results)]
        self._has_rows = max(axes, default=0) > 1 or "_{n," in finding.latex
        self._is_scaled = 0 in axes[: len(inputs)]
        self._lacks_some = len(inputs) < len(self.symbols)
        single = self.entry.one_head if max(axes, default=0) < 3 else None
        usual = single or self.entry.on_paper or (finding.latex, finding.latex_derivative)
        self._both = usual if equation is registry[equation.name] else (equation.latex, usual[1])

    def forward(self) -> str:
        """Return the LaTeX of the equation."""
        return self.written(self._both[0])

    def derivative(self, slots: Collection[int]) -> str:
        """Return the LaTeX of the derivative with respect to the inputs with these numbers."""
        unwanted = tuple(f"{PARTIAL}{symbol}" for k, symbol in enumerate(self.symbols) if k not in slots)
        lines = self.on_paper(self._both[1]).split(QUAD)
        return in_letters(QUAD.join(line for line in lines if not _defines(line, unwanted)), self.letters)

    def written(self, latex: str) -> str:
        """Return a formula, or a letter of one, in the letters of the step."""
        return in_letters(self.on_paper(latex), self.letters)

    def in_words(self, words: Words | None) -> Words | None:
        """Return a goal or a reason in the step's letters: x[i], ∂x, and x unless it is a word, which "of A" is not."""
        if words is None:
            return None
        spelled = {label(symbol): label(letter) for symbol, letter in self.letters.items() if label(letter)}
        symbols = "|".join(sorted(map(re.escape, spelled), key=len, reverse=True))
        word = r"(?<!of )[aAI]\b(?! [的与])"
        whole = re.compile(
            rf"(?<![\w'’])(?:(?<=∂)(?:{symbols})|(?:{symbols})(?=\[)|(?!{word})(?:{symbols}))(?![\w\u0302'’])"
        )
        return Words(*(whole.sub(lambda found: spelled[found[0]], text) for text in (words.en, words.zh)))

    def in_label(self, label_of_part: str) -> str:
        """Return the label of a part of the arithmetic, such as avg(h), in the letters of the step."""
        alone = (pair for pair in self.entry.without if self._lacks_some and re.fullmatch(r"\w|\\hat\{\w\}", pair[0]))
        letters = {**self.letters, **{given: self.written(instead) for given, instead in alone}}
        spelled = {label(symbol): label(letter) for symbol, letter in letters.items()}
        if "∂p" in label_of_part:  # all kinds of softmax share these terms
            spelled["p"] = label(self._result)
        label_of_part = IN_ARITHMETIC.get(label_of_part, label_of_part)
        if label_of_part == "mean":
            return MEAN.get(self.entry.stem, label_of_part)
        pattern = rf"(?<![\w])(?:{'|'.join(map(re.escape, spelled))})(?![\w\u0302])"
        return re.sub(pattern, lambda found: spelled[found[0]], label_of_part) if spelled else label_of_part

    def on_paper(self, latex: str) -> str:
        """Return a formula without inputs that are left out and without the index of an only row."""
        if self._lacks_some:
            for given, instead in self.entry.without:
                latex = in_letters(latex, {given: instead}) if len(given) == 1 else latex.replace(given, instead)
        if self.entry.on_paper and not self._has_rows:
            latex = latex.replace(r"\sum_t ", "").replace("_{t,", "_{").replace("_t", "")
        return latex.replace(r"\odot", r"\cdot") if self._is_scaled else latex


def _defines(line: str, letters: tuple[str, ...]) -> bool:
    """Return whether a line is about one of these letters, with or without an index."""
    return any(line.startswith((f"{letter} =", f"{letter}_", f"{letter}[")) for letter in letters)


def said(latex: str, arrays: Iterable[Array]) -> Words:
    """Return a formula as text and, on another line, the arrays' names and the settings."""
    pairs = [(label(a.letter), _known_as(a)) for a in arrays if a.name or not a.data.ndim]
    named = [f"{letter} = {name}" for letter, name in pairs if letter != name]
    en, zh = (re.sub(r"(?<!\^)\((\w+)\)(?=\[)", r"\1", plain(latex, lang)) for lang in ("en", "zh"))
    return Words(f"{en}\nhere {', '.join(named)}", f"{zh}\n这里 {'，'.join(named)}") if named else Words(en, zh)


def _known_as(array: Array) -> str:
    """Return an array's name in the code; for a setting, or an array of this step alone, its numbers."""
    if not array.data.ndim:
        return decimal(float(array.data))
    own = "[" in label(array.letter)
    return grid(array.data) if own and np.any(array.data) else "0" if own else array.name
