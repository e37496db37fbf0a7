"""Weak and strong scaling of a training step on 1 to 256 described H100, by XLA's own count; nothing is run on them.

    python benchmarks/scaling.py --plot docs/images/xla-scaling.svg --json scaling.json    (10 minutes)
    python benchmarks/scaling.py --from scaling.json      the same tables from what was counted before

Each mesh is counted in a process of its own, since JAX sets its number of CPU devices once. In weak scaling each
device has the same rows, in strong scaling all share one batch; both in micro-batches that fit.

computing   operations / (40 % of the peak)
updating    28 bytes for each parameter held (read p, m, v, gradient; write p, m, v) / memory bandwidth
sending     bytes / link, within a host and then between hosts; gathers and scatters for each micro-batch, sums once
            a step; latencies are not counted
hidden      none, or as much computing hides all that the loops over the blocks send except one block's
efficiency  operations of a token on one device / (40 % of the peak), divided by devices x time of a token on them

Sums over `data` come after the last micro-batch and hide behind nothing.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from growth import GRAY, LOOK
from mesh import COMPUTING, DEVICES
from sharing import device_share

from byhand.config import ModelConfig
from byhand.runtimes.protocol import Recompute, Request

H100 = DEVICES["h100"]
MEMORY_SPEED = 3.35e12  # bytes/s, the data sheet's
UPDATED = 28 / 12  # bytes that an update reads and writes, for each that parameters and moments take
PER_HOST = 8
DEVICES_COUNTED = (1, 2, 4, 8, 16, 32, 64, 128, 256)
GPT2 = ModelConfig(
    vocab_size=50304, seq_len=1024, d_model=768, n_layers=12, n_heads=12,
    norm_affine=True, tied_embeddings=True, lm_head_bias=False,
)  # fmt: skip


@dataclass(frozen=True)
class Size:
    """A model, how devices share it, and its rows.

    fsdp    devices of a host that share the width of parameters; the others share rows by `data`
    most    rows of a micro-batch on a device
    weak    rows of a device in weak scaling
    strong  rows of the whole batch in strong scaling
    """

    config: ModelConfig
    fsdp: int
    most: int
    weak: int
    strong: int
    recompute: Recompute
    colour: str

    def mesh(self, devices: int) -> str:
        """Return the mesh of so many devices."""
        fsdp = min(self.fsdp, devices)
        return f"data={devices // fsdp},fsdp={fsdp}"


# batches of 0.5M and 1M tokens as in Brown et al. 2020, arXiv:2005.14165; 4M: Touvron et al. 2023, arXiv:2302.13971
SIZES = {
    "124M": Size(GPT2, 1, 16, 32, 512, "nothing", "#2f81c4"),
    "1.5B": Size(replace(GPT2, d_model=1600, n_layers=48, n_heads=25), 8, 8, 16, 1024, "cheap", "#d4691e"),
    "7B": Size(replace(GPT2, seq_len=2048, d_model=4096, n_layers=32, n_heads=32), 8, 4, 8, 2048, "cheap", "#3f9b50"),
}


@dataclass(frozen=True)
class Count:
    """What XLA counts for a device in a step of one micro-batch: bytes sent are (within its host, between hosts)."""

    held: float
    flops: float
    once: tuple[float, float]  # sent once a step
    each: tuple[float, float]  # sent for each micro-batch
    looped: tuple[float, float]  # of these, in the loops over the blocks


@dataclass(frozen=True)
class Times:
    """Seconds of a step on each device, and the part of sending that computing can hide."""

    computing: float
    updating: float
    once: float
    each: float
    hidden: float

    @property
    def in_turn(self) -> float:
        """Seconds if nothing overlaps."""
        return self.computing + self.updating + self.once + self.each

    @property
    def overlapped(self) -> float:
        """Seconds if all that can hide does."""
        return self.in_turn - self.hidden


def times(count: Count, micro_batches: int, layers: int) -> Times:
    """Return the times of a step of so many micro-batches."""
    computing = micro_batches * count.flops / (COMPUTING * H100.peak)
    hidden = micro_batches * sending(count.looped) * (layers - 1) / layers
    return Times(
        computing,
        count.held * UPDATED / MEMORY_SPEED,
        sending(count.once),
        micro_batches * sending(count.each),
        min(hidden, computing),
    )


def sending(moved: Sequence[float]) -> float:
    """Return the seconds for bytes (within a host, between hosts)."""
    return moved[0] / H100.within + moved[1] / H100.between


def rows_for(efficiency: float, taken: Times, rows: int, overlapped: bool) -> float:
    """Return the rows of a device that reach an efficiency with these micro-batches; infinite if none do."""
    in_each = taken.each - (taken.hidden if overlapped else 0.0)
    spared = (1 - efficiency) * taken.computing - efficiency * in_each  # of `rows`, for what a step does once
    return rows * efficiency * (taken.once + taken.updating) / spared if spared > 0 else math.inf


def split(rows: int, most: int) -> tuple[int, int]:
    """Return the number of micro-batches and their rows, as few micro-batches as possible."""
    n = next(n for n in range(1, rows + 1) if rows % n == 0 and rows // n <= most)
    return n, rows // n


def counted(name: str, devices: int, rows: int) -> Count:
    """Count in this process: rows of a device's micro-batch."""
    size = SIZES[name]
    request = Request("train", size.config, "xla", "bfloat16", mesh=size.mesh(devices), recompute=size.recompute)
    share = device_share(request, (rows * devices, size.config.seq_len), PER_HOST)

    def of(moved: Any, summed: bool) -> tuple[float, float]:
        within, between = (
            sum(n for (kind, far), n in moved.items() if far is crosses and (kind == "all-reduce") is summed)
            for crosses in (False, True)
        )
        return within, between

    return Count(share.held, share.flops, of(share.moved, True), of(share.moved, False), of(share.looped, False))


