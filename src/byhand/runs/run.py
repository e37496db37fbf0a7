"""A run, from its text to its last checkpoint: the folder that it holds, and the loop.

    begin, resume   folder → lock → text → settings: a `Run`, held until the `with` block ends
    Run.trainer     text → its identity → tokens → the two parts → model and optimizer
    training        batch → step → evaluation → line of metrics → checkpoint, to the last step or the first signal

All of it is one process; `runs/hosts.py` wraps it where several hosts train.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from byhand.config import TrainConfig
from byhand.corpus.dataset import Corpus
from byhand.corpus.text_file import TextFile
from byhand.corpus.texts import Text
from byhand.errors import CheckpointError, ConfigError, DataError, command, reason
from byhand.files import run_folder
from byhand.memory import require_memory
from byhand.runs import checkpoint, metrics
from byhand.runs.contents import Checkpoint
from byhand.runs.lock import HeldRun, locked
from byhand.runs.text import identity, open_corpus, require_same_text, stored, text_of, tokens_of
from byhand.runs.trainer import Progress, Trainer
from byhand.runs.trainer import changed as steps_changed
from byhand.runtimes.protocol import to_train
from byhand.runtimes.provenance import resumed
from byhand.runtimes.registry import choose
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.registry import stored as storable
from byhand.tokenizers.tokenizer import Tokenizer

OF_A_MACHINE = ("runtime", "threads", "dtype", "mesh", "recompute")  # a resumed run may change these: machines differ
RESUMABLE = (*OF_A_MACHINE, "steps")


class Stop(Protocol):
    """A request to stop after the step: the number of a signal, or None."""

    signal: int | None


class Pace(Protocol):
    """Decides during training how many steps a run makes."""

    def steps(self, step: int, steps: int) -> int:
        """Return the new number of steps, after `step` of `steps`."""
        ...

    def aside(self, what: str) -> AbstractContextManager[None]:
        """Time an "evaluation" or a "saving"."""
        ...

    def pause(self, seconds: float) -> None:
        """Leave out some seconds in which the run waited for somebody."""
        ...


@dataclass(frozen=True)
class Run:
    """A run that can train.

    text   None if the run is complete
    place  the folder's lock, which only the first of several hosts holds
    start  the checkpoint that it starts from
    tokenizer  of a new run; a checkpoint has its own
    planned    the number of steps before `config` changed it; 0: unchanged
    chats      the tokens of its conversations, if they are encoded already
    """

    folder: Path
    config: TrainConfig
    text: Text | None
    place: HeldRun | None
    start: Checkpoint | None = None
    tokenizer: Tokenizer = BYTES
    planned: int = 0
    chats: Corpus | None = None

    def trainer(self) -> Trainer:
        """Return the model and its data, ready to compute; CheckpointError if the text is not that of the run."""
        assert self.text
        record = identity(self.text, self.folder)
        made = Trainer(self.config, *self.parts(record), self.start, {"text": record, **self.history})
        if self.start:
            self.start.forget()  # only the trainer keeps the arrays
        return made

    @property
    def tokens(self) -> Tokenizer:
        """The tokenizer: the checkpoint's if it starts from one."""
        return self.start.tokenizer if self.start else self.tokenizer

    @property
    def history(self) -> dict[str, Any]:
        """State passed from checkpoint to checkpoint.

        The best one, the earlier numbers of steps, and the format of conversations.
        """
        chat: dict[str, Any] = {}
        if self.config.data.chat:
            from byhand.conversations.formats import Chat

            chat = {"chat": {"format": Chat(self.tokens).name}}
        if not self.start:
            return chat
        kept = chat | ({"best": self.start.state["best"]} if self.start.best else {})
        before = self.start.state.get("planned")
        listed = before if isinstance(before, list) else []
        planned = [pair for pair in listed if isinstance(pair, list) and len(pair) == 2]
        if self.planned not in (0, self.config.steps):
            planned = steps_changed(planned, self.start.step, self.planned)
        return kept | ({"planned": planned} if planned else {})

    def parts(self, record: Mapping[str, Any]) -> tuple[Corpus, Corpus]:
        """Return the training and the validation part of the text, which `record` identifies."""
        assert self.text
        if self.start and "sha256" in self.start.state["text"]:
            require_same_text(self.start, record)
        corpus = self.chats or tokens_of(self.text, self.config, self.tokens)
        return corpus.split(self.config.data.val_fraction, self.config.length)

    def train(self, trainer: Trainer, stop: Stop | None = None, pace: Pace | None = None) -> Generator[Progress]:
        """Train to the last step, or to the first signal.

        If the text changes, save the last step first: no byte of the changed text was used. Of several hosts, one
        cannot save without the others.
        """
        begun = trainer.step
        try:
            yield from training(trainer, self.folder, self.text, self.place, stop, pace)
        except DataError as error:
            if trainer.step == begun or not (self.place and trainer.alone):
                raise
            self.place.require_in_place()
            trainer.save(self.folder)
            raise DataError(f"{error} Saved at step {trainer.step}.") from None


