"""The choice: of all runs that fit the time, the one with the lowest expected validation loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from byhand.budget.expectation import expected_loss, most_passes
from byhand.budget.probe import Cost
from byhand.budget.recipe import finished
from byhand.config import TrainConfig
from byhand.flops import block_weights, step_flops, update_flops
from byhand.model import parameter_shapes

MARGIN = 0.03  # of the time: a step's mean is above the median that the probe found
FORWARD = 1 / 3  # of a step's operations
BESIDES = 1e-4  # seconds of a step outside the runtime: a line of metrics, a check of the text
EVALUATIONS, EVALUATING = 10, 0.03  # most evaluations of a run, and their largest share of its time
FEWEST = 50  # steps: only the smallest shape may take a text that it memorises sooner, and runs as many
AS_GOOD = 0.005  # nats within which the scaling law does not tell two runs apart
SAVE_EVERY = 600.0  # seconds
SAVING, BYTES_A_PARAMETER, BYTES_A_SECOND = 0.05, 12, 150e6  # the cost of a save


@dataclass(frozen=True)
class PlannedRun:
    """A run with its steps, and what to expect of it.

    candidate  the run without steps      seconds  from set-up to the last save
    passes     over the training text     loss     in nats, on a text like Shakespeare's
    text_ends  it ends before the time is up, because more passes would harm
    most       steps after which more passes would harm       saving  seconds of a save
    """

    candidate: TrainConfig
    config: TrainConfig
    seconds: float
    passes: float
    loss: float
    text_ends: bool
    most: int
    saving: float


def choose(
    candidates: Sequence[TrainConfig],
    cost: Callable[[TrainConfig], Cost],
    seconds: float,
    text_tokens: int,
    given: Collection[str] = (),
    worth: float = 1.0,
) -> PlannedRun | None:
    """Return the run with the lowest expected loss, or None if no candidate has time for one step.

    Among runs as good as the best it takes the largest, or, if the text ends some early, the one done first.

    candidates  runs, all but their steps            cost   what each costs here
    seconds     time from now to the end             given  names of settings to keep
    text_tokens  length of the text to learn from
    worth       bytes per token
    """
    fits = (_fit(run, cost(run), seconds, text_tokens, given, worth, run is candidates[0]) for run in candidates)
    fitting = [choice for choice in fits if choice]
    best = min((choice.loss for choice in fitting), default=0.0)
    good = [choice for choice in fitting if choice.loss <= best + AS_GOOD]
    early = [choice for choice in good if choice.text_ends]
    if early:
        return min(early, key=lambda choice: choice.seconds)
    return max(good, key=lambda choice: _flops(choice.candidate), default=None)


def _fit(
    candidate: TrainConfig,
    cost: Cost,
    seconds: float,
    text_tokens: int,
    given: Collection[str],
    worth: float,
    smallest: bool,
) -> PlannedRun | None:
    """Return the candidate with as many steps as time and text allow, or None."""
    parameters = sum(math.prod(shape) for shape in parameter_shapes(candidate.model).values())
    weights = block_weights(candidate.model)
    saving = SAVING + BYTES_A_PARAMETER * parameters / BYTES_A_SECOND
    once, each = cost.setup + cost.evaluation + saving, cost.step + BESIDES
    left = seconds * (1 - MARGIN) - once
    # A given interval adds to the cost of every step; otherwise the run has this many, spread evenly.
    counts = {
        "eval_interval": max(0, min(EVALUATIONS - 1, int(EVALUATING * left / cost.evaluation))),
        "save_interval": max(0, int(left / SAVE_EVERY)),
    }
    for name, price in (("eval_interval", cost.evaluation), ("save_interval", saving)):
        interval = getattr(candidate, name)
        if name not in given:
            once += counts[name] * price
            left -= counts[name] * price
        elif interval:
            each += price / interval
    in_time = int(left / each)
    passes = most_passes(weights, text_tokens * worth, candidate.optim.by_matrix)
    in_text = int(passes * text_tokens / candidate.tokens_per_step)
    if in_text < FEWEST and not smallest:
        return None
    in_text = max(FEWEST, in_text)
    steps = min(in_time, in_text)
    if steps < 1:
        return None
    intervals = {n: -(-steps // (count + 1)) if count else 0 for n, count in counts.items() if n not in given}
    config = finished(candidate, given, in_text, steps=steps, **intervals)
    tokens = steps * config.tokens_per_step
    context, text_bytes = config.model.seq_len * worth, text_tokens * worth
    loss = expected_loss(weights, tokens * worth, context, text_bytes, config.optim.by_matrix)
    seconds, passes = once + steps * each, tokens / text_tokens
    return PlannedRun(candidate, config, seconds, passes, loss, steps < in_time, in_text, saving)


def predicted(measured: Mapping[TrainConfig, Cost]) -> Callable[[TrainConfig], Cost]:
    """Return the cost of any run: measured, or by a fixed time and a rate in FLOP/s, fitted to the measured ones."""
    flops = np.array([_flops(config) for config in measured], float)
    seconds = np.array([cost.step for cost in measured.values()])
    fixed, per_flop = _line(flops, seconds)
    setup = max(cost.setup for cost in measured.values())

    def cost(config: TrainConfig) -> Cost:
        return measured.get(config) or cost_of(config, fixed + per_flop * _flops(config), setup)

    return cost


def cost_of(config: TrainConfig, step: float, setup: float) -> Cost:
    """Return the cost of a run whose steps take so many seconds: an evaluation is their forward part."""
    tokens = config.eval_windows * config.length
    return Cost(step, FORWARD * step * tokens / config.tokens_per_step, setup)


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Fit y = a + b x, neither negative, by least squares of the relative error."""
    if len(x) > 1:
        a, b = np.linalg.lstsq(np.stack([1 / y, x / y], axis=1), np.ones(len(y)))[0]
        if a >= 0 and b > 0:
            return float(a), float(b)
    return 0.0, float(np.median(y / x))


def _flops(config: TrainConfig) -> int:
    return step_flops(config.model, config.batch_size * config.grad_accum) + update_flops(config.model, config.optim)
