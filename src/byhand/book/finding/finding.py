"""One answer of `where`: an equation, a place in the code, a setting, a command, a guide, a term, or what lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from byhand.book.finding import source
from byhand.book.finding.source import Code, Use
from byhand.book.words.language import PAGE, Words

Kind = Literal["equation", "place", "setting", "command", "guide", "lesson", "term", "absent"]


NOTHING = Words("", "")


class SymbolRow(NamedTuple):
    """One input, or all results together: names in code and in LaTeX, shape, meaning."""

    name: str
    latex: str
    shape: Words
    meaning: Words

    def as_json(self) -> dict[str, str]:
        """Return plain values."""
        said = {"shape": self.shape.en, "meaning": self.meaning.en, "meaning_zh": self.meaning.zh}
        return {"name": self.name, "latex": self.latex, **said}


@dataclass(frozen=True, eq=False)
class Finding:
    """One answer of `where`. Pointers are `path:line`, looked up on first use; None if they point nowhere.

    code, derived           definitions: a file, and a dotted name in it
    tests                   files that may hold its test, `worked_in` the file of its entry, `pages` their folder
    says                    lines below the title
    command                 what a reader types
    term                    the glossary's topic that it is, if that is called otherwise
    see                     names of other answers
    formula                 the formula as a terminal shows it, and `derivative_formula` that of the derivative
    settings                keywords such as `eps=1e-05`, each with its LaTeX if it has any
    kernels_at              definitions of the kernels that compute the equation, by runtime
    uses                    every application; JSON has the first as `wired_at`; both are in the index alone
    """

    name: str
    title: Words
    kind: Kind = "equation"
    code: Code | None = None
    tests: tuple[str, ...] = ()
    says: tuple[Words, ...] = ()
    command: str = ""
    term: Words = NOTHING
    see: tuple[str, ...] = ()
    seed_names: tuple[str, ...] = ()
    derived: Code | None = None
    worked_in: Code | None = None
    pages: str = ""
    latex: str = ""
    latex_derivative: str = ""
    formula: Words = NOTHING
    derivative_formula: Words = NOTHING
    symbols: tuple[SymbolRow, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    kernels_at: Mapping[str, Code] = field(default_factory=dict)
    uses: tuple[Use, ...] = ()
    source: str = ""

    @cached_property
    def forward(self) -> str | None:
        """The code."""
        return source.definition(*self.code) if self.code else None

    @cached_property
    def derivative(self) -> str | None:
        """The code of the derivative."""
        return source.definition(*self.derived) if self.derived else None

    @cached_property
    def test(self) -> str | None:
        """The first test; outside a checkout, the file as the repository has it."""
        root = source.repository()
        if root is None:
            return next(iter(self.tests), None)
        return next(filter(None, (source.first_test(root / path) for path in self.tests)), None)

    @cached_property
    def worked(self) -> str | None:
        """The worked numbers."""
        return source.definition(*self.worked_in) if self.worked_in else None

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The kernels that compute the equation, by runtime."""
        found = {runtime: source.definition(*kernel) for runtime, kernel in self.kernels_at.items()}
        return {runtime: where for runtime, where in found.items() if where}

    def page(self, lang: str) -> str | None:
        """Return the page in `en` or `zh`, without a line outside a checkout."""
        root, path = source.repository(), self.page_path(lang)
        if not self.pages:
            return None
        return path if root is None else f"{path}:1" if (root / path).is_file() else None

    def page_path(self, lang: str) -> str:
        """Return the path of its page in `en` or `zh`."""
        return f"{self.pages}/{self.name.rpartition('/')[2]}{PAGE.said(lang)}"

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; `relative_to` says what paths are relative to."""
        return {
            "name": self.name,
            "title": self.title.en,
            "title_zh": self.title.zh,
            "kind": self.kind,
            "term": self.term.en,
            "says": [words.en for words in self.says],
            "says_zh": [words.zh for words in self.says],
            "latex": self.latex,
            "latex_derivative": self.latex_derivative,
            "plain": self.formula.en,
            "plain_derivative": self.derivative_formula.en,
            "symbols": [symbol.as_json() for symbol in self.symbols],
            "forward": self.forward,
            "derivative": self.derivative,
            "test": self.test,
            "worked": self.worked,
            "page_en": self.page("en"),
            "page_zh": self.page("zh"),
            "kernels": self.kernels,
            "wired_at": self.uses[0].where if self.uses else None,
            "seed_names": self.seed_names,
            "source": self.source,
            "command": self.command,
            "see": self.see,
            "uses": [use.where for use in self.uses],
            "relative_to": "repository" if source.repository() else "installed package",
        }


READ: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("title", "term", "formula", "derivative_formula"), lambda value: Words(*value)),
    "says": lambda value: tuple(Words(*words) for words in value),
    "symbols": lambda value: tuple(SymbolRow(n, x, Words(*shape), Words(*meaning)) for n, x, shape, meaning in value),
    "kernels_at": lambda value: {runtime: tuple(code) for runtime, code in value.items()},
    "uses": lambda value: tuple(Use(*row) for row in value),
}  # what a row of the index keeps otherwise than the record does


def restored(stored: Mapping[str, Any]) -> Finding:
    """Return an answer from what the index keeps of it."""
    return Finding(**{name: READ.get(name, _tuple)(value) for name, value in stored.items()})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
