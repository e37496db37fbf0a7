"""What a run takes of this machine, known before it begins: memory, the time of a step, tokens."""

from __future__ import annotations

from typing import NamedTuple

from byhand.budget.probe import step_seconds
from byhand.cli.runs.training import described
from byhand.cli.terminal.say import say, show
from byhand.cli.terminal.shown import shown
from byhand.config import TrainConfig
from byhand.corpus.dataset import Corpus
from byhand.flops import step_flops
from byhand.memory import require_memory, room, run_bytes
from byhand.quantities import counted, duration
from byhand.runtimes.protocol import to_train
from byhand.runtimes.registry import choose

SLOW = 60.0  # seconds of a step for which a shorter one is offered
WORTH = 1e11  # operations of a step that is worth being timed beforehand
FORWARD = 3, 2  # a step takes so many times as long as its forward pass; with frozen weights


class StepCost(NamedTuple):
    """What a run needs: bytes, of how many that are free (None if unknown); seconds of a step; both in words."""

    bytes: int
    free: int | None
    seconds: float
    step: str

    @property
    def lines(self) -> tuple[str, str]:
        """Memory and step in words."""
        free = f" of {self.free / 1e9:.3g} GB that are free" if self.free else ""
        return f"memory: {self.bytes / 1e9:.3g} GB{free}", self.step


def step_cost(config: TrainConfig) -> StepCost:
    """Return the memory that a run needs, and how long a step takes. ConfigError if it does not fit."""
    request = to_train(config)
    require_memory(config, request)
    seconds, parts = step_seconds(config), ""
    if config.grad_accum > 1:
        parts = f" in {config.grad_accum} micro-batches of {config.batch_size}"
    took = duration(seconds) if seconds >= 10 else f"{seconds:.2g} s"
    step = f"a step of {config.batch_size * config.grad_accum} × {config.length} tokens{parts} takes about {took}"
    return StepCost(run_bytes(config, request), room(choose(request).runtime), seconds, step)


def show_run(config: TrainConfig, train: Corpus, val: Corpus) -> None:
    """Print what a run takes as a whole."""
    show(f"{described(config)} on {shown(train.name, 200)}")
    cost = step_cost(config)
    tokens = config.steps * config.tokens_per_step
    passes = f"{tokens / len(train):{'.2g' if tokens < 10 * len(train) else ',.0f'}}"
    windows = len(val.spread_windows(config.eval_windows, config.length)[0])
    forward = cost.seconds / config.tokens_per_step / FORWARD[bool(config.model.lora)]
    evaluations = -(-config.steps // config.eval_interval) if config.eval_interval else 1
    seconds = config.steps * cost.seconds + evaluations * windows * config.length * forward
    show(
        *cost.lines,
        f"{counted(config.steps, 'step')} read {tokens:,} tokens, the text about {passes} times, and take about "
        f"{duration(seconds)} with {counted(evaluations, 'evaluation')}",
    )


def say_step(config: TrainConfig) -> None:
    """Say how long a step takes unless it is short, and if it is long what makes it shorter."""
    whole = config.batch_size * config.grad_accum
    if step_flops(config.model, whole, config.length) < WORTH:
        return
    cost, quicker = step_cost(config), ""
    if cost.seconds > SLOW:
        rows = int(whole * SLOW / cost.seconds)
        size = max(1, min(rows, config.batch_size))
        quicker = "; --batch-size " + (
            f"{size} --grad-accum {rows // size} makes it a minute"
            if rows
            else "1 and a shorter --window make it shorter"
        )
    say(cost.step + quicker)
