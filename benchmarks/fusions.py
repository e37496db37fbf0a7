"""The gain of each fusion of the loops runtime: a step without it and a step with all, by turns.

    python benchmarks/fusions.py --shape nano

Without its rule, each equation of a fused group runs in its own kernel, or, if it has none, as its NumPy halves, on
one thread at a time.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass, replace
from typing import Any

from byhand.bench.contest import by_turns
from byhand.bench.shapes import Shape, shape_of
from byhand.engine.equation import registry
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.runtimes.loops.lower.fusion import rules_of, without
from byhand.runtimes.loops.program.calls import Call
from byhand.runtimes.loops.run.replay import ready_for
from byhand.runtimes.loops.run.training import LoopsSession

UPDATE = "AdamW + sum over shares + clipping"
ROUNDS = 5


@dataclass(frozen=True)
class Gain:
    """A fusion's gain: median ms of a step and MB of the arena with it and without, and its replacement.

    ratio  of the times without and with it, median over the rounds, so that a slow round slows both
    """

    rule: str
    instead: str
    ms: float
    ms_without: float
    ratio: float
    mb: float
    mb_without: float


def measure(shape: Shape, threads: int = 0, blas: str = "auto", seconds: float = 20.0) -> list[Gain]:
    """Return the gain of each fusion that this shape has; it takes about this many seconds."""
    usual = shape.model().activation
    bases = {
        r.name: r.ends if registry[r.ends].role in ("activation", "gate") else usual
        for r in rules_of("train")
        if r.reason
    }
    whole = {name: TimedPlan(shape, threads, blas, name) for name in dict.fromkeys([usual, *bases.values()])}
    less = {name: TimedPlan(shape, threads, blas, base, without(name)) for name, base in bases.items()}
    less = {name: plan for name, plan in less.items() if plan.kernels != whole[bases[name]].kernels}
    bases[UPDATE], less[UPDATE] = usual, TimedPlan(shape, threads, blas)
    less[UPDATE].split_update()
    rounds = {name: _medians(times) for name, times in timed(whole | less, seconds).items()}
    gains = []
    for name, plan in less.items():
        base, slower, faster = whole[bases[name]], rounds[name], rounds[bases[name]]
        ratio = statistics.median(a / b for a, b in zip(slower, faster, strict=True))
        ms, ms_without = statistics.median(faster), statistics.median(slower)
        gains.append(Gain(name, plan.instead, ms, ms_without, ratio, base.megabytes, plan.megabytes))
    return gains


def _medians(seconds: list[float]) -> list[float]:
    """Return the median of each round in ms."""
    repeats = len(seconds) // ROUNDS
    return [1e3 * statistics.median(seconds[i : i + repeats]) for i in range(0, len(seconds), repeats)]


def timed(steps: dict[str, TimedPlan], seconds: float) -> dict[str, list[float]]:
    """Return each step's seconds, by turns; as many repeats as fit."""
    once = sum(map(sum, by_turns(steps, repeats=1, rounds=1).values()))
    return by_turns(steps, max(2, round(seconds / ROUNDS / once) - 1), ROUNDS)


class TimedPlan:
    """A training step by these rules, on a fixed random batch."""

    def __init__(
        self, shape: Shape, threads: int, blas: str, activation: Any = None, rules: tuple[Any, ...] | None = None
    ) -> None:
        config = shape.model() if activation is None else replace(shape.model(), activation=activation)
        model = TinyGPT(config, seed=1)
        optimizer = AdamW(lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1, decay="matrices")
        self.session = LoopsSession(model, optimizer, threads or None, blas, rules=rules)
        self._batch = shape.random_batch()
        self.plan = self.session.plan("train", (shape.batch, shape.seq_len))

    def __call__(self) -> float:
        """Make the step; return the loss."""
        return self.session.step([self._batch], 1.0)[0]

    @property
    def kernels(self) -> list[str]:
        """The kernels that one share calls, in order."""
        return [call.kernel for call in self.plan.calls]

    @property
    def megabytes(self) -> float:
        """The whole arena: parameters, moments, gradients and the plan's workspace."""
        return self.session.arena.memory.nbytes / 1e6

    @property
    def instead(self) -> str:
        """The replacement of the omitted rule."""
        by_numpy = any(call.kernel == "reference" and call.node is not None for call in self.plan.calls)
        return "NumPy halves" if by_numpy else "kernels"

    def split_update(self) -> None:
        """Reduce the shares' gradients, compute the norm and clip, each in a separate pass.

        The clipping pass copies the gradient onto itself, since the update's kernel clips too: only traffic counts.
        """
        for share in self.plan.shares:
            calls: list[Call] = []
            for call in share.calls:
                o: dict[str, Any] = call.operands
                if call.kernel == "sum_shares":
                    for k in range(1, o["shares"]):
                        other = {"x": o["gradient"] + k * o["stride"], "y": o["gradient"], "n": o["n"]}
                        calls.append(Call("accumulate", None, o["n"], other, ()))
                    call = replace(call, operands=o | {"shares": 1})
                elif call.kernel == "adamw":
                    calls.append(Call("copy", None, o["n"], {"x": o["gradient"], "y": o["gradient"], "n": o["n"]}))
                calls.append(call)
            share.calls = calls
            share.tables = [share.encoder.table(calls, k > 0) for k in range(len(share.tables))]
        ready_for(self.plan.tables)


def main() -> None:
    """Measure, and print a line for each fusion."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--shape", default="nano", help="tiny, nano, small, or B,T,C[/F],L,H[/K],V")
    flags.add_argument("--threads", type=int, default=0, help="0: all cores")
    flags.add_argument("--blas", default="auto", choices=("auto", "tiles", "scipy"), help="matrix products")
    flags.add_argument("--seconds", type=float, default=20.0, help="about how long to measure")
    given = flags.parse_args()
    print(f"{'fusion':<36}{'instead':<14}{'ms':>9}{'without':>9}{'times':>7}{'MB':>8}{'without':>9}")
    for g in measure(shape_of(given.shape), given.threads, given.blas, given.seconds):
        sizes = f"{g.mb:>8.1f}{g.mb_without:>9.1f}"
        print(f"{g.rule:<36}{g.instead:<14}{g.ms:>9.2f}{g.ms_without:>9.2f}{g.ratio:>7.2f}{sizes}")


if __name__ == "__main__":
    main()
