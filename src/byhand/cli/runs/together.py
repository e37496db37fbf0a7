"""Several hosts as one run: a host that fails ends the others too, each with a one-line message."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from byhand.cli.terminal.ending import OTHERS_GONE, REFUSED, end_now, must_be_at_once
from byhand.cli.terminal.interrupts import at_the_end
from byhand.cli.terminal.say import say
from byhand.cli.terminal.shown import one_line
from byhand.errors import ByhandError
from byhand.runtimes.process_group import ProcessGroup
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose


@contextmanager
def joined(hosts: str, run: str, patience: float, request: Request) -> Iterator[ProcessGroup | None]:
    """Train in the `with` block as one of the hosts that `--hosts` describes; None if it is the only one."""
    must_be_at_once("JAX's cleaning up waits for the other hosts")
    with _left(choose(request).runtime.join(hosts, run, patience, _lost)) as group:
        yield group if group.count > 1 else None


@contextmanager
def _left(group: ProcessGroup) -> Iterator[ProcessGroup]:
    """Leave a group at the end of the `with` block; after an error, with its reason."""
    if group.count == 1:
        yield group
        return
    say(f"host {group.index} of {group.count}{': host 0 shows the progress' * (group.index > 0)}")
    if group.index > 0:
        logging.getLogger("byhand").setLevel(logging.WARNING)
    try:
        with at_the_end(lambda: group.leave("interrupted.")):
            yield group
    except BaseException as error:
        if not isinstance(error, ByhandError | OSError | MemoryError):
            group.await_verdict()  # an exchange with a dead host fails before it is known which one died
        group.leave(one_line(error) or type(error).__name__)
        raise
    group.leave()


def _lost(line: str) -> NoReturn:
    """End this process: another host failed or is gone."""
    if " ended: " in line:
        end_now(REFUSED, "", f"error: {one_line(line)}")
    end_now(OTHERS_GONE, "", f"error: {one_line(line)} Go on from the last checkpoint with --resume.")
