"""The index: for each equation and place, its words in both languages and where everything about it stands.

Built from the registry and from parsed source, without importing NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from byhand import equations as _registered  # noqa: F401  (importing the package fills the registry)
from byhand.book import source
from byhand.book.chinese import MEANINGS, TITLES
from byhand.book.flow import ORDER
from byhand.book.places import PLACES, Place
from byhand.engine.equation import Composite, Equation, registry

WIRING = ("model.py", "equations/causal_self_attention.py", "optim.py", "generation.py", "engine/tensor.py")
COMPOSITE_DERIVATIVE = ("engine/backward.py", "walk_back")  # a composite's derivative is its parts', walked back
RUNTIMES = source.PACKAGE / "runtimes"


@dataclass(frozen=True)
class Entry:
    """One answer of `where`. Pointers are `path:line`; None where there is nothing to point to.

    `uses` lists every application with the name of its result; `wired_at` is the first of them. `plain` and
    `plain_derivative` are the formulas as a terminal shows them.
    """

    name: str
    title: str
    title_zh: str
    latex: str
    latex_derivative: str
    plain: str
    plain_derivative: str
    symbols: tuple[dict[str, str], ...]
    forward: str | None
    derivative: str | None
    wired_at: str | None
    uses: tuple[tuple[str, str], ...]
    test: str | None
    worked: str | None
    page_en: str | None
    page_zh: str | None
    kernels: dict[str, str]
    seed_names: tuple[str, ...]
    source: str

    def as_json(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; `relative_to` says what paths are relative to."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "uses"}
        plain["uses"] = [where for where, _ in self.uses]
        plain["relative_to"] = "repository" if source.repository() else "installed package"
        return plain


@cache
def entries() -> dict[str, Entry]:
    """Return every entry by name: equations as data flows, then places."""
    found = {name: _equation(registry[name]) for name in ORDER}
    return found | {place.name: _place(place) for place in PLACES}


def _equation(equation: Equation | Composite) -> Entry:
    name = equation.name
    path = source.PACKAGE / "equations" / f"{name}.py"
    parts = source.sections(path)
    composite = isinstance(equation, Composite)
    derivative_path, derivative = COMPOSITE_DERIVATIVE if composite else (f"equations/{name}.py", "vjp")
    uses = [
        use for file in WIRING if file != f"equations/{name}.py" for use in source.uses(source.PACKAGE / file, name)
    ]
    return Entry(
        name=name,
        title=equation.title,
        title_zh=TITLES[name],
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
        forward=source.definition(path, "compose" if composite else "forward"),
        derivative=source.definition(source.PACKAGE / derivative_path, derivative),
        wired_at=uses[0][0] if uses else None,
        uses=tuple(uses),
        test=_test(f"tests/equations/test_{name}.py"),
        worked=source.definition(source.PACKAGE / "book" / "worked" / f"{name}.py", "worked"),
        page_en=_page(f"docs/equations/{name}.md"),
        page_zh=_page(f"docs/equations/{name}.zh-CN.md"),
        kernels=_kernels(name),
        seed_names=equation.seed_names,
        source=equation.source,
    )


def _place(place: Place) -> Entry:
    return Entry(
        name=place.name,
        title=place.title,
        title_zh=place.title_zh,
        latex="",
        latex_derivative="",
        plain="",
        plain_derivative="",
        symbols=(),
        forward=source.definition(source.PACKAGE / place.path, place.definition),
        derivative=None,
        wired_at=None,
        uses=(),
        test=_test(
            f"tests/test_{Path(place.path).stem}.py", f"tests/{Path(place.path).parent}/test_{Path(place.path).name}"
        ),
        worked=None,
        page_en=None,
        page_zh=None,
        kernels={},
        seed_names=place.seed_names,
        source="",
    )


def _test(*candidates: str) -> str | None:
    """Point to the first test of a file; outside a checkout, name the file as the repository has it."""
    root = source.repository()
    if root is None:
        return candidates[0]
    return next(filter(None, (source.first_test(root / path) for path in candidates)), None)


def _page(path: str) -> str | None:
    root = source.repository()
    if root is None:
        return path
    return f"{path}:1" if (root / path).is_file() else None


def _kernels(name: str) -> dict[str, str]:
    """Find the kernel that replaces an equation in each runtime: a file of its stem in the runtime's folder."""
    found: dict[str, str] = {}
    for folder in sorted(p for p in RUNTIMES.iterdir() if p.is_dir()):
        for path in sorted(folder.rglob(f"{name}.py")):
            line = next((n.lineno for n in source.tree(path).body if hasattr(n, "name")), 1)
            found.setdefault(folder.name, f"{source.shown(path)}:{line}")
    return found
