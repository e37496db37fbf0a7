"""Profile: list the calls of a training step, of one token, or of prefill, and time them on request.

The first share runs call by call while the others run as usual, so that caches and memory are as busy as in practice.
Times are the least of several steps: the cost of a call without interference.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from byhand.quantities import counted
from byhand.runtimes.loops.kernels.products.product import product_operands
from byhand.runtimes.loops.kernels.products.tiles import TILES
from byhand.runtimes.loops.machine.blas import Blas
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.program.calls import Call, buffers_of
from byhand.runtimes.loops.run.bandwidth import read_bandwidth
from byhand.runtimes.loops.run.decoding import FIRST_RUN, LoopsDecoder
from byhand.runtimes.loops.run.replay import run_kernel
from byhand.runtimes.loops.run.training import LoopsSession
from byhand.runtimes.protocol import Line, Listing, Request, Shape
from byhand.runtimes.sampling import Sampling
from byhand.runtimes.streams import Stream


def training_step(session: LoopsSession, shape: Shape, steps: int) -> Listing:
    """List the first share's calls."""
    plan = session.plan("train", shape)
    ms = None
    if steps:
        rng, vocab = np.random.default_rng(0), session.model.config.vocab_size
        batch = rng.integers(0, vocab, shape), rng.integers(0, vocab, shape)
        ms = session.runner.time_calls(lambda: session.step([batch], 1.0), steps)
    peak = None if ms is None else measured_peak(session.blas, session.products.kernel)
    size = session.arena.memory.nbytes
    return _listing("training step", plan.calls, ms, len(plan.shares), size, session.multiplies, peak)


def generation(of: str, model: Any, request: Request, steps: int) -> Listing:
    """List the first thread's calls of one token ("decode"), or of filling the cache up to the window's end."""
    window, streams = request.model.seq_len, request.streams
    fills = 0 if of == "decode" else window - 1
    decoder = LoopsDecoder(model, streams, request.threads or None, request.weights, fills)
    plan = decoder.filling(fills) if fills else decoder.decoding
    ms = time_calls(decoder, fills, steps) if steps else None
    row = _time_in_a_row(decoder, steps) if steps and not fills else None
    read = read_bandwidth(decoder.threads)[0] / decoder.threads if steps else None
    what = f"one token, {counted(streams, 'stream')}" if not fills else f"filling {counted(window - 1, 'position')}"
    peak, size = None if ms is None else measured_peak(decoder.blas), decoder.arena.memory.nbytes
    calls = plan.shares[0].calls
    return _listing(what, calls, ms, decoder.threads, size, decoder.blas.name, peak, read=read, row=row)


def time_calls(decoder: LoopsDecoder, fills: int, rounds: int) -> np.ndarray:
    """Return the least ms, over `rounds` fills of `fills` positions, of each of the first thread's calls.

    For 0, of one token's calls in the middle of the window. The other threads run as usual.
    """
    half = _half_filled(decoder)

    def run() -> None:
        decoder.positions[:] = half
        decoder.replay(decoder.given(0, [0] * (fills + 1)) if fills else decoder.decoding, alone=False)

    return decoder.runner.time_calls(run, rounds)


def _time_in_a_row(decoder: LoopsDecoder, rounds: int) -> float:
    """Return the median ms of a token in the middle of the window, several per call as in generation."""
    half, ms = _half_filled(decoder), []
    most = min(FIRST_RUN, decoder.model.config.seq_len - half)
    for _ in range(rounds):
        decoder.positions[:] = half
        begun = perf_counter()
        made = len(decoder.run(0, most))
        ms.append(1e3 * (perf_counter() - begun) / made)
    return float(np.median(ms))


def _half_filled(decoder: LoopsDecoder) -> int:
    """Give every slot a stream that has filled half the window, and return how many positions that are."""
    half = decoder.model.config.seq_len // 2
    for slot in range(decoder.slots):
        decoder.admit(slot, Stream([0] * (half + 1), 1, Sampling(temperature=0)))
    while decoder.reading:
        decoder.read()
    return half


