"""A run that trains in front of someone: one update at a time, back again, and why a weight moved.

It is the run that `byhand train` makes, with its folder, its metrics and its checkpoints; only the moment of the next
update is the viewer's.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from byhand.engine.terms import Index
from byhand.errors import DataError
from byhand.exploring.view import Subject, View
from byhand.files.run_folder import name_of
from byhand.generation.text import generate
from byhand.model import TinyGPT
from byhand.runs import metrics
from byhand.runs.contents import Checkpoint
from byhand.runs.run import Pace, Run
from byhand.runtimes.sampling import Sampling
from byhand.tracing.answers import finite
from byhand.tracing.passes import resolved

MOST_BACK, BACK_BYTES = 64, 1 << 29  # updates that can be taken back, and the memory that they may take
SEEN = 2000  # updates whose progress and path are kept


class Training:
    """A run, one update at a time.

    opened   the run and its pace, held until `close`
    watched  the element whose path is kept: (step, value) of each update since
    """

    def __init__(self, opened: AbstractContextManager[tuple[Run, Pace | None]]) -> None:
        self._held = ExitStack()
        try:
            self.run, self._pace = self._held.enter_context(opened)
            if not self.run.text:
                raise DataError(f"{self.run.folder} is complete. Give it more steps, or begin another run.")
            self.trainer = self.run.trainer()
            self.trainer.prepare()
        except BaseException:
            self._held.close()
            raise
        self._begin = lambda: self.run.train(self.trainer, pace=self._pace)
        self._updates, self._since = self._begin(), time.monotonic()
        self.seen: list[dict[str, Any]] = []
        self.watched: tuple[str, Index] | None = None
        self.path: list[tuple[int, float]] = []
        self._gone_back = self._ended = False
        self._step = self.trainer.step  # that is shown: another thread may read it during an update
        size = 3 * sum(tensor.data.nbytes for tensor in self.trainer.model.parameters().values())
        self._before: deque[Checkpoint] = deque(maxlen=max(1, min(MOST_BACK, BACK_BYTES // size)))

    @property
    def complete(self) -> bool:
        """Whether the last update is made."""
        return self.trainer.step >= self.trainer.config.steps

    def state(self) -> dict[str, Any]:
        """Return what a page shows of the run, without its updates."""
        config, target = self.trainer.config, self.watched
        return {
            "folder": str(self.run.folder),
            "step": self._step,
            "steps": config.steps,
            "back": len(self._before),
            "unit": self.trainer.tokenizer.unit,
            "complete": self._step >= config.steps,
            "watched": {"name": target[0], "index": list(target[1])} if target else None,
            "path": finite([list(pair) for pair in self.path]),
        }

    def forward(self) -> dict[str, Any] | None:
        """Make one update and return its progress; None after the last one."""
        before = _copy(self.trainer.checkpoint())
        if self._pace:
            self._pace.pause(time.monotonic() - self._since)
        try:
            if self._gone_back:  # its line is written anew
                metrics.keep_until(self.run.folder, before.step)
                self._gone_back = False
            progress = next(self._updates, None)
        except BaseException:  # such as no space for its line: it is made again when somebody goes on
            self.trainer.go_back(before)
            self._updates, self._gone_back = self._begin(), True
            raise
        finally:
            self._since = time.monotonic()
        if progress is None:
            return None
        self._before.append(before)
        self.seen = [*self.seen[1 - SEEN :], finite(asdict(progress))]
        self._note()
        if self.complete:  # the loop saves, and leaves
            self._ended = True
            next(self._updates, None)
        self._step = self.trainer.step
        return self.seen[-1]

    def back(self) -> None:
        """Take the last update back: weights and moments are as before it."""
        if not self._before:
            raise DataError("there is no update left that can be taken back.")
        before = self._before.pop()
        self.trainer.go_back(before)
        self._gone_back = True
        if self._ended:  # the loop saved the last update, and left
            self._updates, self._ended = self._begin(), False
        self.seen = [progress for progress in self.seen if progress["step"] <= before.step]
        self.path = [(step, value) for step, value in self.path if step <= before.step]
        self._step = before.step

    def watch(self, name: str, index: Index) -> None:
        """Keep the path of one element of a parameter, from the updates that can be taken back on."""
        parameters = self.trainer.model.parameters()
        if name not in parameters:
            raise DataError(f"{name!r} is not a parameter. Watch one of the model's, such as wte[0,0].")
        place = resolved(name, index, tuple(parameters[name].shape))
        self.watched = name, place
        self.path = [(kept.step, float(kept.parameters[name][place])) for kept in self._before]
        self._note()

    def sample(self, prompt: str, count: int) -> str:
        """Return a text as the model continues it now."""
        subject = self.subject()
        tokens = subject.encode(prompt.encode()) or [0]
        drawn = generate(subject.model, tokens, count, Sampling(temperature=0.8, seed=1), runtime="numpy")
        return self.trainer.tokenizer.decode([*tokens, *drawn]).decode(errors="replace")

    def subject(self) -> Subject:
        """Return the model as it is now."""
        return self._subject(_copy(self.trainer.checkpoint()))

    def why(self) -> View:
        """Return the pass over the last update's batch, with the model and the optimizer as they were before it."""
        if not self._before:
            raise DataError("there is no update yet. Make one.")
        before = self._before[-1]
        pairs = zip(*self.trainer.batches(before.step), strict=True)
        tokens, targets = (np.concatenate(each).tolist() for each in pairs)
        clip = self.trainer.config.optim.grad_clip
        return View(
            self._subject(before),
            tokens[0],
            targets[0],
            batch=(tokens, targets),
            optimizer=before.optimizer(),
            clip=clip,
        )

    def save(self) -> None:
        """Save the run at this step, if it is not saved."""
        folder = self.run.folder
        if self.seen and not (folder / name_of(self.trainer.step)).is_dir():
            if self.run.place:
                self.run.place.require_in_place()
            self.trainer.save(folder)

    def close(self) -> None:
        """Save the run, and let go of its folder."""
        try:
            self.save()
        finally:
            self._updates.close()
            self._held.close()

    def _note(self) -> None:
        if self.watched:
            name, place = self.watched
            value = float(np.asarray(self.trainer.model.parameters()[name].data)[place])
            self.path = [*self.path[1 - SEEN :], (self.trainer.step, value)]

    def _subject(self, kept: Checkpoint) -> Subject:
        tokenizer, arrays = kept.tokenizer, kept.averages or kept.parameters
        model = TinyGPT(kept.config.model, arrays=arrays)
        return Subject(
            self.run.folder.name, kept.step, model, tokenizer.encode, tokenizer.token_bytes, tokenizer.unit
        )


def _copy(kept: Checkpoint) -> Checkpoint:
    """Return a checkpoint whose arrays nobody writes."""

    def copied(arrays: Any) -> dict[str, Any]:
        return {name: np.array(array) for name, array in arrays.items()}

    moments = {kind: copied(arrays) for kind, arrays in kept.moments.items()}
    return replace(kept, parameters=copied(kept.parameters), moments=moments, averages=copied(kept.averages))
