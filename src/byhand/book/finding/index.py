"""The index: for each equation and place, its words in both languages and where everything about it stands.

Built from the registry and from parsed source, without importing NumPy.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from byhand import equations as _registered  # noqa: F401  (importing the package fills the registry)
from byhand.book.finding import source
from byhand.book.finding.flow import ORDER
from byhand.book.finding.kernels import kernels_of
from byhand.book.finding.landmarks import PLACES, Place
from byhand.book.words.chinese import MEANINGS, TITLES
from byhand.engine.equation import Composite, Equation, registry

LAYERS = tuple(f"layers/{name}.py" for name in ("embeddings", "norm", "attention", "mlp", "block", "head"))
WIRING = (
    *LAYERS,
    "model.py",
    "equations/causal_self_attention.py",
    "optim.py",
    "runtimes/sampling.py",
    "engine/tensor.py",
)
COMPOSITE_DERIVATIVE = ("engine/backward.py", "walk_back")  # a composite's derivative is its parts', walked back


POINTERS = ("forward", "derivative", "test", "worked", "page_en", "page_zh", "kernels")


@dataclass(frozen=True)
class Entry:
    """One answer of `where`. Pointers are `path:line`, found when they are asked for; None where there is nothing.

    `uses` lists every application with the name of its result; `wired_at` is the first of them. `plain` and
    `plain_derivative` are the formulas as a terminal shows them, `settings` the keywords with their defaults. `code`
    and `derived` name definitions: a path within the package, and what is defined there; `tests` are the files that
    may hold its test.
    """

    name: str
    title: str
    title_zh: str
    code: tuple[str, str]
    tests: tuple[str, ...]
    seed_names: tuple[str, ...] = ()
    derived: tuple[str, str] | None = None
    latex: str = ""
    latex_derivative: str = ""
    plain: str = ""
    plain_derivative: str = ""
    symbols: tuple[dict[str, str], ...] = ()
    settings: tuple[str, ...] = ()
    uses: tuple[tuple[str, str], ...] = ()
    source: str = ""

    @property
    def wired_at(self) -> str | None:
        """Where it is first applied."""
        return self.uses[0][0] if self.uses else None

    @cached_property
    def forward(self) -> str | None:
        """Where the code is."""
        return _definition(self.code)

    @cached_property
    def derivative(self) -> str | None:
        """Where the derivative is."""
        return _definition(self.derived) if self.derived else None

    @cached_property
    def test(self) -> str | None:
        """The first test; outside a checkout, the file as the repository has it."""
        root = source.repository()
        if root is None:
            return self.tests[0]
        return next(filter(None, (source.first_test(root / path) for path in self.tests)), None)

    @cached_property
    def worked(self) -> str | None:
        """The worked numbers."""
        return _definition((f"book/entries/{self.name}.py", "worked")) if self.latex else None

    @cached_property
    def page_en(self) -> str | None:
        """The English page."""
        return self._page(f"docs/equations/{self.name}.md")

    @cached_property
    def page_zh(self) -> str | None:
        """The Chinese page."""
        return self._page(f"docs/equations/{self.name}.zh-CN.md")

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The function that computes an equation, by runtime, where it is not the equation's own code."""
        found = {runtime: source.definition(*kernel) for runtime, kernel in kernels_of(self.name).items()}
        return {runtime: where for runtime, where in found.items() if where}

    def _page(self, path: str) -> str | None:
        root = source.repository()
        if not self.latex:
            return None
        return path if root is None else f"{path}:1" if (root / path).is_file() else None

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; `relative_to` says what paths are relative to."""
        words = ("name", "title", "title_zh", "latex", "latex_derivative", "plain", "plain_derivative", "symbols")
        return {
            **{k: getattr(self, k) for k in (*words, *POINTERS, "wired_at", "seed_names", "source")},
            "uses": [where for where, _ in self.uses],
            "relative_to": "repository" if source.repository() else "installed package",
        }


@cache
def entries() -> dict[str, Entry]:
    """Return every entry by name: equations as data flows, then places."""
    return {name: _equation(registry[name]) for name in ORDER} | {place.name: _place(place) for place in PLACES}


def _equation(equation: Equation | Composite) -> Entry:
    name = equation.name
    own = f"equations/{name}.py"
    parts = source.sections(source.PACKAGE / own)
    composite = isinstance(equation, Composite)
    return Entry(
        name=name,
        title=equation.title,
        title_zh=TITLES[name],
        code=(own, "compose" if composite else "forward"),
        tests=(f"tests/equations/test_{name}.py",),
        seed_names=equation.seed_names,
        derived=COMPOSITE_DERIVATIVE if composite else (own, "vjp"),
        latex=equation.latex,
        latex_derivative=equation.derivative,
        plain=parts["Equation"],
        plain_derivative=parts["Derivative"],
        symbols=tuple(
            {
                "name": s.name,
                "latex": s.latex,
                "shape": s.shape,
                "meaning": s.meaning,
                "meaning_zh": MEANINGS[name][s.name],
            }
            for s in (*equation.inputs, equation.result)
        ),
        settings=tuple(
            p.name if p.default is p.empty else f"{p.name}={p.default!r}"
            for p in inspect.signature(equation.compose if composite else equation.forward).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        ),
        uses=tuple(
            use
            for file in WIRING
            if file != own
            for called in (name, getattr(equation, "role", ""))  # a layer calls what the config chooses by its role
            for use in (source.uses(source.PACKAGE / file, called) if called else ())
        ),
        source=equation.source,
    )


def _place(place: Place) -> Entry:
    path = Path(place.path)
    return Entry(
        name=place.name,
        title=place.title,
        title_zh=place.title_zh,
        code=(place.path, place.definition),
        tests=(f"tests/test_{path.stem}.py", f"tests/{path.parent}/test_{path.name}"),
        seed_names=place.seed_names,
    )


def _definition(code: tuple[str, str]) -> str | None:
    path, name = code
    return source.definition(source.PACKAGE / path, name)
