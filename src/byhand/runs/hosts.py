"""One run on several hosts: each has its own trainer, and all issue the same collectives in the same order.

The first host opens the run and writes its metrics and the files of a checkpoint that are not sharded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from byhand.config import TrainConfig, to_dict
from byhand.corpus.texts import on_disk
from byhand.errors import ByhandError, CheckpointError
from byhand.files import run_folder
from byhand.files.sealed import as_json, entries, manifest
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint, contents
from byhand.runs.run import Run, changed
from byhand.runs.text import identity, spot_check
from byhand.runs.trainer import Progress, Trainer, finite
from byhand.runtimes.process_group import ProcessGroup
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class SharedRun(Run):
    """A run that several hosts train."""

    group: ProcessGroup = field(kw_only=True)

    def trainer(self) -> Trainer:
        """Return this host's trainer, once all have the same settings and the same text."""
        assert self.text
        text, folder, group = self.text, self.folder, self.group
        group.agree({**_flags(self.config), "texts": spot_check(text)})
        record = json.loads(group.first(lambda: json.dumps(identity(text, folder))))
        return SharedTrainer(group, self.config, *self.parts(record), self.start, {"text": record, **self.history})


class SharedTrainer(Trainer):
    """A trainer of one of several hosts."""

    alone = False

    def __init__(self, group: ProcessGroup, config: TrainConfig, *arguments: Any) -> None:
        self.group = group
        self.shows = group.index == 0
        super().__init__(config, *arguments)

    def request(self, config: TrainConfig) -> Request:
        """Return the request, with a runtime that all hosts can use."""
        request = replace(super().request(config), hosts=self.group.count)
        return replace(request, runtime=choose(request).runtime.name)

    def prepare(self) -> None:
        """Prepare on all hosts, or fail on all."""
        self.group.together(super().prepare)

    def update(self) -> Progress:
        """Make one update, and report the progress to the other hosts."""
        if not self.prepared:
            self.prepare()
        self.group.mark(self.step, inside=True)
        progress = super().update()
        self.group.mark(self.step, inside=False)
        return progress

    def stopping(self, signal: int | None) -> int | None:
        """Return the signal that stops all hosts after this step, or None."""
        return self.group.stopping(self.step, signal)

    def save(self, run: Path) -> Path:
        """Write a checkpoint of this step, each host its parts of the arrays."""
        made = self.group.together(lambda: finite(self.checkpoint()))
        self.require_finite_losses()
        return save(run, made, self.config.keep, self.group)


def save(run: Path, made: Checkpoint, keep: int, group: ProcessGroup) -> Path:
    """Write a checkpoint as `checkpoint.save` does; each process writes its parts, the first one the rest."""
    own = group.together(lambda: contents(made, group.index, group.count))
    files: dict[str, Any] = {}
    for said in group.gather(as_json(entries(own)).decode()):
        files |= json.loads(said)
    writing = checkpoint.Writing(run, made, keep)
    if group.first(lambda: "write" if writing.begin(manifest(files)) else ""):
        try:
            group.together(lambda: writing.write(own))
            group.first(lambda: writing.finish() or "")
        except ByhandError:
            if group.index == 0:
                writing.abandon()
            raise
    return writing.final


@contextmanager
def opened(
    group: ProcessGroup,
    opening: Callable[[], AbstractContextManager[Run]],
    config: TrainConfig,
    values: Mapping[str, Any],
    tokenizer: Tokenizer = BYTES,
) -> Iterator[Run]:
    """Open a run on the first host; the others read the same files, without a lock.

    values  settings of this machine given to a resumed run
    """
    with ExitStack() as held:
        mine: list[Run] = []

        def open_it() -> str:
            run = held.enter_context(opening())
            mine.append(
                SharedRun(
                    run.folder, run.config, run.text, run.place, run.start, run.tokenizer, run.planned, group=group
                )
            )
            text = run.text
            named = (str(text.path), text.name, text.documents, text.training) if text else None
            newest = run.start.path if run.start else None
            return json.dumps([str(run.folder.resolve()), named, str(newest.resolve()) if newest else None])

        folder, named, newest = json.loads(group.first(open_it))
        if mine:
            yield mine[0]
            return
        run = Path(folder)
        if not run_folder.is_run(run):
            raise CheckpointError(f"this host does not see {run}. Use a folder that all hosts share.")
        start = checkpoint.load(Path(newest)) if newest else None
        planned = start.config.steps if start else 0
        settings = changed(start, values, run, group.count) if start else config
        if start:
            start.config = settings
        text = on_disk(Path(named[0]), *named[1:]) if named else None
        yield SharedRun(run, settings, text, None, start, tokenizer, planned, group=group)


def _flags(config: TrainConfig) -> dict[str, str]:
    """Return the settings by flag, without --data and --chat: each host may name the same text by another path."""
    parts = to_dict(config)
    named = {k: v for part in (parts, *parts.values()) if isinstance(part, dict) for k, v in part.items()}
    return {
        f"--{name.replace('_', '-')}": str(value)
        for name, value in named.items()
        if name not in ("data", "chat") and not isinstance(value, dict)
    }