def in_a_process(name: str, devices: int, rows: int) -> Count:
    """Count in a process of its own."""
    command = [sys.executable, __file__, "--count", json.dumps([name, devices, rows])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Count(**json.loads(done.stdout.strip().splitlines()[-1]))


def measure(names: Sequence[str]) -> list[dict[str, Any]]:
    """Count all meshes; return a row of figures for each, and for each kind of scaling."""
    known: dict[tuple[str, int, int], Count] = {}
    figures: list[dict[str, Any]] = []
    for name in names:
        size = SIZES[name]
        for scaling in ("weak", "strong"):
            for devices in DEVICES_COUNTED:
                rows = size.weak if scaling == "weak" else size.strong // devices
                micro_batches, at_once = split(rows, size.most)
                key = name, devices, at_once
                if key not in known:
                    known[key] = in_a_process(*key)
                    print(f"counted {name}, {size.mesh(devices)}, {at_once} rows", file=sys.stderr, flush=True)
                facts = {"model": name, "scaling": scaling, "devices": devices, "mesh": size.mesh(devices)}
                figures.append(facts | {"rows": rows, "micro_batches": micro_batches} | {"count": asdict(known[key])})
    return figures


def with_times(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures with times and efficiencies; those of one device come before others of their kind."""
    found: list[dict[str, Any]] = []
    alone = 0.0  # seconds that one device computes for a row
    for figure in figures:
        layers = SIZES[figure["model"]].config.n_layers
        taken = times(Count(**figure["count"]), figure["micro_batches"], layers)
        if figure["devices"] == 1:
            alone = taken.computing / figure["rows"]
        ideal = alone * figure["rows"]
        efficiencies = {"in_turn": ideal / taken.in_turn, "overlapped": ideal / taken.overlapped}
        found.append(figure | {"seconds": asdict(taken), "efficiency": efficiencies})
    return found


def table(figures: list[dict[str, Any]], scaling: str) -> str:
    """Return a Markdown table of the efficiencies, nothing overlapped / overlapped, in percent."""
    heads = [f"{n:,}" for n in DEVICES_COUNTED]
    lines = [f"| {scaling} scaling, devices | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    for name in SIZES:
        rows = [f for f in figures if f["model"] == name and f["scaling"] == scaling]
        if rows:
            cells = (" / ".join(f"{100 * e:.1f}" for e in f["efficiency"].values()) for f in rows)
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def details(figures: list[dict[str, Any]]) -> str:
    """Return the details of a step on the most devices for each model, and the tokens that they need for 90 %."""
    lines = [
        "| model, scaling | mesh | tokens a device | held, GB | TFLOP | within, GB | between, GB "
        "| computing, ms | updating | sending | of it can hide | tokens a device for 90 % | batch for 90 % |",
        "|---" * 13 + "|",
    ]
    for f in (f for f in figures if f["devices"] == DEVICES_COUNTED[-1]):
        count, taken, n = Count(**f["count"]), Times(**f["seconds"]), f["micro_batches"]
        window = SIZES[f["model"]].config.seq_len
        sent = [(a + n * b) / 1e9 for a, b in zip(count.once, count.each, strict=True)]
        needed = [window * rows_for(0.9, taken, f["rows"], overlapped) for overlapped in (False, True)]
        ms = [1e3 * t for t in (taken.computing, taken.updating, taken.once + taken.each, taken.hidden)]
        cells = [
            f"{f['model']}, {f['scaling']}", f"`{f['mesh']}`", f"{f['rows'] * window:,}", f"{count.held / 1e9:.2f}",
            f"{n * count.flops / 1e12:,.1f}", *(f"{s:.2f}" for s in sent), *(f"{t:.1f}" for t in ms),
            " / ".join(written(t) for t in needed), " / ".join(written(t * f["devices"]) for t in needed),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def written(tokens: float) -> str:
    """Return a number of tokens, in thousands or millions."""
    if math.isinf(tokens):
        return "none"
    return f"{tokens / 1e6:.1f}M" if tokens >= 1e6 else f"{tokens / 1e3:.1f}k"


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Return heights of labels at least so far apart, in the same order and about the same mean."""
    order = sorted(range(len(heights)), key=heights.__getitem__, reverse=True)
    placed = list(heights)
    for above, below in pairwise(order):
        placed[below] = min(placed[below], placed[above] - least)
    raised = (sum(heights) - sum(placed)) / len(heights)
    return [height + raised for height in placed]


def draw(figures: list[dict[str, Any]], path: Path) -> None:
    """Draw a panel for each kind of scaling; dashed if nothing overlaps."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(LOOK):
        figure = Figure(figsize=(10, 4), layout="constrained")
        for axes, scaling in zip(figure.subplots(1, 2, sharey=True), ("weak", "strong"), strict=True):
            panel(axes, scaling, [f for f in figures if f["scaling"] == scaling])
        figure.savefig(path, transparent=True, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def panel(axes: Any, scaling: str, figures: list[dict[str, Any]]) -> None:
    """Draw efficiency over devices; each line is labelled at its end."""
    names = [name for name in SIZES if any(f["model"] == name for f in figures)]
    ends = []
    for i, name in enumerate(names):
        size, width = SIZES[name], 3.1 - 0.9 * i  # a line that covers another is narrower
        for what, style in (("in_turn", "--"), ("overlapped", "-")):
            percent = [100 * f["efficiency"][what] for f in figures if f["model"] == name]
            axes.plot(
                DEVICES_COUNTED, percent, style, color=size.colour, marker="o", markersize=2 + width, linewidth=width
            )
        ends.append(percent[-1])
    for name, height in zip(names, apart(ends, 4), strict=True):
        size = SIZES[name]
        tokens = size.config.seq_len * (size.weak if scaling == "weak" else size.strong)
        each = f"{tokens / 1024:.0f}k" if scaling == "weak" else f"{tokens / 2**20:g}M"
        axes.annotate(
            f"{name}, {each}", (DEVICES_COUNTED[-1], height), xytext=(8, 0), textcoords="offset points",
            color=size.colour, va="center", fontsize=9, annotation_clip=False,
        )  # fmt: skip
    axes.axhline(90, color=GRAY, linewidth=1, linestyle=":")
    axes.set_xscale("log", base=2)
    axes.set_xticks(DEVICES_COUNTED, [str(n) for n in DEVICES_COUNTED])
    axes.minorticks_off()
    axes.set_ylim(40, 102)
    shared = "tokens for each device" if scaling == "weak" else "tokens for all devices"
    axes.set_xlabel(f"H100, 8 a host; {scaling} scaling: {shared}")
    if scaling == "weak":
        axes.set_ylabel("efficiency, % of one device")
        axes.plot([], [], "--", color=GRAY, label="nothing overlaps")
        axes.plot([], [], "-", color=GRAY, label="the blocks' gathers and scatters overlap")
        axes.legend(frameon=False, fontsize=9, loc="lower left")
    axes.grid(color=GRAY, alpha=0.25)


def main() -> None:
    """Count what the flags say; print tables, draw."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--models", nargs="*", default=list(SIZES), choices=list(SIZES))
    flags.add_argument("--plot", type=Path, help="draw into this PNG or SVG (needs matplotlib)")
    flags.add_argument("--json", type=Path, help="write every figure into this file")
    flags.add_argument("--from", type=Path, dest="made", help="a file that --json wrote: count nothing")
    flags.add_argument("--count", help=argparse.SUPPRESS)
    given = flags.parse_args()
    if given.count:
        print(json.dumps(asdict(counted(*json.loads(given.count)))))
        return
    figures = with_times(json.loads(given.made.read_text()) if given.made else measure(given.models))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))
    print("\n\n".join((table(figures, "weak"), table(figures, "strong"), details(figures))))
    if given.plot:
        draw(figures, given.plot)


if __name__ == "__main__":
    main()
