"""`byhand train`: train a GPT on a text, or resume a run."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from byhand.cli.arguments.parsing import Given, read
from byhand.cli.arguments.presets import Settings, preset, with_toml
from byhand.cli.runs.minutes import Promise, planned, require_sense
from byhand.cli.runs.run_text import identity, stored, text_of
from byhand.cli.terminal.interrupt import StopRequest
from byhand.cli.terminal.progress import Display
from byhand.cli.terminal.say import say
from byhand.cli.terminal.shown import shown
from byhand.config import ModelConfig, OptimConfig, TrainConfig
from byhand.corpus.dataset import Corpus, bits_per_byte
from byhand.corpus.encoding import corpus_of
from byhand.corpus.text_file import TextFile
from byhand.corpus.texts import Text, on_disk, open_text
from byhand.errors import CheckpointError, ConfigError, DataError, reason
from byhand.files import run_folder
from byhand.memory import require_room
from byhand.quantities import counted, duration
from byhand.runs import checkpoint, metrics
from byhand.runs.lock import HeldRun, locked
from byhand.runtimes.protocol import to_train
from byhand.runtimes.provenance import resumed
from byhand.runtimes.registry import choose
from byhand.runtimes.tape.session import keep_pages
from byhand.tokenizers.byte import BYTES
from byhand.train import Trainer, require_same_text, training

OF_A_LENGTH = {"steps", "eval_interval", "save_interval"}  # a preset's fit its own number of steps
OF_A_MACHINE = ("runtime", "threads", "dtype", "mesh", "recompute")  # a resumed run may change these: machines differ


@dataclass(frozen=True)
class Options:
    """Train a GPT on a text, or resume a run bit for bit where it stopped."""

    train: Settings = field(default_factory=lambda: preset("nano"))
    preset: str = "nano"
    """tiny, nano, small, or seed: settings that --config and flags override."""
    config: Path | None = None
    """A TOML file with any of these settings."""
    minutes: float | None = None
    """Time for the whole command, which picks shape, recipe and steps by a short probe. Settings that flags,
    --config or --preset give stay."""
    out: Path | None = None
    """The run folder; runs/001, runs/002, ... if not given."""
    resume: Path | None = None
    """Go on with this run. Its settings stay; --data may say where its text is now. --runtime, --threads, --dtype,
    --mesh and --recompute may change; the run keeps what was asked for last."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand train")
    values = given.values
    config, decided = preset(values.get("preset", "nano")), set(values)
    if "config" in values:
        config, in_file = with_toml(config, values["config"])
        decided |= in_file
    if "preset" in values:
        decided |= {f.name for cls in (ModelConfig, OptimConfig, TrainConfig) for f in fields(cls)} - OF_A_LENGTH
    options = given.over(Options(train=config))
    for name in ("out", "resume"):
        if name in values and given.written[name][1] == [""]:  # as a path it would be the current folder
            raise ConfigError(f"--{name} names no folder. Use a path, as in --{name} runs/mine.")
    if options.train.data.data == "-" and not options.resume and sys.stdin.isatty():
        print("reading the text from standard input; end with Ctrl-D", file=sys.stderr)
    keep_pages()
    if options.minutes is not None:
        require_sense(options.minutes, decided, options.resume is not None)
    if options.resume:
        return _resume(options.resume, given)
    return _start(options, decided)


def _start(options: Options, given: Collection[str]) -> int:
    config, promise = options.train, None
    if options.out:
        run_folder.require_free(options.out)  # refuse before anything is read or written
    require_room(config, to_train(config))
    text = open_text(config.data.data)
    whole = corpus_of(text)
    whole.require_vocabulary(config.model.vocab_size)
    if options.minutes is not None:
        config, promise = planned(config, given, whole, options.minutes)
    whole.split(config.data.val_fraction, config.model.seq_len)
    run = options.out or _free_folder(Path("runs"))
    run_folder.begin(run)
    with locked(run) as place:
        run_folder.require_free(run)  # another process may have been faster
        checkpoint.require_way(run, range(run_folder.STEPS))
        metrics.keep_until(run, 0)
        return _train(config, stored(text, run), place, None, promise)


def _resume(run: Path, given: Given[Options]) -> int:
    for name, (flag, _) in given.written.items():
        if name not in ("resume", "data", *OF_A_MACHINE):
            raise ConfigError(f"{flag} cannot change a run that is resumed. Leave it out, or start a new run.")
    if not os.path.isdir(run):
        raise CheckpointError(f"there is no run {run}. Check the path.")
    run_folder.require_readable(run)
    if run_folder.is_checkpoint(run):
        above = run.parent if run_folder.step_of(run.name) is not None else run.resolve().parent
        raise CheckpointError(f"{run} is one checkpoint of a run. Use --resume {shlex.quote(str(above))}.")
    if not run_folder.checkpoints(run):
        raise run_folder.without_checkpoint(run)
    if not run_folder.is_run(run):  # write nothing into a folder that byhand did not make
        checkpoint.load(run)
    with locked(run) as place:
        start = checkpoint.load(run)
        kept = start.config.array_dtype
        start.config = on_this_machine(start.config, {k: v for k, v in given.values.items() if k in OF_A_MACHINE})
        if start.config.array_dtype != kept:
            raise ConfigError(f"{run} holds {kept} arrays. Resume without --dtype.")
        if start.step >= start.config.steps:
            print(f"{shown(run, 200)} is complete: {start.step} of {start.config.steps} steps.")
            return 0
        checkpoint.require_way(run, range(start.step + 1, run_folder.STEPS))
        require_room(start.config, resumed(to_train(start.config), start.state.get("used")))
        text = on_disk(text_of(start, run, given.values.get("data")), start.config.data.data)
        metrics.keep_until(run, start.step)
        return _train(start.config, text, place, start)


