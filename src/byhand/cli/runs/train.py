"""`byhand train`: train a GPT on a text, or resume a run."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from byhand.cli.arguments.idle import require_effect
from byhand.cli.arguments.parsing import Given, read
from byhand.cli.arguments.presets import PUBLISHED, Settings, preset, with_toml
from byhand.cli.runs.minutes import require_sense
from byhand.cli.runs.opening import OF_A_MACHINE, Opened, begun, shared, taken_up
from byhand.cli.runs.run_text import identity, spot_check
from byhand.cli.runs.together import joined
from byhand.cli.runs.tuning import tuned
from byhand.cli.terminal.interrupt import StopRequest
from byhand.cli.terminal.progress import Display
from byhand.cli.terminal.say import say
from byhand.cli.terminal.shown import shown
from byhand.config import ModelConfig, OptimConfig, TrainConfig, to_dict
from byhand.corpus.dataset import Corpus, bits_per_byte
from byhand.corpus.encoding import corpus_of
from byhand.corpus.text_file import TextFile
from byhand.corpus.texts import Text
from byhand.errors import ConfigError, DataError
from byhand.quantities import counted, duration
from byhand.runs import metrics
from byhand.runs.lock import HeldRun
from byhand.runs.stored import Checkpoint
from byhand.runtimes.hosts import PATIENCE, ProcessGroup
from byhand.runtimes.protocol import to_train
from byhand.runtimes.tape.session import keep_pages
from byhand.tokenizers import forms
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.tokenizer import Tokenizer
from byhand.train import Trainer, training
from byhand.training_checks import require_same_text

SIZES = {
    "seq_len",
    "d_model",
    "n_layers",
    "n_heads",
    "n_kv_heads",
    "d_head",
    "d_ff",
    "batch_size",
    "lr",
    "warmup_steps",
}
OF_A_LENGTH = {"steps", "eval_interval", "save_interval"}  # a preset's fit its own number of steps


@dataclass(frozen=True)
class Options:
    """Train a GPT on a text, or resume a run bit for bit where it stopped."""

    train: Settings = field(default_factory=lambda: preset("nano"))
    preset: str = "nano"
    """tiny, nano, small, seed, gpt2, llama, qwen3, or modern: settings that --config and flags override. With
    --minutes those of published models keep their architecture, and the size fits the time."""
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
    init_from: Path | None = None
    """Begin a new run with this run's model and tokenizer, to tune it on --data; --lr is 0.0001 unless given."""
    hosts: str = ""
    """Train with other hosts, each of which runs this command: the first one's address, their number and this one's,
    as in 10.0.0.1:9876,4,0; auto takes them from SLURM, Kubernetes, Open MPI or torchrun."""
    patience: float = PATIENCE
    """Seconds after which hosts give up one that does not go on with a step; one that died is noticed in 15."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand train")
    values = given.values
    config, decided = preset(values.get("preset", "nano")), set(values)
    if "config" in values:
        config, in_file = with_toml(config, values["config"])
        decided |= in_file
    chosen = decided
    if "preset" in values:
        open_ = OF_A_LENGTH | (SIZES if values["preset"] in PUBLISHED else set())
        settings = {f.name for cls in (ModelConfig, OptimConfig, TrainConfig) for f in fields(cls)}
        decided = decided | settings - open_
    options = given.over(Options(train=config))
    if not options.resume and not options.init_from:
        require_effect(options.train, given.written)
    for name in ("out", "resume", "init_from"):
        if name in values and given.written[name][1] == [""]:  # as a path it would be the current folder
            flag = name.replace("_", "-")
            raise ConfigError(f"--{flag} names no folder. Use a path, as in --{flag} runs/mine.")
    if options.train.data.data == "-" and not options.resume and sys.stdin.isatty():
        print("reading the text from standard input; end with Ctrl-D", file=sys.stderr)
    keep_pages()
    if options.minutes is not None:
        require_sense(options.minutes, decided, options.resume is not None)
    if "hosts" in values and not options.hosts:  # a variable that is not set would train alone
        raise ConfigError("--hosts names no host. Leave it out to train alone, or use --hosts auto.")
    if options.minutes is not None and options.hosts:
        raise ConfigError("--minutes probes one machine, not several hosts. Choose the number of --steps.")
    if options.init_from and (options.minutes is not None or options.hosts):
        raise ConfigError("--init-from trains on one host, for a number of --steps. Leave out --minutes and --hosts.")
    if options.init_from and values.get("preset") in PUBLISHED:
        raise ConfigError(
            f"--preset {values['preset']} names a model, and --init-from another. Leave one of them out."
        )
    runtime = values.get("runtime", "auto") if options.resume else options.train.runtime
    request = replace(to_train(options.train), runtime=runtime, hosts=2 if options.hosts else 1)
    run = (options.resume or options.out or Path()).name
    with joined(options.hosts, run, options.patience, request) as group:
        if options.resume:
            _require_resumable(given)
        tokenizer = BYTES
        usual_lr = preset(values.get("preset", "nano")).optim.lr
        start = tuned(options.train, chosen, options.init_from, usual_lr) if options.init_from else None
        if start:
            require_effect(start.config, given.written)
            options, tokenizer = replace(options, train=start.config), start.tokenizer
        elif options.train.data.tokenizer and not options.resume:
            named = options.train.data.tokenizer
            tokenizer = BYTES if named == "bytes" else forms.read(Path(named))
            if "vocab_size" not in chosen:
                model = replace(options.train.model, vocab_size=tokenizer.vocab_size)
                options = replace(options, train=replace(options.train, model=model))
        opening = partial(_opening, options, decided, values, group.count, tokenizer, start)
        with shared(group, opening, options.train, values, tokenizer) as opened:
            return _train(opened, group)


def _opening(
    options: Options,
    decided: Collection[str],
    values: dict[str, Any],
    hosts: int,
    tokenizer: Tokenizer,
    start: Checkpoint | None,
) -> AbstractContextManager[Opened]:
    """Return what begins or takes up the run."""
    if options.resume:
        return taken_up(options.resume, values, hosts)
    return begun(options.train, options.out, decided, options.minutes, hosts, tokenizer, start)


def _require_resumable(given: Given[Options]) -> None:
    """Raise ConfigError if a flag would change a run that goes on."""
    for name, (flag, _) in given.written.items():
        if name not in ("resume", "data", "hosts", "patience", *OF_A_MACHINE):
            raise ConfigError(f"{flag} cannot change a run that is resumed. Leave it out, or start a new run.")


def _train(opened: Opened, group: ProcessGroup) -> int:
    """Train to the end or to the first signal; save, and say how to go on."""
    run, config, start, place = opened.run, opened.config, opened.start, opened.place
    text = opened.text
    if start and not text:
        _print(group, f"{shown(run, 200)} is complete: {start.step} of {config.steps} steps.")
    if not text:
        return 0
    try:
        if group.count > 1:
            group.agree({**_flags(config), "texts": spot_check(text)})
        record = json.loads(group.first(lambda: json.dumps(identity(text, run))))
        if start and "sha256" in start.state["text"]:
            require_same_text(start, record)
        corpus = corpus_of(text, start.tokenizer if start else opened.tokenizer)
        train, val = corpus.split(config.data.val_fraction, config.model.seq_len)
        trainer = Trainer(config, train, val, start, {"text": record}, group)
        if place:
            _say_what_begins(trainer, text, corpus, run)
        chosen = trainer.choice
        trainer.prepare()  # before a signal waits for the end of a step, and before time is taken
        if trainer.choice is not chosen:
            say(_runtime(trainer))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("before training began: give the same command again") from None
    begun, progress, stopped_by = time.monotonic(), None, None
    display = Display(trainer.step, config.steps) if place else None
    with StopRequest() as stop, display or nullcontext(), _saving(trainer, place):
        for progress in training(trainer, run):
            if place and display:
                place.require_in_place()
                metrics.append(run, progress)
                display.show(progress)
                place.require_in_place()  # the step is saved next
            if isinstance(text.content, TextFile):
                text.content.require_in_place()
            if stopped_by := group.stopping(trainer.step, stop.signal):
                trainer.save(run)
                break
    if stopped_by and trainer.step < config.steps:
        again = shlex.join(["byhand", "train", "--resume", str(run)])
        _print(group, f"stopped at step {trainer.step} of {config.steps}, saved. Go on with: {shown(again)}")
        return 128 + stopped_by
    if progress and progress.val_loss is not None:
        if opened.promise:
            print(opened.promise.outcome(progress.val_loss))
        loss = f"{progress.val_loss:.4f} nats per {corpus.unit}"
        if corpus.unit != "byte":
            loss += f" = {bits_per_byte(progress.val_loss, progress.bytes_per_token):.4f} bits per byte"
        _print(group, f"done in {duration(time.monotonic() - begun)}: validation loss {loss}")
    again = shlex.join(["byhand", "sample", str(run), "--prompt", "The "])
    _print(group, f"saved {shown(run, 200)}. Try: {shown(again)}")
    return 0


def _flags(config: TrainConfig) -> dict[str, str]:
    """Return the settings by flag, but for --data, by which each host may name the same text otherwise."""
    parts = to_dict(config)
    named = {k: v for part in (parts, *parts.values()) if isinstance(part, dict) for k, v in part.items()}
    return {
        f"--{name.replace('_', '-')}": str(value)
        for name, value in named.items()
        if name != "data" and not isinstance(value, dict)
    }


def _print(group: ProcessGroup, line: str) -> None:
    """Print a line of the run, once."""
    if group.index == 0:
        print(line)


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
def _saving(trainer: Trainer, place: HeldRun | None) -> Iterator[None]:
    """Save the last step before a changed text ends the run: no byte of the changed text was used.

    Of several hosts, one cannot save without the others.
    """
    begun = trainer.step
    try:
        yield
    except DataError as error:
        if trainer.step == begun or trainer.group.count > 1 or not place:
            raise
        place.require_in_place()
        trainer.save(place.run)
        raise DataError(f"{error} Saved at step {trainer.step}.") from None
