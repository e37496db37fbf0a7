"""Training from Python: `byhand train` with its flags as keyword arguments."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import Any

from byhand.api.loaded import AnyPath, Loaded, load
from byhand.api.settings import documented, named
from byhand.cli.arguments.presets import preset
from byhand.cli.runs import train as command
from byhand.cli.runs.training import prepared
from byhand.cli.runs.training import train as train_on
from byhand.cli.terminal import clock
from byhand.cli.terminal.interrupts import StopRequest
from byhand.cli.terminal.say import in_a_program
from byhand.corpus.texts import MEMORY, Texts
from byhand.errors import ConfigError

OF_A_PROCESS = {"dry_run", "hosts", "patience"}  # settings of a process that does nothing else


class Interrupt(StopRequest):
    """In the `with` block the first Ctrl-C, or a notebook's interrupt, is a request; the next one interrupts at once.

    A handler of the program's own stays, and so does the default off the main thread, which alone gets signals.
    """

    words = "stopping after this step, then saving; interrupt again to stop now"

    def __enter__(self) -> Interrupt:
        self._before = signal.getsignal(signal.SIGINT)
        if self._before is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, self._receive)
            except ValueError:  # not the main thread
                self._before = None
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._before)

    def _receive(self, number: int, frame: object) -> None:
        if not self.take(number):
            raise KeyboardInterrupt


@documented(command.Options(preset("nano")), OF_A_PROCESS)
def train(
    data: AnyPath | Iterable[AnyPath] | None = None,
    *,
    text: Texts | None = None,
    progress: bool = True,
    **settings: Any,
) -> Loaded:
    """Train a GPT, or resume a run, as `byhand train` does, and return it; a text alone takes one minute.

    data      files, folders and patterns, or a name such as python-stdlib
    text      a text in memory instead: a str (or UTF-8 as bytes), or several, each a document
    progress  print it; the numbers of every update are in `metrics` either way

    The result has the `loss`, the `folder`, the `model` and the `tokenizer`, and continues texts. Ctrl-C finishes
    the step, saves, and then raises KeyboardInterrupt; `train(resume=FOLDER)` goes on.

    Raises ConfigError, DataError or CheckpointError in one line for invalid settings, texts and folders,
    NonFiniteError if training diverges. Messages may name a setting such as min_lr by its flag, --min-lr.
    """
    clock.start()
    if text is not None:
        if data is not None or settings.get("resume") is not None:
            raise ConfigError("text is given in memory, and a text on disk too. Leave out one of them.")
        data = MEMORY
    if isinstance(data, str) and "\n" in data:
        raise ConfigError("data names files, but here it is a text of several lines. Use byhand.train(text=...).")
    given = named(command.Options, "train", {"data": data, **settings}, OF_A_PROCESS)
    with in_a_program(progress):
        with command.opened(given, text) as (run, promise):
            if run.text:
                stop, trainer = Interrupt(), prepared(run)
                train_on(run, trainer, stop, promise)
                if trainer.step < trainer.config.steps:
                    again = f"byhand.train(resume={str(run.folder)!r})"
                    raise KeyboardInterrupt(f"stopped at step {trainer.step}, saved. Go on with {again}")
        return load(run.folder)