def on_this_machine(config: TrainConfig, given: dict[str, Any]) -> TrainConfig:
    """Return the settings with those given; a named runtime that cannot use the run's mesh goes on without it."""
    config = replace(config, **given)
    if "runtime" in given and not {"mesh", "recompute"} & set(given):
        try:
            choose(to_train(config))
        except ConfigError:
            return replace(config, mesh="", recompute="nothing")
    return config


def _train(
    config: TrainConfig,
    text: Text,
    place: HeldRun,
    start: checkpoint.Checkpoint | None,
    promise: Promise | None = None,
) -> int:
    """Train to the end or to the first signal; save, and say how to go on."""
    run = place.run
    try:
        record = identity(text, run)
        if start and "sha256" in start.state["text"]:
            require_same_text(start, record)
        corpus = corpus_of(text, start.tokenizer if start else BYTES)
        train, val = corpus.split(config.data.val_fraction, config.model.seq_len)
        trainer = Trainer(config, train, val, start, {"text": record})
        _say_what_begins(trainer, text, corpus, run)
        chosen = trainer.choice
        trainer.prepare()  # before a signal waits for the end of a step, and before time is taken
        if trainer.choice is not chosen:
            say(_runtime(trainer))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("before training began: give the same command again") from None
    begun, progress = time.monotonic(), None
    with StopRequest() as stop, Display(trainer.step, config.steps) as display, _saving(trainer, place):
        for progress in training(trainer, run):
            place.require_in_place()
            metrics.append(run, progress)
            display.show(progress)
            place.require_in_place()  # the step is saved next
            if isinstance(text.content, TextFile):
                text.content.require_in_place()
            if stop.signal:
                trainer.save(run)
                break
    if trainer.step < config.steps:
        again = shlex.join(["byhand", "train", "--resume", str(run)])
        print(f"stopped at step {trainer.step} of {config.steps}, saved. Go on with: {shown(again)}")
        return stop.exit_code
    if progress and progress.val_loss is not None:
        if promise:
            print(promise.outcome(progress.val_loss))
        loss = f"{progress.val_loss:.4f} nats per {corpus.unit}"
        if corpus.unit != "byte":
            loss += f" = {bits_per_byte(progress.val_loss, progress.bytes_per_token):.4f} bits per byte"
        print(f"done in {duration(time.monotonic() - begun)}: validation loss {loss}")
    again = shlex.join(["byhand", "sample", str(run), "--prompt", "The "])
    print(f"saved {shown(run, 200)}. Try: {shown(again)}")
    return 0


def _say_what_begins(trainer: Trainer, text: Text, corpus: Corpus, run: Path) -> None:
    config, size = trainer.config, f"{len(text.content):,} bytes"
    if corpus.unit != "byte":
        size += f", {len(corpus):,} {corpus.unit}s"
    count = sum(p.data.size for p in trainer.model.parameters().values())
    m = config.model
    say(
        f"{shown(run, 200)}: {count:,} parameters ({counted(m.n_layers, 'layer')}, {counted(m.n_heads, 'head')}, "
        f"width {m.d_model}, context {m.seq_len}, {config.dtype}) on {shown(text.name, 200)} ({size}), "
        f"steps {trainer.step + 1} to {config.steps} of {config.tokens_per_step} tokens\n{_runtime(trainer)}"
    )
    if trainer.change:
        say(trainer.change)


def _runtime(trainer: Trainer) -> str:
    """Return a line with the runtime, and how it computes or why no faster one does."""
    choice = trainer.choice
    return f"runtime {choice.runtime.name}: {choice.why or trainer.session.description}"


@contextmanager
def _saving(trainer: Trainer, place: HeldRun) -> Iterator[None]:
    """Save the last step before a changed text ends the run: no byte of the changed text was used."""
    begun = trainer.step
    try:
        yield
    except DataError as error:
        if trainer.step == begun:
            raise
        place.require_in_place()
        trainer.save(place.run)
        raise DataError(f"{error} Saved at step {trainer.step}.") from None


def _free_folder(parent: Path) -> Path:
    """Make and return parent/001, or the number after the largest one there."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            numbers = [int(p.name) for p in parent.iterdir() if re.fullmatch("[0-9]+", p.name)]
            run = parent / f"{max(numbers, default=0) + 1:03d}"
            with suppress(FileExistsError):  # another process was faster
                run.mkdir()
                return run
    except OSError as error:
        raise CheckpointError(f"cannot use {error.filename}: {reason(error)}. Choose a folder with --out.") from None
