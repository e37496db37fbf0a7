"""Pictures of the pages, drawn by code as SVG: each is a function of the language, by name in `DRAWINGS`.

They stand on light and dark pages alike: the ground is left open, lines and words are grey, words on colour white.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from xml.sax.saxutils import escape

from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.layers.parameter import Parameter
from byhand.model import BLOCKS, declared
from byhand.runtimes.xla.mesh import Mesh
from byhand.runtimes.xla.placing import Spec, spec_of

EIGHT = Mesh(data=2, fsdp=2, tensor=2)
SMALL = ModelConfig(vocab_size=16, seq_len=8, d_model=8, n_layers=2, n_heads=2)
GREY = "#797979"  # equal contrast on white and on a dark page
COLOURS = ("#1f6fb2", "#b3471b", "#2e7d3e", "#7b4fb0")  # by place along fsdp and tensor; white on them can be read
WIDTH, GAP, CELL, SLANT = 400, 16, 26, 4
FONT = "system-ui, 'Segoe UI', 'Noto Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"
DEVICES, ROWS, PARAMETERS = (
    Words("Eight devices, by their numbers", "八台设备及其编号"),
    Words("The rows of a batch", "一个批次的各行"),
    Words("Each parameter, and who holds its parts", "各参数，以及由谁持有哪一部分"),
)
DRAWINGS: dict[str, Callable[[str], str]] = {}


def drawing(function: Callable[[str], str]) -> Callable[[str], str]:
    """Make a function a picture, by its name."""
    DRAWINGS[function.__name__.replace("_", "-")] = function
    return function


def drawing_path(docs: Path, name: str, lang: str) -> Path:
    """Return the file of a picture in the folder of the pages."""
    return docs / "images" / f"{name}{'.zh-CN' if lang == 'zh' else ''}.svg"


def holders(spec: Spec, mesh: Mesh) -> dict[tuple[int, ...], list[int]]:
    """Return the numbers of the devices that hold each part of an array, by the part's place along each axis."""
    found: dict[tuple[int, ...], list[int]] = {}
    for number, place in enumerate(product(*map(range, mesh.axes.values()))):
        along = dict(zip(mesh.axes, place, strict=True))
        found.setdefault(tuple(along[axis] if axis else 0 for axis in spec), []).append(number)
    return found


def axes_shown(parameter: Parameter, mesh: Mesh) -> str:
    """Return what each axis of an array counts, and the mesh's axis that shares it."""
    spec = list(spec_of(parameter, mesh))
    if parameter.parts > 1:
        del spec[-2]
    return " × ".join(f"{name}/{axis}" if axis else name for name, axis in zip(parameter.axes, spec, strict=True))


@drawing
def who_holds_what(lang: str) -> str:
    """The devices of a mesh, the rows of a batch, and each parameter of a block and around it, cut into parts."""
    canvas = _Canvas(lang)
    canvas.heading(DEVICES)
    grid = holders(("data", "fsdp", "tensor"), EIGHT)
    for (d, f, t), numbers in grid.items():
        x, y = 62 + d * 172 + t * 74, canvas.y + 34 + f * CELL
        canvas.cell(x, y, 74, CELL, numbers)
        if (f, t) == (0, 0):
            canvas.text(x, canvas.y + 12, f"data {d}", bold=True)
        if f == 0:
            canvas.text(x, canvas.y + 28, f"tensor {t}")
        if (d, t) == (0, 0):
            canvas.text(4, y + 18, f"fsdp {f}")
    canvas.y += 34 + 2 * CELL + GAP
    canvas.heading(ROWS)
    for place, numbers in enumerate(holders(("data", "fsdp"), EIGHT).values()):
        canvas.cell(4, canvas.y + place * CELL, WIDTH - 8, CELL, numbers)
    canvas.y += EIGHT.rows * CELL + GAP
    canvas.heading(PARAMETERS)
    inside = f"{BLOCKS}.0."
    for names in _lines(
        {n: p for n, p in declared(SMALL).items() if not n.startswith(BLOCKS) or n.startswith(inside)}
    ):
        canvas.parameters(names)
    return canvas.svg(Words("Who holds what on eight devices", "八台设备各持有什么").said(lang))


