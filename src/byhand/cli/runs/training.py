"""What a run reports to people: its beginning, each step, how it ended and how to resume it."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

from byhand.cli.runs.minutes import Promise
from byhand.cli.terminal.interrupts import StopRequest, at_the_end
from byhand.cli.terminal.progress import Display
from byhand.cli.terminal.say import is_silent, say, show
from byhand.cli.terminal.shown import shown
from byhand.config import TrainConfig
from byhand.corpus.dataset import bits_per_byte
from byhand.errors import command
from byhand.files.run_folder import name_of
from byhand.flops import step_flops
from byhand.memory import parameter_counts
from byhand.quantities import counted, duration, in_units
from byhand.runs.run import Run
from byhand.runs.trainer import Progress, Trainer
from byhand.schedule import learning_rate

LONG = 2e12  # operations of an update that takes ten seconds or more on most laptops


def train_run(run: Run, promise: Promise | None = None) -> int:
    """Train to the end or to the first signal, and say how to go on. Return the exit code."""
    folder = run.folder
    if not run.text:
        if run.start and run.place:
            show(f"{shown(folder, 200)} is complete: {run.start.step} of {run.config.steps} steps.")
        return 0
    stop = StopRequest()
    with at_the_end(lambda: "before training began: run the same command again"):
        trainer = prepared(run)
    train(run, trainer, stop, promise)
    step, steps = trainer.step, trainer.config.steps
    if trainer.shows and step < steps:
        again = command("byhand", "train", "--resume", folder)
        show(f"stopped at step {step} of {steps}, saved. Go on with: {shown(again)}")
    elif trainer.shows:
        words = ("chat", folder) if run.config.data.chat else ("sample", folder, "--prompt", "The ")
        again = command("byhand", *words)
        show(f"saved {shown(folder, 200)}. Try: {shown(again)}")
    return 0 if step == steps else stop.exit_code


def prepared(run: Run) -> Trainer:
    """Return the run's trainer, ready to compute, and say what begins."""
    trainer = run.trainer()
    if trainer.shows:
        _say_what_begins(trainer, run)
    chosen = trainer.choice
    trainer.prepare()  # before signals wait for the end of a step, and before timing starts
    if trainer.choice is not chosen:
        say(_runtime(trainer))
    return trainer


def train(run: Run, trainer: Trainer, stop: StopRequest, promise: Promise | None = None) -> None:
    """Train to the end or to the first signal, show the progress, and at the end say how well the run predicts."""
    begun, progress = time.monotonic(), None
    display = Display(trainer.step) if trainer.shows and not is_silent() else None
    with stop, display or nullcontext():
        for progress in run.train(trainer, stop, promise.pace if promise else None):
            if display:
                display.show(progress)
    if trainer.shows and trainer.step == trainer.config.steps:
        _say_how_it_ended(trainer, run.folder, progress, time.monotonic() - begun, promise)


def _say_what_begins(trainer: Trainer, run: Run) -> None:
    config, corpus, text = trainer.config, trainer.train, run.text
    assert text
    size = f"{len(text.content):,} bytes"
    if corpus.unit != "byte":
        size += f", {len(corpus) + len(trainer.val):,} {corpus.unit}s"
    say(
        f"{shown(run.folder, 200)}: {described(config)} on {shown(text.name, 200)} ({size}), "
        f"steps {trainer.step + 1} to {config.steps} of {config.tokens_per_step} tokens",
        _runtime(trainer),
    )
    if trainer.change:
        say(trainer.change)
    if run.planned not in (0, config.steps):
        before, now = (
            learning_rate(config.optim, trainer.step - k, n) for k, n in ((1, run.planned), (0, config.steps))
        )
        moves = f"rises from {before:.3g} back to" if now > before else "stays at" if now == before else "falls to"
        schedule = f"the {config.optim.schedule} schedule is now {config.steps} steps, not {run.planned}"
        say(f"learning rate {moves} {now:.3g}: {schedule}")


def described(config: TrainConfig) -> str:
    """Return a run's parameters and its shape in words."""
    m, (count, trained) = config.model, parameter_counts(config.model)
    some = f", of which {trained:,} are trained" if m.lora else ""
    window = f", windows of {config.length}" if config.window else ""
    shape = f"{counted(m.n_layers, 'layer')}, {counted(m.n_heads, 'head')}, width {m.d_model}"
    return f"{count:,} parameters{some} ({shape}, context {m.seq_len}{window}, {config.dtype})"


def _say_how_it_ended(
    trainer: Trainer, folder: Path, progress: Progress | None, seconds: float, promise: Promise | None
) -> None:
    if progress and progress.val_loss is not None:
        if promise:
            show(promise.outcome(progress.val_loss, trainer.config.steps))
        loss = f"{progress.val_loss:.4f} nats per {trainer.train.unit}"
        if progress.bytes_per_token:
            loss += f" = {bits_per_byte(progress.val_loss, progress.bytes_per_token):.4f} bits per byte"
        show(f"done in {duration(seconds)}: validation loss {loss}")
    best = trainer.record.get("best")
    if best and best["step"] != trainer.config.steps:
        path = folder / name_of(best["step"])
        show(f"the lowest validation loss was {best['val/loss']:.4f}, at step {best['step']}: {shown(path, 200)}")


def _runtime(trainer: Trainer) -> str:
    """Return a line on the runtime: how it computes or why no faster one does, and whether to wait long."""
    choice, config = trainer.choice, trainer.config
    line = f"runtime {choice.runtime.name}: {choice.why or trainer.session.description}"
    work = step_flops(config.model, config.batch_size * config.grad_accum, config.length)
    return (
        line if work < LONG else f"{line}; an update computes {in_units(work, 'FLOP')}, so the first may take a while"
    )