def training(
    trainer: Trainer,
    folder: Path,
    text: Text | None = None,
    place: HeldRun | None = None,
    stop: Stop | None = None,
    pace: Pace | None = None,
) -> Iterator[Progress]:
    """Update until the last step or the first signal, and yield each `Progress`.

    A step's line of metrics is on disk before its checkpoint. A caller that leaves the loop may save once more.
    """
    config, aside = trainer.config, pace.aside if pace else nullcontext
    storable(trainer.tokenizer)  # refuses a tokenizer that could not be saved
    trainer.prepare()
    if place:  # which would be made anew where someone removed it
        place.require_in_place()
    folder.mkdir(parents=True, exist_ok=True)
    while trainer.step < trainer.config.steps:
        progress = trainer.update()
        if pace:
            trainer.end_at(pace.steps(trainer.step, trainer.config.steps))
            progress = replace(progress, steps=trainer.config.steps)
        last = trainer.step == trainer.config.steps
        if last or _due(trainer.step, config.eval_interval):
            with aside("evaluation"):
                progress = replace(progress, val_loss=trainer.evaluate())
        if place:
            place.require_in_place()
        if trainer.shows:
            metrics.append(folder, progress)
        yield progress
        if text and isinstance(text.content, TextFile):
            text.content.require_in_place()
        signal = trainer.stopping(stop.signal if stop else None)
        if signal and stop:
            stop.signal = signal  # it may have come to another host
        best = config.keep_best and trainer.notes_best(progress)
        if signal or last or best or _due(trainer.step, config.save_interval):
            if place:
                place.require_in_place()
            with aside("saving"):
                trainer.save(folder)
        if signal:
            return


def _due(step: int, interval: int) -> bool:
    return interval > 0 and step % interval == 0


@contextmanager
def begin(
    config: TrainConfig,
    out: Path | None,
    tokenizer: Tokenizer = BYTES,
    start: Checkpoint | None = None,
    opened: tuple[Text, Corpus] | None = None,
    hosts: int = 1,
) -> Iterator[Run]:
    """Begin a run in a new or empty folder, and hold it.

    start   has the initial weights
    opened  the text and its tokens, if already open
    """
    if out:
        run_folder.require_free(out)  # refuse before anything is read or written
    if not opened:
        require_memory(config, replace(to_train(config), hosts=hosts))
    text, whole = opened or open_corpus(config, tokenizer)
    whole.split(config.data.val_fraction, config.length)
    folder = out or _free_folder(Path("runs"))
    run_folder.begin(folder)
    with locked(folder) as place:
        run_folder.require_free(folder)  # another process may have been faster
        checkpoint.require_way(folder, range(run_folder.STEPS))
        metrics.require_own(folder)
        text = stored(text, folder)
        metrics.keep_until(folder, 0)
        yield Run(folder, config, text, place, start, tokenizer, chats=whole if config.data.chat else None)


@contextmanager
def resume(folder: Path, values: Mapping[str, Any], hosts: int = 1) -> Iterator[Run]:
    """Resume a run from its newest whole checkpoint, and hold it.

    values  the settings given for this machine, and `data` if the text has moved
    """
    run_folder.require_readable(folder)
    if run_folder.is_checkpoint(folder):
        above = folder.parent if run_folder.step_of(folder.name) is not None else folder.resolve().parent
        raise CheckpointError(f"{folder} is one checkpoint of a run. Use --resume {command(above)}.")
    if not run_folder.checkpoints(folder):
        raise run_folder.without_checkpoint(folder)
    if not run_folder.is_run(folder):  # write nothing into a folder that byhand did not make
        checkpoint.load(folder)
    with locked(folder) as place:
        start = checkpoint.load(folder)
        planned = start.config.steps
        config = start.config = changed(start, values, folder, hosts)
        if start.step >= config.steps:
            checkpoint.tidy(start)
            yield Run(folder, config, None, place, start)
            return
        checkpoint.require_way(folder, range(start.step + 1, run_folder.STEPS))
        require_memory(config, resumed(replace(to_train(config), hosts=hosts), start.state.get("used")))
        text = text_of(start, folder, values.get("data"))
        metrics.keep_until(folder, start.step)
        yield Run(folder, config, text, place, start, planned=planned)


def changed(start: Checkpoint, values: Mapping[str, Any], folder: Path, hosts: int) -> TrainConfig:
    """Return a run's settings with those given for this machine, and its new number of steps."""
    config = start.config
    given = {name: value for name, value in values.items() if name in RESUMABLE}
    if given.get("steps", start.step) < start.step:
        raise ConfigError(
            f"{folder} has made {start.step} steps already, so it cannot end at {given['steps']}. Use more."
        )
    found = on_this_machine(config, given, hosts)
    if found.array_dtype != config.array_dtype:
        raise ConfigError(f"{folder} holds {config.array_dtype} arrays. Resume without --dtype.")
    return found


def on_this_machine(config: TrainConfig, given: Mapping[str, Any], hosts: int = 1) -> TrainConfig:
    """Return the settings with those given; a named runtime that cannot use the run's mesh drops it."""
    config = replace(config, **given)
    if "runtime" in given and not {"mesh", "recompute"} & set(given):
        try:
            choose(replace(to_train(config), hosts=hosts))
        except ConfigError:
            return replace(config, mesh="", recompute="nothing")
    return config


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
