"""`byhand plan RUN`: what a training step of a run, and a token that its model draws, take of this machine."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from byhand.cli.runs.cost import step_cost
from byhand.cli.runs.training import described
from byhand.cli.runs.tuning import usual_window
from byhand.cli.terminal.say import show, show_json
from byhand.cli.terminal.shown import shown
from byhand.errors import ConfigError
from byhand.formats.names import Weights
from byhand.generation import Engine, Sampling, Stream
from byhand.memory import fitting, needed, require_room
from byhand.runs import checkpoint
from byhand.runtimes.protocol import Request, to_train

WARM, TIMED = 4, 32  # tokens that are drawn before others are timed; of these


def run(folder: Path, weights: Weights, as_json: bool) -> int:
    """Print it; return the exit code."""
    loaded = checkpoint.load(folder, moments=False, unread=True)
    config = loaded.config
    if "imported" in loaded.state:
        config = replace(config, window=usual_window(config.model))
        config = fitting(config, to_train(config)) or config
    try:
        cost, refused = step_cost(config), ""
    except ConfigError as error:
        cost, refused = None, str(error)
    model = loaded.model().merged()
    request = Request("generate", model.config, dtype=str(model.dtype), weights=weights)
    require_room("generation", request, "Use --weights q8_0, or a smaller model.")
    seconds = _token_seconds(Engine(model, weights=weights, moves=True))
    if as_json:
        step = cost and {"tokens": config.tokens_per_step, "bytes": cost.bytes, "seconds": cost.seconds}
        show_json({"step": step, "token": {"bytes": needed(request), "seconds": seconds}})
        return 0
    size = f"{needed(request) / 1e9:.3g} GB with weights of {weights}"
    show(
        f"{shown(folder, 200)}: {described(config)}",
        *(cost.lines if cost else (refused,)),
        f"a token: {size}, {1e3 * seconds:.3g} ms at the beginning of a text",
    )
    return 0


def _token_seconds(engine: Engine) -> float:
    for count in (WARM, TIMED):
        begun = time.perf_counter()
        list(engine.finish([Stream([0], count, Sampling(temperature=0))]))
        took = time.perf_counter() - begun
    return took / TIMED
