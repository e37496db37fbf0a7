"""Data on a mesh of devices: which device holds which rows of a batch and which part of each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from byhand.book.pictures.canvas import COLOURS, GAP, WHITE, Canvas
from byhand.book.pictures.picture import picture
from byhand.book.words.language import COLON, SEMICOLON, Words
from byhand.config import ModelConfig
from byhand.layers.parameter import Parameter
from byhand.model import BLOCKS, declared
from byhand.runtimes.xla.mesh import Mesh
from byhand.runtimes.xla.placing import Spec, spec_of

EIGHT = Mesh(data=2, fsdp=2, tensor=2)
SMALL = ModelConfig(vocab_size=16, seq_len=8, d_model=8, n_layers=2, n_heads=2)
CELL, SLANT = 26, 4
DEVICES, ROWS, PARAMETERS = (
    Words("Eight devices, by their numbers", "八台设备及其编号"),
    Words("The rows of a batch", "一个批次的各行"),
    Words("Each parameter, and who holds its parts", "各参数，以及由谁持有哪一部分"),
)


def holders(spec: Spec, mesh: Mesh) -> dict[tuple[int, ...], list[int]]:
    """Return the numbers of the devices that hold each part of an array, by the part's place along each axis."""
    found: dict[tuple[int, ...], list[int]] = {}
    for number, place in enumerate(product(*map(range, mesh.axes.values()))):
        along = dict(zip(mesh.axes, place, strict=True))
        found.setdefault(tuple(along[axis] if axis else 0 for axis in spec), []).append(number)
    return found


def axes_shown(parameter: Parameter, mesh: Mesh) -> str:
    """Return the name of each axis of an array, and of the mesh axis that divides it."""
    spec = list(spec_of(parameter, mesh))
    if parameter.packed > 1:
        del spec[-2]
    return " × ".join(f"{name}/{axis}" if axis else name for name, axis in zip(parameter.axes, spec, strict=True))


def in_words(lang: str) -> str:
    """Say which devices hold the rows and two of the parameters."""
    found = declared(SMALL)
    said = [(Words("rows of the batch", "批次的行"), holders(("data", "fsdp"), EIGHT))]
    for short in ("w_fc", "b_out"):
        said.append((Words(short, short), holders(spec_of(found[f"{BLOCKS}.0.mlp.{short}"], EIGHT), EIGHT)))
    words = SEMICOLON.said(lang).join(
        words.said(lang) + COLON.said(lang) + " | ".join(" ".join(map(str, n)) for n in parts.values())
        for words, parts in said
    )
    return Words("Which of eight devices hold which part. ", "八台设备中，哪几台持有哪一部分。").said(lang) + words


@picture(Words("Who holds what on eight devices", "八台设备各持有什么"), in_words)
def who_holds_what(canvas: Canvas) -> None:
    """The devices of a mesh, the rows of a batch, and each parameter of a block and around it, cut into parts."""
    canvas.heading(DEVICES)
    grid = holders(("data", "fsdp", "tensor"), EIGHT)
    for (d, f, t), numbers in grid.items():
        x, y = 62 + d * 172 + t * 74, canvas.y + 34 + f * CELL
        _cell(canvas, x, y, 74, CELL, numbers)
        if (f, t) == (0, 0):
            canvas.text(x, canvas.y + 12, f"data {d}", bold=True)
        if f == 0:
            canvas.text(x, canvas.y + 28, f"tensor {t}")
        if (d, t) == (0, 0):
            canvas.text(4, y + 18, f"fsdp {f}")
    canvas.y += 34 + 2 * CELL + GAP
    canvas.heading(ROWS)
    for place, numbers in enumerate(holders(("data", "fsdp"), EIGHT).values()):
        _cell(canvas, 4, canvas.y + place * CELL, canvas.width - 8, CELL, numbers)
    canvas.y += EIGHT.rows * CELL + GAP
    canvas.heading(PARAMETERS)
    inside = f"{BLOCKS}.0."
    for names in _lines(
        {n: p for n, p in declared(SMALL).items() if not n.startswith(BLOCKS) or n.startswith(inside)}
    ):
        _parameters(canvas, names)


def _lines(found: dict[str, Parameter]) -> list[dict[str, Parameter]]:
    """Return the parameters by the lines that they are drawn in: two, or one that is packed."""
    lines: list[dict[str, Parameter]] = []
    for name, parameter in found.items():
        if parameter.packed == 1 and lines and len(lines[-1]) == 1 and all(p.packed == 1 for p in lines[-1].values()):
            lines[-1][name] = parameter
        else:
            lines.append({name: parameter})
    return lines


def _cell(canvas: Canvas, x: float, y: float, width: float, height: float, numbers: Sequence[int]) -> None:
    """Draw a part in the colours of the devices that hold it, cut aslant, with their numbers."""
    colours = sorted({number % len(COLOURS) for number in numbers})
    each, top, bottom = (width - 2) / len(colours), y + 1, y + height - 1
    for i, colour in enumerate(colours):
        left, right = x + 1 + i * each, x + 1 + (i + 1) * each
        before, after = (SLANT if i else 0), (SLANT if i + 1 < len(colours) else 0)
        corners = (left + before, top), (right + after, top), (right - after, bottom), (left - before, bottom)
        own = " ".join(str(number) for number in numbers if number % len(COLOURS) == colour)
        canvas.area(corners, COLOURS[colour])
        canvas.text(left + each / 2, y + height / 2 + 4.5, own, colour=WHITE, at="middle", bold=True)


def _parameters(canvas: Canvas, line: dict[str, Parameter]) -> None:
    """Draw parameters side by side: the first axis from top to bottom, the last from left to right."""
    width, most = (canvas.width - 8 - (len(line) - 1) * GAP) / len(line), 1
    for i, (name, parameter) in enumerate(line.items()):
        x, spec = 4 + i * (width + GAP), spec_of(parameter, EIGHT)
        canvas.text(x, canvas.y + 12, name.removeprefix(f"{BLOCKS}.0."), bold=True)
        canvas.text(x, canvas.y + 28, axes_shown(parameter, EIGHT))
        parts = holders(spec, EIGHT)
        outer = EIGHT.axes[spec[0]] if len(parameter.shape) > 1 and spec[0] else 1
        across = len(parts) // outer
        for place, numbers in parts.items():
            row = place[0] if len(parameter.shape) > 1 else 0
            for packed in range(parameter.packed):
                column = packed * across + place[-1]
                each = width / (across * parameter.packed)
                _cell(canvas, x + column * each, canvas.y + 34 + row * CELL, each, CELL, numbers)
        most = max(most, outer)
    canvas.y += 34 + most * CELL + GAP
