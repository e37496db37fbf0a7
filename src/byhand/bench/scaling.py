"""How a training step's time and its operations grow with the batch, the layers and the window.

A sweep changes one number of a shape. All shapes are timed by turns in one run; parts of a step (attention, the
blocks) are sums over the plan's own calls. The exponent p of a curve is the least-squares slope of log cost over log
size: 0 is flat, 1 linear, 2 quadratic. The same fit of the operations that the plan counts gives the exponent to
expect at these sizes: causal attention takes 8 queries at a time and keys up to theirs, so it grows as T (T + 8).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from byhand.bench.contest import by_turns
from byhand.bench.shapes import Shape
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.runtimes.cores import cores
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose

ROUNDS = 7
REPEATS = 3


@dataclass(frozen=True)
class StepPart:
    """A part of a step: the calls for which `belongs` is true, or the whole step; `a_token` divides by the tokens."""

    name: str
    belongs: Callable[[Any], bool] | None = None
    a_token: bool = False


@dataclass(frozen=True)
class Sweep:
    """A field of `Shape`, its values, and the parts of the step to time."""

    axis: str
    base: Shape
    sizes: tuple[int, ...]
    parts: tuple[StepPart, ...]

    @property
    def shapes(self) -> list[Shape]:
        """The shapes to be timed."""
        return [replace(self.base, **{self.axis: size}) for size in self.sizes]


@dataclass(frozen=True)
class Curve:
    """The cost of a part along a sweep, in ms (a token's in us), and the exponents of its time and its operations."""

    axis: str
    part: str
    sizes: tuple[int, ...]
    costs: tuple[float, ...]
    exponent: float
    operations_exponent: float


def is_attention(call: Any) -> bool:
    """Return whether a plan's call is scores, softmax and mix, forward or back."""
    return call.kernel.startswith("attention")


def in_a_block(call: Any) -> bool:
    """Return whether a plan's call belongs to one of the L blocks."""
    return call.node is not None and call.node.name.startswith("blocks.")


def sweeps(threads: int) -> tuple[Sweep, ...]:
    """Return the sweeps; batches are multiples of the threads, so that all have the same share."""
    rows = tuple(threads * n for n in (2, 4, 8, 16, 32))
    layers = (StepPart("the step"), StepPart("its blocks", in_a_block))
    window = (StepPart("attention", is_attention), StepPart("the rest", lambda call: not is_attention(call)))
    return (
        Sweep("batch", Shape(rows[0], 64, 128, 4, 4, 256), rows, (StepPart("a token", a_token=True),)),
        Sweep("n_layers", Shape(6 * threads, 64, 128, 4, 4, 256), (1, 2, 4, 8), layers),
        Sweep("seq_len", Shape(rows[0], 64, 128, 4, 4, 256), (64, 128, 256, 512, 1024), window),
    )


def measure(threads: int = 0, blas: str = "auto", tables: Sequence[Sweep] | None = None) -> list[Curve]:
    """Time all shapes of the sweeps by turns with the loops runtime; return a curve for each part."""
    tables = tables or sweeps(threads or cores())
    timed = {shape: TimedShape(shape, threads, blas) for sweep in tables for shape in sweep.shapes}
    steps = by_turns({str(shape): one.step for shape, one in timed.items()}, REPEATS, ROUNDS)
    for _ in range(ROUNDS):
        for one in timed.values():
            one.time_calls()
    for shape, one in timed.items():
        one.ms = 1e3 * float(np.median(steps[str(shape)]))
    return [_curve(sweep, part, [timed[shape] for shape in sweep.shapes]) for sweep in tables for part in sweep.parts]


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return p of cost = c size^p by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


class TimedShape:
    """A shape's step, its median in ms, and the times of its calls, one row a round."""

    def __init__(self, shape: Shape, threads: int, blas: str) -> None:
        self.shape = shape
        self.ms = 0.0
        request = Request("train", shape.model(), threads=threads, blas=blas, listed=True)
        session: Any = choose(request).runtime.session(TinyGPT(request.model, seed=1), AdamW(), request)
        self.step: Callable[[], Any] = partial(session.step, [shape.random_batch()], 1.0)
        self._calls = session.plan("train", (shape.batch, shape.seq_len)).calls
        self._time: Callable[[], np.ndarray] = partial(session.runner.time_calls, self.step, REPEATS)
        self._rounds: list[np.ndarray] = []

    def time_calls(self) -> None:
        """Time each call of one share, for one more round."""
        self._rounds.append(self._time())

    def cost(self, part: StepPart) -> tuple[float, float]:
        """Return a part's time, median over the rounds, and its operations."""
        belongs = np.array([part.belongs is None or part.belongs(call) for call in self._calls])
        operations = float(sum(call.flops for call, counts in zip(self._calls, belongs, strict=True) if counts))
        ms = self.ms if part.belongs is None else float(np.median(np.array(self._rounds)[:, belongs].sum(axis=1)))
        return (1e3 * ms / self.shape.tokens, operations / self.shape.tokens) if part.a_token else (ms, operations)


def _curve(sweep: Sweep, part: StepPart, timed: list[TimedShape]) -> Curve:
    costs, operations = zip(*(one.cost(part) for one in timed), strict=True)
    fits = exponent(sweep.sizes, costs), exponent(sweep.sizes, operations)
    return Curve(sweep.axis, part.name, sweep.sizes, costs, *fits)
