"""How a run begins or goes on: its folder, its lock, its text, the checkpoint it starts from."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from byhand.budget.recipe import candidates
from byhand.cli.runs.minutes import Promise, planned
from byhand.cli.runs.run_text import stored, text_of
from byhand.config import TrainConfig
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import Text, on_disk, open_text
from byhand.errors import CheckpointError, ConfigError, reason
from byhand.files import run_folder
from byhand.memory import require_room
from byhand.runs import checkpoint, metrics
from byhand.runs.contents import Checkpoint
from byhand.runs.lock import HeldRun, locked
from byhand.runtimes.process_group import ProcessGroup
from byhand.runtimes.protocol import to_train
from byhand.runtimes.provenance import resumed
from byhand.runtimes.registry import choose
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.tokenizer import Tokenizer

OF_A_MACHINE = ("runtime", "threads", "dtype", "mesh", "recompute")  # a resumed run may change these: machines differ


@dataclass(frozen=True)
class Opened:
    """A run that can train.

    text   None if the run is complete
    place  the folder's lock, which only the first host holds
    tokenizer  of a run that begins; a checkpoint has its own
    """

    run: Path
    config: TrainConfig
    text: Text | None
    place: HeldRun | None
    start: Checkpoint | None = None
    promise: Promise | None = None
    tokenizer: Tokenizer = BYTES


@contextmanager
def begun(
    config: TrainConfig,
    out: Path | None,
    given: Collection[str],
    minutes: float | None,
    hosts: int,
    tokenizer: Tokenizer = BYTES,
    start: Checkpoint | None = None,
) -> Iterator[Opened]:
    """Begin a run in a new or empty folder, and hold it; `start` has the weights that it begins with."""
    promise = None
    if out:
        run_folder.require_free(out)  # refuse before anything is read or written
    smallest = config if minutes is None else candidates(config, given, config.model.seq_len)[0]
    require_room(smallest, replace(to_train(smallest), hosts=hosts))
    text = open_text(config.data.data)
    whole = corpus_of(text, tokenizer)
    whole.require_vocabulary(config.model.vocab_size)
    if minutes is not None:
        config, promise = planned(config, given, whole, minutes, corpus_of(text))
    whole.split(config.data.val_fraction, config.model.seq_len)
    run = out or _free_folder(Path("runs"))
    run_folder.begin(run)
    with locked(run) as place:
        run_folder.require_free(run)  # another process may have been faster
        checkpoint.require_way(run, range(run_folder.STEPS))
        text = stored(text, run)
        metrics.keep_until(run, 0)
        yield Opened(run, config, text, place, start, promise, tokenizer)


@contextmanager
def taken_up(run: Path, values: dict[str, Any], hosts: int) -> Iterator[Opened]:
    """Take up a run from its newest whole checkpoint, and hold it.

    values  the flags that were given
    """
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
        config = start.config = _changed(start.config, values, run, hosts)
        if start.step >= config.steps:
            yield Opened(run, config, None, place, start)
            return
        checkpoint.require_way(run, range(start.step + 1, run_folder.STEPS))
        require_room(config, resumed(replace(to_train(config), hosts=hosts), start.state.get("used")))
        text = on_disk(text_of(start, run, values.get("data")), config.data.data)
        metrics.keep_until(run, start.step)
        yield Opened(run, config, text, place, start)


@contextmanager
def shared(
    group: ProcessGroup,
    opening: Callable[[], AbstractContextManager[Opened]],
    config: TrainConfig,
    values: dict[str, Any],
    tokenizer: Tokenizer = BYTES,
) -> Iterator[Opened]:
    """Open a run on the first host; the others read the same files, and hold nothing."""
    with ExitStack() as held:
        mine: list[Opened] = []

        def open_it() -> str:
            opened = held.enter_context(opening())
            mine.append(opened)
            text, start = opened.text, opened.start
            named = (str(text.path), text.name) if text else None
            return json.dumps(
                [str(opened.run.resolve()), named, str(start.path.resolve()) if start and start.path else None]
            )

        folder, named, newest = json.loads(group.first(open_it))
        if mine:
            yield mine[0]
            return

        def follow() -> Opened:
            run = Path(folder)
            if not run_folder.is_run(run):
                raise CheckpointError(f"this host does not see {run}. Use a folder that all hosts share.")
            start = checkpoint.load(Path(newest)) if newest else None
            settings = _changed(start.config, values, run, group.count) if start else config
            if start:
                start.config = settings
            text = on_disk(Path(named[0]), named[1]) if named else None
            return Opened(run, settings, text, None, start, tokenizer=tokenizer)

        yield follow()


def on_this_machine(config: TrainConfig, given: dict[str, Any], hosts: int = 1) -> TrainConfig:
    """Return the settings with those given; a named runtime that cannot use the run's mesh goes on without it."""
    config = replace(config, **given)
    if "runtime" in given and not {"mesh", "recompute"} & set(given):
        try:
            choose(replace(to_train(config), hosts=hosts))
        except ConfigError:
            return replace(config, mesh="", recompute="nothing")
    return config


def _changed(config: TrainConfig, values: dict[str, Any], run: Path, hosts: int) -> TrainConfig:
    """Return a run's settings with those given for this machine."""
    changed = on_this_machine(config, {k: v for k, v in values.items() if k in OF_A_MACHINE}, hosts)
    if changed.array_dtype != config.array_dtype:
        raise ConfigError(f"{run} holds {config.array_dtype} arrays. Resume without --dtype.")
    return changed


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
