"""One answer of `where`: an equation, a place in the code, a setting, a guide, a lesson, or a missing technique."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from byhand.book.finding import source
from byhand.book.finding.kernels import kernels_of
from byhand.book.words.language import PAGE, Words
from byhand.book.words.plain_math import plain
from byhand.engine.equation import Symbol

Kind = Literal["equation", "place", "setting", "guide", "lesson", "absent"]


@dataclass(frozen=True)
class SymbolRow:
    """One input, or all results together: names in code and in LaTeX, shape, meaning."""

    name: str
    latex: str
    shape: Words
    meaning: Words

    @classmethod
    def of(cls, symbols: tuple[Symbol, ...], zh: str) -> SymbolRow:
        """Return the row of an input, or of all results, each of which has the shape of the first."""
        first, shape = symbols[0], symbols[0].shape
        each = Words(f"{shape} each", f"各为 {shape}") if len(symbols) > 1 else Words(shape, shape)
        names, letters = (", ".join(getattr(s, part) for s in symbols) for part in ("name", "latex"))
        return cls(names, letters, each, Words(first.meaning, zh))


@dataclass(frozen=True, eq=False)
class Finding:
    """One answer of `where`. Pointers are `path:line`, looked up on first use; None if they point nowhere.

    code, derived           definitions: a file, and a dotted name in it
    tests                   files that may hold its test, `worked_in` the file of its entry, `pages` their folder
    asked                   names in other programs, and questions
    says                    lines below the title
    see                     names of other answers
    plain, plain_derivative the formulas as a terminal shows them
    settings                keywords such as `eps=1e-05`, each with its LaTeX if it has any
    uses                    every application; JSON has the first as `wired_at`
    """

    name: str
    title: Words
    kind: Kind = "equation"
    code: tuple[Path, str] | None = None
    tests: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    says: tuple[Words, ...] = ()
    see: tuple[str, ...] = ()
    seed_names: tuple[str, ...] = ()
    notations: tuple[str, ...] = ()
    derived: tuple[Path, str] | None = None
    worked_in: Path | None = None
    pages: str = ""
    latex: str = ""
    latex_derivative: str = ""
    plain: str = ""
    plain_derivative: str = ""
    symbols: tuple[SymbolRow, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    uses: tuple[source.Use, ...] = ()
    source: str = ""

    @cached_property
    def formula(self) -> Words:
        """The formula as a terminal shows it: in Chinese without the English words."""
        return Words(self.plain, plain(self.latex, "zh"))

    @cached_property
    def derivative_formula(self) -> Words:
        """The derivative in the same way."""
        return Words(self.plain_derivative, plain(self.latex_derivative, "zh"))

    @property
    def command(self) -> str:
        """The command that a reader types, with the flag of a setting."""
        if self.kind == "setting" and self.code:
            return f"byhand train {_flag(*self.code[1].split('.'))}"
        return f"byhand {self.name}" if self.kind == "lesson" else ""

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
        return source.definition(self.worked_in, "entry") if self.worked_in else None

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The kernels that compute the equation, by runtime."""
        found = {runtime: source.definition(*kernel) for runtime, kernel in kernels_of(self.name).items()}
        return {runtime: where for runtime, where in found.items() if where}

    def page(self, lang: str) -> str | None:
        """Return the page in `en` or `zh`, without a line outside a checkout."""
        root, path = source.repository(), self.page_path(lang)
        if not self.pages:
            return None
        return path if root is None else f"{path}:1" if (root / path).is_file() else None

    def page_path(self, lang: str) -> str:
        """Return the path of its page in `en` or `zh`."""
        return f"{self.pages}/{self.name}{PAGE.said(lang)}"

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; `relative_to` says what paths are relative to."""
        return {
            "name": self.name,
            "title": self.title.en,
            "title_zh": self.title.zh,
            "kind": self.kind,
            "says": [words.en for words in self.says],
            "says_zh": [words.zh for words in self.says],
            "latex": self.latex,
            "latex_derivative": self.latex_derivative,
            "plain": self.plain,
            "plain_derivative": self.plain_derivative,
            "symbols": [
                {
                    "name": s.name,
                    "latex": s.latex,
                    "shape": s.shape.en,
                    "meaning": s.meaning.en,
                    "meaning_zh": s.meaning.zh,
                }
                for s in self.symbols
            ],
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


def split(asked: str) -> tuple[str, ...]:
    """Return names and questions that commas separate."""
    return tuple(asked.split(", ")) if asked else ()


def _flag(owner: str, name: str) -> str:
    """Return a setting's flag of `byhand train`: with its default, or as the switch that changes the default."""
    from byhand import config  # only a shown setting needs its default

    default = getattr(config, owner).__dataclass_fields__[name].default
    written = name.replace("_", "-")
    if isinstance(default, bool):
        return f"--no-{written}" if default else f"--{written}"
    return f"--{written} {'...' if default in (None, '') else default}"
