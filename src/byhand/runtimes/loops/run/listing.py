"""The listing of a training step, of one token, or of filling the cache, timed if that is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.runtimes.listing import Listing
from byhand.runtimes.loops.lowering.ir import Call
from byhand.runtimes.loops.machine.blas import Blas
from byhand.runtimes.loops.run import profile
from byhand.runtimes.loops.run.decoding import LoopsDecoder
from byhand.runtimes.loops.run.training import LoopsSession
from byhand.runtimes.protocol import Request, Shape


def training_step(session: LoopsSession, shape: Shape, steps: int) -> Listing:
    """List the first share's calls."""
    plan = session.plan("train", shape)
    ms = None
    if steps:
        rng, vocab = np.random.default_rng(0), session.model.config.vocab_size
        batch = rng.integers(0, vocab, shape), rng.integers(0, vocab, shape)
        ms = session.time_calls(lambda: session.step([batch], 1.0), steps)
    return _listing("training step", plan.calls, ms, len(plan.shares), session.arena.memory.nbytes, session.blas)


def generation(of: str, model: Any, request: Request, steps: int) -> Listing:
    """List the first thread's calls of one token ("decode"), or of filling the cache up to the window's last."""
    window, streams = request.model.seq_len, request.streams
    decoder = LoopsDecoder(model, streams, request.threads or None, request.blas, request.weights)
    prompts = None if of == "decode" else np.zeros((streams, window), np.int64)
    plan = decoder.decoding if prompts is None else decoder.filling(window - 1)
    ms = decoder.time_calls(prompts, steps) if steps else None
    texts = f"{streams} stream{'s' * (streams > 1)}"
    what = f"one token, {texts}" if prompts is None else f"filling {window - 1} positions"
    return _listing(what, plan.shares[0].calls, ms, decoder.threads, decoder.arena.memory.nbytes, decoder.blas)


def _listing(
    what: str, calls: list[Call], ms: np.ndarray | None, threads: int, arena_bytes: int, blas: Blas
) -> Listing:
    peak = None if ms is None else profile.measured_peak(blas)
    lines = profile.lines(calls, ms, peak)
    return Listing(what, lines, profile.summed(lines), ms, peak, threads, arena_bytes, blas.name)