def _listing(
    what: str, calls: list[Call], ms: np.ndarray | None, threads: int, size: int, how: str, peak: float | None, *,
    read: float | None = None, row: float | None = None,
) -> Listing:  # fmt: skip
    each = lines(calls, ms, peak, read)
    return Listing(what, each, summed(each, peak, read), ms, peak, threads, size, how, read, row)


def measured_peak(blas: Blas, tiles: str = "", sizes: tuple[int, ...] = (128, 512, 1024)) -> float:
    """Return one core's GFLOP/s on the best of some square products.

    tiles  the kernel, if not the one for float32
    """
    blas.set_threads(1)
    best, kernel = 0.0, tiles or ("tiled_gemm" if blas.tiles else "gemm")
    for n in sizes:
        a, b, c, scratch = range(0, 4 * n * n, n * n)
        operands: dict[str, Any] = product_operands(a, b, c, (n, n, n, False, False))
        size = 0
        if kernel in TILES:
            operands |= {"start": 0, "bias": 0, "scratch": scratch}
            size = TILES[kernel].scratch(n, n, n, False, False)
        memory = np.ones(scratch + size, np.float32)
        for _ in range(6):
            begun = perf_counter()
            run_kernel(kernel, memory, (blas.sgemm, 0), **operands)
            best = max(best, 2e-9 * n**3 / (perf_counter() - begun))
    return best


def lines(
    calls: list[Call], ms: np.ndarray | None = None, peak: float | None = None, read: float | None = None
) -> list[Line]:
    """Return one line for each call, in order."""
    total = None if ms is None else float(ms.sum())
    made = []
    for i, call in enumerate(calls):
        name = call.node.name if call.node else call.place
        line = Line(call.kernel, _equation(call), name, _shapes(call), 1, call.flops, call.bytes)
        made.append(line if ms is None or total is None else _timed(line, float(ms[i]), total, peak, read))
    return made


def summed(parts: list[Line], peak: float | None = None, read: float | None = None) -> list[Line]:
    """Return one line for each kernel and shapes, slowest first (without times, in order of appearance)."""
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for line in parts:
        groups.setdefault((line.kernel, line.equation, line.shapes), []).append(line)
    total = sum(line.ms or 0.0 for line in parts)
    made = []
    for (kernel, equation, shapes), same in groups.items():
        line = Line(kernel, equation, _span(same), shapes, len(same), sum(x.flops for x in same),
                    sum(x.bytes for x in same))  # fmt: skip
        if same[0].ms is not None:
            line = _timed(line, sum(x.ms or 0.0 for x in same), total, peak, read)
        made.append(line)
    return sorted(made, key=lambda line: -(line.ms or 0.0))


def _timed(line: Line, ms: float, total: float, peak: float | None, read: float | None) -> Line:
    rate, gb_per_s = (line.flops / ms / 1e6, line.bytes / ms / 1e6) if ms else (0.0, 0.0)
    shares = {"peak_share": rate / peak if peak else None, "read_share": gb_per_s / read if read else None}
    return replace(line, ms=ms, gflops=rate, gb_per_s=gb_per_s, share=ms / total, **shares)


def _equation(call: Call) -> str:
    if call.node is not None:
        return call.label or call.node.equation.name
    return call.label or KERNELS[call.kernel].computes


def _shapes(call: Call) -> str:
    o = call.operands
    if "ta" in o:
        a, b = ("'" if o[transposed] else "" for transposed in ("ta", "tb"))
        return f"({o['m']}, {o['k']}){a} ({o['k']}, {o['n']}){b}"
    if "inner" in o:
        return f"({o['rows']}, {o['inner']}) ({o['inner']}, {o['width']})"
    first = next((b for b in buffers_of(o) if b.kind == "value"), None)
    if {"rows", "columns"} <= set(o):
        return f"({o['rows']}, {o['columns']})"
    if first is None and isinstance(o.get("n"), int):
        return f"({o['n']},)"
    return str(first.shape) if first else ""


def _span(same: list[Line]) -> str:
    names = list(dict.fromkeys(line.name for line in same))
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
