"""Data on a mesh of devices: which device holds which rows of a batch and which part of each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from byhand.book.pictures.canvas import COLOURS, GAP, SIZE
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Across, Caption, Column, Holders, Space, heading, told
from byhand.book.words.language import Said, Words
from byhand.config import ModelConfig
from byhand.layers.parameter import Parameter
from byhand.model import BLOCKS, declared
from byhand.runtimes.xla.mesh import Mesh
from byhand.runtimes.xla.placing import Spec, spec_of

EIGHT = Mesh(data=2, fsdp=2, tensor=2)
SMALL = ModelConfig(vocab_size=16, seq_len=8, d_model=8, n_layers=2, n_heads=2)
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


@scene(
    Words("Who holds what on eight devices", "八台设备各持有什么"),
    Words("Which of eight devices hold which part. ", "八台设备中，哪几台持有哪一部分。"),
)
def who_holds_what() -> Column:
    """The devices of a mesh, the rows of a batch, and each parameter of a block and around it, cut into parts."""
    data, fsdp, tensor = (range(EIGHT.axes[axis]) for axis in ("data", "fsdp", "tensor"))
    grid, widths = holders(("data", "fsdp", "tensor"), EIGHT), (50, 74, 74, 12, 74, 74)
    devices = []
    for f in fsdp:
        cells = [[_held(grid[d, f, t]) for t in tensor] for d in data]
        devices.append(Across([Caption(f"fsdp {f}", size=SIZE), *cells[0], Space(), *cells[1]], gap=0, widths=widths))
    names = [[Caption(f"tensor {t}", size=SIZE) for t in tensor] for _ in data]
    axes = Across(
        [Space(), Caption("data 0", True, SIZE), Caption("data 1", True, SIZE)], gap=0, widths=(50, 160, 148)
    )
    head = Across([Space(), *names[0], Space(), *names[1]], gap=0, widths=widths, says="")
    rows = [_held(numbers) for numbers in holders(("data", "fsdp"), EIGHT).values()]
    inside = f"{BLOCKS}.0."
    found = {n: p for n, p in declared(SMALL).items() if not n.startswith(BLOCKS) or n.startswith(inside)}
    lines = [Across([_parameter(*each) for each in line.items()], gap=GAP, top=True, widths=[None] * len(line))
             for line in _lines(found)]  # fmt: skip
    said = Words("rows of the batch", "批次的行")
    places = _told(Words("data | fsdp | tensor", "data | fsdp | tensor"), list(map(_held, grid.values())))
    return Column([
        heading(DEVICES), Column([axes, head, *devices], gap=0, says=places), heading(ROWS),
        Column(rows, gap=0, join=" | ", says=_told(said, rows)), heading(PARAMETERS), *lines,
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


def _held(numbers: Sequence[int]) -> Holders:
    """Return a part in the colours of the devices that hold it, with their numbers."""
    own = {colour: [n for n in numbers if n % len(COLOURS) == colour] for colour in range(len(COLOURS))}
    return Holders([(" ".join(map(str, several)), COLOURS[colour]) for colour, several in own.items() if several])


def _told(name: Said, parts: Sequence[Holders]) -> Words:
    """Say who holds each part of something."""
    return told(name, " | ".join(" ".join(words for words, _ in part.parts) for part in parts))


def _parameter(name: str, parameter: Parameter) -> Column:
    """Return a parameter's parts: the first axis from top to bottom, the last from left to right."""
    spec, short = spec_of(parameter, EIGHT), name.removeprefix(f"{BLOCKS}.0.")
    parts = [_held(numbers) for _, numbers in sorted(holders(spec, EIGHT).items())]
    outer = EIGHT.axes[spec[0]] if len(parameter.shape) > 1 and spec[0] else 1
    across = len(parts) // outer
    rows = [Across(parts[i * across : (i + 1) * across] * parameter.packed, gap=0) for i in range(outer)]
    axes = axes_shown(parameter, EIGHT)
    return Column([Caption(short, bold=True, size=SIZE), Caption(axes), Space(2), *rows], gap=0,
                  says=_told(f"{short} ({axes})", parts))  # fmt: skip
