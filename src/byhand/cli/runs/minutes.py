"""`byhand train --minutes M`: choose a run that fits the time, and predict its loss."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Collection
from dataclasses import dataclass, replace

from byhand.budget.choice import PlannedRun, choose, cost_of, predicted
from byhand.budget.expectation import Range, bytes_to_count, expected_range
from byhand.budget.n_grams import n_gram_losses
from byhand.budget.pace import Pace
from byhand.budget.probe import LEAST_STEPS, Cost, measure, warm_up
from byhand.budget.recipe import candidates, smallest
from byhand.cli.terminal.clock import elapsed
from byhand.cli.terminal.say import say
from byhand.config import TrainConfig
from byhand.corpus.dataset import Corpus
from byhand.errors import ConfigError
from byhand.flops import block_weights
from byhand.quantities import counted, duration
from byhand.runs import metrics
from byhand.runs.run import Run

PROBING, LONGEST_PROBE = 0.006, 2.0  # share of the time to probe one shape; at most these seconds
LONGEST = 60 * 24 * 366  # minutes of a year
RECENT = 100  # steps that give the pace of a resumed run
NO_END = 1 << 60  # tokens of a text too long to memorise
ENDING = 0.15  # seconds that the interpreter takes before the clock starts and after the last line


@dataclass(frozen=True)
class Promise:
    """A prediction: seconds from the start of the command to its end, and the validation loss after these steps.

    pace  adapts the number of steps to the machine's speed
    what  names the loss; for a resumed run, the one before
    """

    seconds: float
    loss: float
    steps: int
    pace: Pace
    what: str = "expected validation loss"

    def outcome(self, loss: float, steps: int) -> str:
        """Return a line that compares the prediction with the outcome."""
        took = elapsed()
        expected, reached = round(self.loss, 2), round(loss, 2)  # as printed, so that their difference agrees
        changed = f"{counted(steps, 'step')} instead of {self.steps:,} to keep the time; "
        return (
            f"took {took:.1f} s of {self.seconds:.1f} ({took / self.seconds - 1:+.1%}); "
            f"{changed if steps != self.steps else ''}"
            f"{self.what} {expected:.2f}, reached {reached:.2f} ({reached - expected:+.2f})"
        )


def require_sense(minutes: float, given: Collection[str]) -> None:
    """Raise ConfigError for an impossible time, or if the number of steps is given too."""
    if not (minutes > 0 and math.isfinite(minutes)):
        raise ConfigError(f"--minutes is {minutes:g}, but must be a positive number. Use --minutes 5.")
    if minutes > LONGEST:
        raise ConfigError(f"--minutes is {minutes:g}, but a year has {LONGEST:,}. Use --minutes 5.")
    if "steps" in given:
        raise ConfigError(
            "--minutes chooses the number of steps, but it is given too. Leave out --minutes or the steps."
        )


def planned(
    base: TrainConfig, given: Collection[str], text: Corpus, minutes: float, as_bytes: Corpus, least: float = 0.0
) -> tuple[TrainConfig, Promise]:
    """Probe the machine; report the choice and the prediction; return both.

    as_bytes  the text as bytes: n-grams predict the loss per byte, and a token counts as its bytes
    least     seconds kept for training after reading and compiling, even if the minutes end later
    """
    parts = text.split(base.data.val_fraction, 1)
    longest = 2 ** int(math.log2(max(2, min(map(len, parts))) - 1))  # a window is one token longer
    runs = candidates(base, given, longest)
    text.split(base.data.val_fraction, runs[0].model.seq_len)  # a given context may not fit
    warm_up(smallest(base, longest), *parts)
    budget = max(60 * minutes, least and elapsed() + least)
    train, val = as_bytes.split(base.data.val_fraction, 1)
    worth = len(as_bytes) / len(text)
    choice, cost = _probed(runs, given, parts, budget, worth)
    weights, tokens = block_weights(choice.config.model), choice.config.steps * choice.config.tokens_per_step
    seen = bytes_to_count(weights, worth * tokens, len(train))
    n_grams = n_gram_losses(train.tokens, val.tokens, seen)
    left = budget - ENDING - elapsed()  # counting took time
    choice = choose([choice.candidate], lambda _: cost, left, len(parts[0]), given, worth) or choice
    expected = expected_range(choice.loss, n_grams, seen).of_tokens(worth, choice.config.model.vocab_size)
    seconds = elapsed() + choice.seconds + ENDING if choice.text_ends else budget
    _say(choice, cost, expected, seconds)
    pace = Pace(choice, cost, budget, lambda: budget - ENDING - elapsed())
    return choice.config, Promise(seconds, expected.loss, choice.config.steps, pace)


def extended(run: Run, minutes: float) -> tuple[Run, Promise]:
    """Extend a run by some minutes at the pace of its last steps; report and return the run and its promise."""
    assert run.start
    config, step, budget = run.config, run.start.step, 60 * minutes
    rows = metrics.read(run.folder)
    rates = [rate for row in rows[-RECENT:] if (rate := row.get("train/tok_per_sec", 0)) > 0]
    if not rates:
        raise ConfigError(f"{run.folder} has no metrics that tell its pace. Choose the number of --steps.")
    validated = [row["val/loss"] for row in rows if "val/loss" in row]
    what = f"{'validation' if validated else 'training'} loss was"
    loss = (validated or [rows[-1]["train/loss"]])[-1]
    rate = statistics.median(rates)
    cost = cost_of(config, config.tokens_per_step / rate, 0.0)
    given = ("eval_interval", "save_interval", "warmup_steps", "weight_decay")
    choice = choose([config], lambda _: cost, budget - ENDING - elapsed(), NO_END, given)
    if choice is None:
        raise _over(minutes)
    config = run.start.config = replace(config, steps=step + choice.config.steps)
    end = time.strftime("%H:%M:%S", time.localtime(time.time() + budget - elapsed()))
    say(
        f"chosen: {counted(choice.config.steps, 'more step')} at the {rate:,.0f} tokens/s of its last ones",
        f"expected: done at {end}, {duration(budget)} after the start; {what} {loss:.2f}",
    )
    pace = Pace(choice, cost, budget, lambda: budget - ENDING - elapsed())
    return replace(run, config=config), Promise(budget, loss, config.steps, pace, what)


def _over(minutes: float) -> ConfigError:
    return ConfigError(
        f"--minutes {minutes:g} is over before the first step: start-up and probe took {elapsed():.0f} s "
        f"(less next time if they compiled). Use more minutes, or a smaller shape."
    )


def _probed(
    runs: list[TrainConfig], given: Collection[str], parts: tuple[Corpus, Corpus], budget: float, worth: float
) -> tuple[PlannedRun, Cost]:
    """Time the best shape and its larger neighbour until the choice is stable; return it and its cost."""
    measured: dict[TrainConfig, Cost] = {}
    probing = min(LONGEST_PROBE, PROBING * budget)
    guess = 0
    while True:
        measured[runs[guess]] = measure(runs[guess], *parts, probing)
        cost = predicted(measured)
        choice = choose(runs, cost, budget - ENDING - elapsed(), len(parts[0]), given, worth)
        if choice is None:
            raise _over(budget / 60)
        best = runs.index(choice.candidate)
        # Smaller shapes do not predict how well a larger one uses the machine; skip one that is slow to time.
        near = [i for i in (best, best + 1) if i < len(runs) and runs[i] not in measured]
        near = [i for i in near if i == best or LEAST_STEPS * cost(runs[i]).step < 2 * probing]
        if not near:
            return choice, cost(choice.candidate)
        guess = near[0]


def _say(choice: PlannedRun, cost: Cost, expected: Range, seconds: float) -> None:
    """Report the measurement, the choice and the prediction, in three lines; choices are the values of flags."""
    config, m = choice.config, choice.config.model
    choices = f"{m.positions} positions, {m.norm} norm, {m.activation}, {config.optim.optimizer}"
    end = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds - elapsed()))
    passes = f"{choice.passes:.2g}"
    why = "; more would only memorise so short a text" if choice.text_ends else ""
    say(
        f"measured: {config.tokens_per_step / cost.step:,.0f} tokens/s with {counted(m.n_layers, 'layer')}, "
        f"{counted(m.n_heads, 'head')}, width {m.d_model}, context {m.seq_len}, batch {config.batch_size}; "
        f"{elapsed():.1f} s gone",
        f"chosen: {choices}; {counted(config.steps, 'step')}, {passes} pass{'es' * (passes != '1')} over the "
        f"training part of the text{why}",
        f"expected: done at {end}, {duration(seconds)} after the start, with validation loss {expected.loss:.2f} "
        f"({expected.low:.2f} to {expected.high:.2f}); estimated from runs on Shakespeare and "
        "the n-grams of this text",
    )
