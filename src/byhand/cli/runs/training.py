"""The training of an opened run: to its end or to the first signal, then a save and how to go on."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from byhand.cli.arguments.settings import flag
from byhand.cli.runs.opening import Opened
from byhand.cli.runs.run_text import identity, spot_check
from byhand.cli.terminal.interrupts import StopRequest, at_the_end
from byhand.cli.terminal.progress import Display
from byhand.cli.terminal.say import say, show
from byhand.cli.terminal.shown import shown
from byhand.config import TrainConfig, to_dict
from byhand.corpus.dataset import Corpus, bits_per_byte
from byhand.corpus.encoding import corpus_of
from byhand.corpus.text_file import TextFile
from byhand.corpus.texts import Text
from byhand.errors import DataError
from byhand.quantities import counted, duration
from byhand.runs import metrics
from byhand.runs.lock import HeldRun
from byhand.runtimes.process_group import ProcessGroup
from byhand.train import Trainer, training
from byhand.training_checks import require_same_text


def train_run(opened: Opened, group: ProcessGroup) -> int:
    """Train to the end or to the first signal; save, and say how to go on. Return the exit code."""
    run, config, start, place = opened.run, opened.config, opened.start, opened.place
    text = opened.text
    if start and not text:
        _print(group, f"{shown(run, 200)} is complete: {start.step} of {config.steps} steps.")
    if not text:
        return 0
    with at_the_end(lambda: "before training began: give the same command again"):
        trainer, corpus = _prepared(opened, text, group)
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
            show(opened.promise.outcome(progress.val_loss))
        loss = f"{progress.val_loss:.4f} nats per {corpus.unit}"
        if corpus.unit != "byte":
            loss += f" = {bits_per_byte(progress.val_loss, progress.bytes_per_token):.4f} bits per byte"
        _print(group, f"done in {duration(time.monotonic() - begun)}: validation loss {loss}")
    again = shlex.join(["byhand", "sample", str(run), "--prompt", "The "])
    _print(group, f"saved {shown(run, 200)}. Try: {shown(again)}")
    return 0


def _prepared(opened: Opened, text: Text, group: ProcessGroup) -> tuple[Trainer, Corpus]:
    """Return the trainer, ready to compute, and its corpus; describe the run on standard error."""
    config, start = opened.config, opened.start
    if group.count > 1:
        group.agree({**_flags(config), "texts": spot_check(text)})
    record = json.loads(group.first(lambda: json.dumps(identity(text, opened.run))))
    if start and "sha256" in start.state["text"]:
        require_same_text(start, record)
    corpus = corpus_of(text, start.tokenizer if start else opened.tokenizer)
    train, val = corpus.split(config.data.val_fraction, config.model.seq_len)
    trainer = Trainer(config, train, val, start, {"text": record}, group)
    if opened.place:
        _say_what_begins(trainer, text, corpus, opened.run)
    chosen = trainer.choice
    trainer.prepare()  # before a signal waits for the end of a step, and before time is taken
    if trainer.choice is not chosen:
        say(_runtime(trainer))
    return trainer, corpus


def _flags(config: TrainConfig) -> dict[str, str]:
    """Return the settings by flag, without --data: each host may name the same text by another path."""
    parts = to_dict(config)
    named = {k: v for part in (parts, *parts.values()) if isinstance(part, dict) for k, v in part.items()}
    return {flag(name): str(value) for name, value in named.items() if name != "data" and not isinstance(value, dict)}


def _print(group: ProcessGroup, line: str) -> None:
    """Print a line of the run, once."""
    if group.index == 0:
        show(line)


def _say_what_begins(trainer: Trainer, text: Text, corpus: Corpus, run: Path) -> None:
    config, size = trainer.config, f"{len(text.content):,} bytes"
    if corpus.unit != "byte":
        size += f", {len(corpus):,} {corpus.unit}s"
    count = sum(p.data.size for p in trainer.model.parameters().values())
    m = config.model
    say(
        f"{shown(run, 200)}: {count:,} parameters ({counted(m.n_layers, 'layer')}, {counted(m.n_heads, 'head')}, "
        f"width {m.d_model}, context {m.seq_len}, {config.dtype}) on {shown(text.name, 200)} ({size}), "
        f"steps {trainer.step + 1} to {config.steps} of {config.tokens_per_step} tokens",
        _runtime(trainer),
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
