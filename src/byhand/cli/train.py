"""`byhand train`: train a GPT on a text, or resume a run."""

from __future__ import annotations

import hashlib
import shlex
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from byhand import checkpoint, metrics
from byhand.cli.arguments import parse
from byhand.cli.interrupt import StopRequest
from byhand.cli.minutes import Promise, given_settings, planned, require_sense
from byhand.cli.presets import preset, with_toml
from byhand.cli.progress import Display, duration
from byhand.cli.say import say
from byhand.config import TrainConfig
from byhand.data import ByteDataset
from byhand.errors import CheckpointError, ConfigError, DataError
from byhand.run_lock import locked
from byhand.runtimes import loops
from byhand.runtimes.numpy import keep_pages
from byhand.steps import resolved
from byhand.texts import Text, file_facts, mapped, open_text
from byhand.train import Trainer, require_same_text, training

CORPUS = "corpus.bin"
LARGE = 1 << 28


@dataclass(frozen=True)
class Options:
    """Train a GPT on a text, or resume a run bit for bit where it stopped."""

    train: TrainConfig = field(default_factory=TrainConfig)
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
    """Go on with this run. Its settings stay; --data may say where its text is now."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    if "-" in arguments and sys.stdin.isatty():
        print("reading the text from standard input; end with Ctrl-D", file=sys.stderr)
    base = preset(_early(arguments, "--preset") or "nano")
    if early := _early(arguments, "--config"):
        base = with_toml(base, Path(early))
    options = parse(Options, arguments, "byhand train", Options(train=base))
    keep_pages()
    given = given_settings(arguments, _early(arguments, "--preset"), options.config)
    if options.minutes is not None:
        require_sense(options.minutes, given, options.resume is not None)
    if options.resume:
        return _resume(options, arguments)
    return _start(options, given)


def _start(options: Options, given: Collection[str]) -> int:
    config, promise = options.train, None
    text = open_text(config.data.data)
    resolved(config)  # what cannot work is refused before anything is written
    whole = ByteDataset(text.tokens, text.name)
    whole.require_vocabulary(config.model.vocab_size)
    if options.minutes is not None:
        if options.out:
            _require_no_run(options.out)
        config, promise = planned(config, given, whole, options.minutes)
    whole.split(config.data.val_fraction, config.model.seq_len)
    run = options.out or _free_folder(Path("runs"))
    with locked(run):
        _require_no_run(run)
        metrics.keep_until(run, 0)
        return _train(config, _stored(text, run), run, None, promise)


def _require_no_run(run: Path) -> None:
    if any(run.glob("step-*")):
        raise CheckpointError(f"{run} holds a run already. Use --resume {run}, or another folder with --out.")


def _resume(options: Options, arguments: list[str]) -> int:
    run = options.resume or Path()
    moved = _early(arguments, "--data")
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag.startswith("--") and flag not in ("--resume", "--data", "--runtime", "--threads", "--dtype"):
            raise ConfigError(f"{flag} cannot change a run that is resumed. Leave it out, or start a new run.")
    if not run.is_dir():
        raise CheckpointError(f"there is no run {run}. Check the path.")
    if checkpoint.is_checkpoint(run):
        whole = run.parent if run.name.startswith("step-") else run.resolve().parent
        raise CheckpointError(f"{run} is one checkpoint of a run. Use --resume {whole}.")
    if not any(run.glob("step-*")):
        raise CheckpointError(f"{run} holds no checkpoint, so there is nothing to resume. Start with --out {run}.")
    with locked(run):
        start = checkpoint.load(run)
        for warning in start.warnings:
            say(f"warning: {warning}")
        # Only these may differ from the run's beginning: a machine may lack what the other had.
        given = {
            name: getattr(options.train, name)
            for name in ("runtime", "threads", "dtype")
            if _early(arguments, f"--{name}")
        }
        kept = start.config.array_dtype
        start.config = replace(start.config, **given)
        if start.config.array_dtype != kept:
            raise ConfigError(f"{run} holds {kept} arrays. Resume without --dtype.")
        if start.step >= start.config.steps:
            print(f"{run} is complete: {start.step} of {start.config.steps} steps.")
            return 0
        known = start.state["text"]["path"]
        path = Path(moved) if moved else run / CORPUS if known == CORPUS else Path(known)
        text = mapped(path, start.config.data.data)
        metrics.keep_until(run, start.step)
        return _train(start.config, text, run, start)


def _train(
    config: TrainConfig, text: Text, run: Path, start: checkpoint.Checkpoint | None, promise: Promise | None = None
) -> int:
    """Train to the end or to the first signal; save, and say how to go on."""
    identity = _identity(text, run)
    if start:
        require_same_text(start, identity)
    train, val = ByteDataset(text.tokens, text.name).split(config.data.val_fraction, config.model.seq_len)
    trainer = Trainer(config, train, val, start, identity)
    _say_what_begins(trainer, text, run)
    begun, progress = time.monotonic(), None
    with StopRequest() as stop, Display(trainer.step, config.steps) as display:
        for progress in training(trainer, run):
            _require_unchanged(text)
            metrics.append(run, progress)
            display.show(progress)
            if stop.signal:
                trainer.save(run)
                break
    again = shlex.join(["byhand", "train", "--resume", str(run)])
    if trainer.step < config.steps:
        print(f"stopped at step {trainer.step} of {config.steps}, saved. Go on with: {again}")
        return stop.exit_code
    if progress and progress.val_loss is not None:
        if promise:
            print(promise.outcome(progress.val_loss))
        print(f"done in {duration(time.monotonic() - begun)}: validation loss {progress.val_loss:.4f} nats per byte")
    print(f"saved {run}. Try: {shlex.join(['byhand', 'sample', str(run), '--prompt', 'The '])}")
    return 0


def _say_what_begins(trainer: Trainer, text: Text, run: Path) -> None:
    config = trainer.config
    count = sum(p.data.size for p in trainer.model.parameters().values())
    m = config.model
    say(
        f"{run}: {count:,} parameters ({m.n_layers} layers, {m.n_heads} heads, width {m.d_model}, "
        f"context {m.seq_len}, {config.dtype}) on {text.name} ({len(text.tokens):,} bytes), "
        f"steps {trainer.step + 1} to {config.steps} of {config.tokens_per_step} tokens\n{_runtime(trainer)}"
    )
    if trainer.change:
        say(trainer.change)


def _runtime(trainer: Trainer) -> str:
    """Say in a line which runtime computes, and how to get the faster one where it could be had."""
    config = trainer.config
    if trainer.used["runtime"] == "loops":
        return f"runtime loops: the graph compiled, {trainer.used['threads']} threads"
    if config.dtype == "float32" and loops.missing():
        return "runtime numpy: equation by equation (pip install 'byhand[fast]' for the compiled one)"
    return "runtime numpy: equation by equation"


def _stored(text: Text, run: Path) -> Text:
    """Give a text that exists only in memory a file in the run folder, so that a resumed run reads the same bytes."""
    if text.path:
        return text
    path = run / CORPUS
    try:
        path.write_bytes(text.tokens.tobytes())
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}. Choose another folder with --out.") from None
    return mapped(path, text.name)


def _require_unchanged(text: Text) -> None:
    """Raise DataError if the file that training reads is no longer the one that it began with."""
    now = file_facts(text.path) if text.path else None
    if now and now != text.facts:
        raise DataError(f"{text.path} changed while training read it. Restore it and resume, or start a new run.")


def _identity(text: Text, run: Path) -> dict[str, Any]:
    """Return what a checkpoint remembers of its text: where it is, how long, and its hash."""
    if len(text.tokens) > LARGE:
        say(f"reading {text.name} once for its SHA-256 ({len(text.tokens) / 1e9:.1f} GB)")
    inside = text.path and text.path.parent == run.resolve()
    return {
        "path": CORPUS if inside else str(text.path),
        "bytes": len(text.tokens),
        "sha256": hashlib.sha256(text.tokens).hexdigest(),  # pyright: ignore[reportArgumentType]  (a buffer)
    }


def _free_folder(parent: Path) -> Path:
    """Return parent/001, or the number after the largest one there."""
    numbers = [int(p.name) for p in parent.glob("[0-9]*") if p.name.isdigit()]
    return parent / f"{max(numbers, default=0) + 1:03d}"


def _early(arguments: list[str], flag: str) -> str | None:
    """Return a flag's (last) value before the others are parsed, since it decides their defaults."""
    value = None
    for argument, following in zip(arguments, [*arguments[1:], None], strict=True):
        if argument == flag:
            value = following
        elif argument.startswith(f"{flag}="):
            value = argument.partition("=")[2]
    return value
