"""A run's cost on this machine, known before it begins: memory, the time of a step and of a token, tokens."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from byhand.budget.probe import step_seconds
from byhand.cli.runs.training import described
from byhand.cli.runs.tuning import usual_window
from byhand.cli.terminal.say import say, show
from byhand.cli.terminal.shown import shown
from byhand.config import TrainConfig
from byhand.corpus.dataset import Corpus
from byhand.errors import ConfigError
from byhand.flops import step_flops
from byhand.formats.names import Weights
from byhand.memory import fitting, needed, require_memory, require_room, room, run_bytes
from byhand.quantities import counted, duration
from byhand.runtimes.protocol import Request, to_train
from byhand.runtimes.registry import choose

SLOW = 60.0  # seconds of a step above which we suggest a shorter one
WORTH = 1e11  # time a step of this many operations beforehand
FORWARD = 3, 2  # time of a step in forward passes; with frozen weights
WARM, TIMED = 4, 32  # tokens drawn before timing starts; tokens timed


def step_cost(config: TrainConfig) -> tuple[float, str, str]:
    """Return a step's seconds, and lines on the run's memory and its step. ConfigError if it does not fit."""
    request = to_train(config)
    require_memory(config, request)
    have, seconds = room(choose(request).runtime), step_seconds(config)
    free = f" of {have / 1e9:.3g} GB free" if have else ""
    parts = f" in {config.grad_accum} micro-batches of {config.batch_size}" if config.grad_accum > 1 else ""
    took = duration(seconds) if seconds >= 10 else f"{seconds:.2g} s"
    step = f"a step of {config.batch_size * config.grad_accum} × {config.length} tokens{parts} takes about {took}"
    return seconds, f"memory: {run_bytes(config, request) / 1e9:.3g} GB{free}", step


def say_step(config: TrainConfig) -> None:
    """Say how long a step takes unless it is short; if it is long, also how to shorten it."""
    whole, quicker = config.batch_size * config.grad_accum, ""
    if step_flops(config.model, whole, config.length) < WORTH:
        return
    seconds, _, step = step_cost(config)
    if seconds > SLOW:
        rows = max(1, int(whole * SLOW / seconds))
        size = min(rows, config.batch_size)
        quicker = f"; --batch-size {size} --grad-accum {rows // size} or a shorter --window makes it shorter"
    say(step + quicker)


def show_run(config: TrainConfig, train: Corpus, val: Corpus) -> None:
    """Print a new run's total cost."""
    step, *lines = step_cost(config)
    tokens = config.steps * config.tokens_per_step
    passes = f"{tokens / len(train):{'.2g' if tokens < 10 * len(train) else ',.0f'}}"
    windows = len(val.spread_windows(config.eval_windows, config.length)[0])
    each = step / FORWARD[bool(config.model.lora)] * windows * config.length / config.tokens_per_step
    evaluations = -(-config.steps // config.eval_interval) if config.eval_interval else 1
    show(
        f"{described(config)} on {shown(train.name, 200)}",
        *lines,
        f"{counted(config.steps, 'step')} read {tokens:,} tokens, the text about {passes} times, and take about "
        f"{duration(config.steps * step + evaluations * each)} with {counted(evaluations, 'evaluation')}",
    )


def show_stored(folder: Path, weights: Weights) -> None:
    """Print the cost of a step and of a token of a stored run; of an imported model, the step of tuning it."""
    from byhand.interop import exchange  # slow to import

    loaded = exchange.model(folder)
    config = loaded.config
    if "imported" in loaded.state:
        config = replace(config, window=usual_window(config.model))
        config = fitting(config, to_train(config)) or config
    try:
        _, *lines = step_cost(config)
    except ConfigError as error:
        lines = [str(error)]
    model = loaded.model().merged()
    request = Request("generate", model.config, dtype=str(model.dtype), weights=weights)
    require_room("generation", request, "Use --weights q8_0, or a smaller model.")
    from byhand.generation import Engine, Sampling, Stream

    engine, size = Engine(model, weights=weights, moves=True), f"{needed(request) / 1e9:.3g} GB"
    begun = 0.0
    for count in (WARM, TIMED):
        begun = time.perf_counter()
        list(engine.finish([Stream([0], count, Sampling(temperature=0))]))
    ms = 1e3 * (time.perf_counter() - begun) / TIMED
    token = f"a token: {size} with weights of {weights}, {ms:.3g} ms at the beginning of a text"
    show(f"{shown(folder, 200)}: {described(config)}", *lines, token)
