"""Data on a mesh of devices: which device holds which rows of a batch and which part of each parameter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from byhand.book.pictures.canvas import COLOURS, GAP
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Box, Space, told
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.words.language import Said, Words
from byhand.config import ModelConfig
from byhand.layers.parameter import Parameter
from byhand.model import BLOCKS, declared
from byhand.runtimes.xla.mesh import Mesh
from byhand.runtimes.xla.placing import Spec, spec_of

AXES = "data", "fsdp", "tensor"
EIGHT = Mesh(data=2, fsdp=2, tensor=2)
SMALL = ModelConfig(vocab_size=16, seq_len=8, d_model=8, n_layers=2, n_heads=2)


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


@scene("Who holds what on eight devices", "八台设备各持有什么")
def who_holds_what() -> Column:
    """The devices of a mesh, the rows of a batch, and each parameter of a block and around it, cut into parts."""
    data, fsdp, tensor = (range(EIGHT.axes[axis]) for axis in AXES)
    grid, widths = holders(AXES, EIGHT), (50, 74, 74, 12, 74, 74)

    def line(name: Figure, cells: Sequence[Sequence[Figure]]) -> Across:
        return Across([name, *cells[0], Space(), *cells[1]], gap=0, widths=widths)

    devices = [line(heading(f"fsdp {f}"), [[_held(grid[d, f, t]) for t in tensor] for d in data]) for f in fsdp]
    axes = Across([Space(), *(heading(f"data {d}") for d in data)], gap=0, widths=(50, 160, 148))
    head = line(Space(), [[heading(f"tensor {t}") for t in tensor]] * len(data))
    rows = [_held(numbers) for numbers in holders(("data", "fsdp"), EIGHT).values()]
    inside = f"{BLOCKS}.0."
    found = {n: p for n, p in declared(SMALL).items() if not n.startswith(BLOCKS) or n.startswith(inside)}
    lines = [Across([_parameter(*each) for each in line.items()], gap=GAP, top=True, widths=[None] * len(line))
             for line in _lines(found)]  # fmt: skip
    said = Words("rows of the batch", "批次的行")
    return Column([
        heading(Words("Eight devices, by their numbers", "八台设备及其编号")),
        Column([axes, head, *devices], gap=0, says=_told(" | ".join(AXES), map(_held, grid.values()))),
        heading(Words("The rows of a batch", "一个批次的各行")), Column(rows, gap=2, says=_told(said, rows)),
        heading(Words("Each parameter, and who holds its parts", "各参数，以及由谁持有哪一部分")), *lines,
    ], gap=GAP - 4)  # fmt: skip


def _lines(found: dict[str, Parameter]) -> list[dict[str, Parameter]]:
    """Return the parameters by the lines that they are drawn in: two, or one that is packed."""
    lines: list[dict[str, Parameter]] = []
    for name, parameter in found.items():
        if parameter.packed == 1 and lines and len(lines[-1]) == 1 and all(p.packed == 1 for p in lines[-1].values()):
            lines[-1][name] = parameter
        else:
            lines.append({name: parameter})
    return lines


def _held(numbers: Sequence[int]) -> Across:
    """Return a part in the colours of the devices that hold it, with their numbers."""
    count = len(COLOURS)
    words = [" ".join(str(n) for n in numbers if n % count == colour) for colour in range(count)]
    boxes = [Box([held], colour, high=24, round_by=2) for held, colour in zip(words, COLOURS, strict=True) if held]
    return Across(boxes, gap=0, shares=[1] * len(boxes))


def _told(name: Said, parts: Iterable[Figure]) -> Words:
    """Say who holds each part of something."""
    return told(name, " | ".join(" ".join(part.parts("en")) for part in parts))


def _parameter(name: str, parameter: Parameter) -> Column:
    """Return a parameter's parts: the first axis from top to bottom, the last from left to right."""
    spec, short = spec_of(parameter, EIGHT), name.removeprefix(f"{BLOCKS}.0.")
    parts = [_held(numbers) for _, numbers in sorted(holders(spec, EIGHT).items())]
    outer = EIGHT.axes[spec[0]] if len(parameter.shape) > 1 and spec[0] else 1
    across = len(parts) // outer
    rows = [Across(parts[i * across : (i + 1) * across] * parameter.packed, gap=2) for i in range(outer)]
    axes = axes_shown(parameter, EIGHT)
    says = _told(f"{short} ({axes})", parts)
    return Column([heading(short), Caption(axes), Column(rows, gap=2)], gap=0, says=says)
