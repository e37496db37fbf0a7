"""Who has what: the devices of a mesh, and the threads of a step of the loops runtime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from byhand.book.pictures.canvas import COLOURS, GAP
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Arrow, Box, Space, told
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.words.language import Said, Words
from byhand.config import ModelConfig
from byhand.layers.parameter import Parameter
from byhand.model import BLOCKS, TinyGPT, declared
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


BATCH, THREADS = 8, 3


def shares() -> tuple[list[int], list[int]]:
    """Return how many rows each thread takes, and in how long a range it sums and updates the default model."""
    # Imported late: they need Numba's compiler, which nothing else in the book needs.
    from byhand.runtimes.loops.lower.training import split
    from byhand.runtimes.loops.lower.update import update_calls
    from byhand.runtimes.loops.program.regions import Regions

    regions = Regions(TinyGPT(ModelConfig()).parameters(), THREADS)
    ranges = []
    for thread in range(THREADS):
        (call,) = (c for c in update_calls(regions, thread, THREADS) if c.kernel == "sum_shares")
        ranges.append(int(call.operands["n"]))  # pyright: ignore[reportArgumentType]  (a length, not a place)
    return split(BATCH, THREADS), ranges


@scene(f"A batch of {BATCH} rows on {THREADS} threads", f"{BATCH} 行的批次分给 {THREADS} 个线程")
def batch_on_threads() -> Column:
    """Rows, their gradients in a region for each thread, their sums by ranges, the update."""
    rows, ranges = shares()
    owner = [thread for thread, count in enumerate(rows) for _ in range(count)]
    firsts = [owner.index(thread) for thread in range(THREADS)]
    spans = [f"{first}–{first + count - 1}" for first, count in zip(firsts, rows, strict=True)]
    threads = [
        Box([Words(f"thread {i}", f"线程 {i}"), Words(f"rows {spans[i]}", f"第 {spans[i]} 行"),
             Words("forward", "前向"), Words("backward", "反向")], line=COLOURS[i])
        for i in range(THREADS)
    ]  # fmt: skip
    regions = [
        _parts([i] * THREADS, [Words(f"∂ rows {spans[i]}", f"∂ 第 {spans[i]} 行")] * THREADS, ranges, says="")
        for i in range(THREADS)
    ]
    own = _parts(range(THREADS), [f"{n:,}" for n in ranges], ranges, join=" | ")
    barrier = Box(Words("barrier: all threads wait", "屏障：所有线程在此等待"), dashed=True, high=18, says="")
    return Column([
        heading(Words(f"1  The {BATCH} rows of a batch", f"1  批次的 {BATCH} 行")),
        _parts(owner, [str(row) for row in range(BATCH)], [1] * BATCH, says=""),
        Across([Arrow() for _ in rows], gap=2, shares=rows), Across(threads, gap=2, shares=rows),
        heading(Words("2  Gradients: a region per thread", "2  梯度：每个线程一个区域"),
                Words("nothing shared", "互不共享")), *regions, barrier,
        heading(Words("3  Each sums its range over all regions", "3  每个线程把各区域的一段相加")), own, barrier,
        heading(Words("4  Clip by the global norm, then AdamW", "4  按全局范数裁剪，AdamW 更新"),
                Words("parameters", "参数")), own,
    ], gap=4)  # fmt: skip


def _parts(threads: Iterable[int], words: Sequence[Said], shares: Sequence[float], **others: Any) -> Across:
    """Return the parts of something, each in the colour of its thread."""
    boxes = [Box(said, COLOURS[thread]) for thread, said in zip(threads, words, strict=True)]
    return Across(boxes, gap=2, shares=shares, **others)
