"""The index: for each equation and place, its words in both languages and where everything about it stands.

Built from the registry, the entries and parsed source, without importing NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from byhand import equations as _registered  # noqa: F401  (importing the package fills the registry)
from byhand.book.entries.contract import ENTRIES, Entry
from byhand.book.finding import source
from byhand.book.finding.flow import order
from byhand.book.finding.kernels import kernels_of
from byhand.book.finding.landmarks import PLACES
from byhand.book.finding.place import Place
from byhand.book.finding.settings import flag
from byhand.book.words.language import PAGE, Words
from byhand.book.words.plain_math import plain
from byhand.engine.equation import Composite, Equation, Symbol, registry
from byhand.errors import ByhandError

WALK_BACK = (source.PACKAGE / "engine/backward.py", "walk_back")  # the derivative of a composite is that of its parts
Kind = Literal["equation", "place", "setting", "guide", "lesson", "absent"]
POINTERS = ("forward", "derivative", "test", "worked", "page_en", "page_zh", "kernels")


@dataclass(frozen=True)
class Row:
    """What one input, or all results together, are called in code and in LaTeX, their shape, and what they mean."""

    name: str
    latex: str
    shape: Words
    meaning: Words

    @classmethod
    def of(cls, symbols: tuple[Symbol, ...], zh: str) -> Row:
        """Return the row of an input, or of all results, each of which has the shape of the first."""
        first, shape = symbols[0], symbols[0].shape
        each = Words(f"{shape} each", f"各为 {shape}") if len(symbols) > 1 else Words(shape, shape)
        names, letters = (", ".join(getattr(s, part) for s in symbols) for part in ("name", "latex"))
        return cls(names, letters, each, Words(first.meaning, zh))


@dataclass(frozen=True, eq=False)
class Finding:
    """One answer of `where`. Pointers are `path:line`, found when they are asked for; None where there is nothing.

    `uses` lists every application; `wired_at` is the first of them. `plain` and `plain_derivative` are the formulas
    as a terminal shows them. `settings` are keywords such as `eps=1e-05`, each with its LaTeX if it has any.
    `code` and `derived` name definitions: a file, and what is defined there; `tests` are the files that may hold its
    test, `worked_in` the file of its entry, `pages` where its pages are. `asked` are names in other programs and
    questions, `says` lines below the title, `see` the names of other answers.
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
    symbols: tuple[Row, ...] = ()
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
    def wired_at(self) -> str | None:
        """Where it is first applied."""
        return self.uses[0].where if self.uses else None

    @property
    def command(self) -> str:
        """What a reader types: the flag of a setting, the command of a lesson."""
        if self.kind == "setting" and self.code:
            return f"byhand train {flag(*self.code[1].split('.'))}"
        return f"byhand {self.name}" if self.kind == "lesson" else ""

    @cached_property
    def forward(self) -> str | None:
        """Where the code is."""
        return source.definition(*self.code) if self.code else None

    @cached_property
    def derivative(self) -> str | None:
        """Where the derivative is."""
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
    def page_en(self) -> str | None:
        """The English page."""
        return self.page("en")

    @cached_property
    def page_zh(self) -> str | None:
        """The Chinese page."""
        return self.page("zh")

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The function that computes an equation, by runtime, where it is not the equation's own code."""
        found = {runtime: source.definition(*kernel) for runtime, kernel in kernels_of(self.name).items()}
        return {runtime: where for runtime, where in found.items() if where}

    def page(self, lang: str) -> str | None:
        """Return where its page in `en` or `zh` is."""
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
            **{k: getattr(self, k) for k in ("latex", "latex_derivative", "plain", "plain_derivative")},
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
            **{k: getattr(self, k) for k in (*POINTERS, "wired_at", "seed_names", "source", "command", "see")},
            "uses": [use.where for use in self.uses],
            "relative_to": "repository" if source.repository() else "installed package",
        }


def split(asked: str) -> tuple[str, ...]:
    """Return names and questions that commas separate."""
    return tuple(asked.split(", ")) if asked else ()


def listings() -> dict[str, Finding]:
    """Return every listing by name: equations as data flows, then places."""
    return _listings(tuple(ENTRIES.values()))


class _Listings(dict[str, Finding]):
    """Findings by name; an equation without an entry is refused in one line."""

    def __missing__(self, name: str) -> Finding:
        raise ByhandError(
            f"the equation {name} has no entry in the book. Write one, and import it with the equation."
        )


@lru_cache(maxsize=4)
def _listings(entries: tuple[Entry, ...]) -> dict[str, Finding]:
    found = {n: _equation(registry[n], ENTRIES[n]) for n in order()}
    return _Listings(found | {place.name: _place(place) for place in PLACES})


def _equation(equation: Equation | Composite, entry: Entry) -> Finding:
    name = equation.name
    composite = isinstance(equation, Composite)
    forward = equation.compose if composite else equation.forward
    file = source.file_of(forward)
    parts = source.sections(file)
    test = f"test_{name}.py"
    if file.is_relative_to(source.PACKAGE):
        worked_in, tests, pages = (
            source.PACKAGE / f"book/entries/{name}.py",
            f"tests/equations/{test}",
            "docs/equations",
        )
    else:  # its other files lie beside it
        folder = source.shown(file.parent)
        worked_in, tests, pages = file.with_name(f"{name}_entry.py"), f"{folder}/{test}", folder
    return Finding(
        name=name,
        title=Words(equation.title, entry.title_zh),
        code=(file, forward.__name__),
        tests=(tests,),
        seed_names=equation.seed_names,
        asked=split(entry.asked),
        notations=entry.notations,
        derived=WALK_BACK if composite else (source.file_of(equation.vjp), equation.vjp.__name__),
        worked_in=worked_in,
        pages=pages,
        latex=equation.latex,
        latex_derivative=equation.derivative,
        plain=parts["Equation"],
        plain_derivative=parts["Derivative"],
        symbols=(
            *(Row.of((s,), entry.meanings_zh[s.name]) for s in equation.inputs),
            Row.of(equation.results, entry.result_zh),
        ),
        settings={
            p.name if p.default is p.empty else f"{p.name}={p.default!r}": entry.settings.get(p.name, "")
            for p in inspect.signature(forward).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        },
        uses=source.uses(name, "" if composite else equation.role),
        source=parts["Source"],
    )


def _place(place: Place) -> Finding:
    path = Path(place.path)
    return Finding(
        name=place.name,
        title=place,
        kind="place",
        asked=split(place.asked),
        code=(source.PACKAGE / place.path, place.definition),
        tests=(f"tests/test_{path.stem}.py", f"tests/{path.parent}/test_{path.name}"),
        seed_names=place.seed_names,
        notations=place.notations,
    )