def _lines(found: dict[str, Parameter]) -> list[dict[str, Parameter]]:
    """Return the parameters by the lines that they are drawn in: two, or one that is packed."""
    lines: list[dict[str, Parameter]] = []
    for name, parameter in found.items():
        if parameter.parts == 1 and lines and len(lines[-1]) == 1 and all(p.parts == 1 for p in lines[-1].values()):
            lines[-1][name] = parameter
        else:
            lines.append({name: parameter})
    return lines


class _Canvas:
    """SVG elements from top to bottom; y is where the next one begins."""

    def __init__(self, lang: str) -> None:
        self.y, self._lang, self._elements = 0.0, lang, []

    def heading(self, words: Words) -> None:
        self.text(4, self.y + 16, words.said(self._lang), bold=True)
        self.y += 26

    def text(self, x: float, y: float, words: str, bold: bool = False) -> None:
        weight = ' font-weight="600"' if bold else ""
        self._elements.append(f'<text x="{x:g}" y="{y:g}" fill="{GREY}"{weight}>{escape(words)}</text>')

    def cell(self, x: float, y: float, width: float, height: float, numbers: Sequence[int]) -> None:
        """Draw a part in the colours of the devices that hold it, cut aslant, with their numbers."""
        colours = sorted({number % len(COLOURS) for number in numbers})
        each, top, bottom = (width - 2) / len(colours), y + 1, y + height - 1
        for i, colour in enumerate(colours):
            left, right = x + 1 + i * each, x + 1 + (i + 1) * each
            before, after = (SLANT if i else 0), (SLANT if i + 1 < len(colours) else 0)
            corners = (left + before, top), (right + after, top), (right - after, bottom), (left - before, bottom)
            points = " ".join(f"{a:g},{b:g}" for a, b in corners)
            own = " ".join(str(number) for number in numbers if number % len(COLOURS) == colour)
            self._elements.append(
                f'<polygon points="{points}" fill="{COLOURS[colour]}"/>'
                f'<text x="{left + each / 2:g}" y="{y + height / 2 + 4.5:g}" fill="#ffffff" text-anchor="middle" '
                f'font-weight="600">{own}</text>'
            )

    def parameters(self, line: dict[str, Parameter]) -> None:
        """Draw parameters side by side: the first axis from top to bottom, the last from left to right."""
        width, most = (WIDTH - 8 - (len(line) - 1) * GAP) / len(line), 1
        for i, (name, parameter) in enumerate(line.items()):
            x, spec = 4 + i * (width + GAP), spec_of(parameter, EIGHT)
            self.text(x, self.y + 12, name.removeprefix(f"{BLOCKS}.0."), bold=True)
            self.text(x, self.y + 28, axes_shown(parameter, EIGHT))
            parts = holders(spec, EIGHT)
            outer = EIGHT.axes[spec[0]] if len(parameter.shape) > 1 and spec[0] else 1
            across = len(parts) // outer
            for place, numbers in parts.items():
                row = place[0] if len(parameter.shape) > 1 else 0
                for packed in range(parameter.parts):
                    column = packed * across + place[-1]
                    each = width / (across * parameter.parts)
                    self.cell(x + column * each, self.y + 34 + row * CELL, each, CELL, numbers)
            most = max(most, outer)
        self.y += 34 + most * CELL + GAP

    def svg(self, title: str) -> str:
        body = "\n".join(self._elements)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.y:g}" '
            f'viewBox="0 0 {WIDTH} {self.y:g}" font-family="{FONT}" font-size="13">\n'
            f"<title>{escape(title)}</title>\n{body}\n</svg>\n"
        )
