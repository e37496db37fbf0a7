"""What an attack may lead to: something that works, or one error of one line, and either of them soon."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from byhand.errors import ByhandError

SECONDS = 20.0  # of this process, whatever else the machine does: ten times what the slowest takes
LONGEST = 1300  # characters of an error


@contextlib.contextmanager
def soon(what: object) -> Iterator[None]:
    """Hold the block to its time."""
    begun = time.process_time()
    yield
    took = time.process_time() - begun
    assert took < SECONDS, f"{took:.1f} s for {brief(what)}"


def accepted(what: object, attempt: Callable[[], Any]) -> Any:
    """Return the attempt's result, or None if it raised an error for people; AssertionError for anything else."""
    with soon(what):
        try:
            return attempt()
        except ByhandError as refused:
            said = str(refused)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} for {brief(what)}") from error
    assert said, f"an empty message for {brief(what)}"
    assert "None" not in said.split(), f"{said} for {brief(what)}"
    return None


def command(program: Callable[[list[str]], int], argv: list[str], stdin: bytes = b"") -> int:
    """Run a command line inside this process; return its exit code when what it said is as it should be."""
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (stdin, b"", b"")]
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        with soon(argv):
            code = program(argv)
    except BaseException as error:
        raise AssertionError(f"{type(error).__name__}: {error} for {brief(argv)}") from error
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
    streams[2].flush()
    said = streams[2].buffer.getvalue().decode(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]
    assert code in (0, 1, 2), f"exit code {code} and {brief(said)} for {brief(argv)}"
    assert "Traceback" not in said, f"a traceback for {brief(argv)}"
    assert "not enough memory" not in said, f"{brief(said)} for {brief(argv)}"
    if code == 2:
        errors = [line for line in said.split("\n") if line.startswith("error: ")]
        assert len(errors) == 1, f"{len(errors)} errors in {brief(said)} for {brief(argv)}"
        assert len(errors[0]) <= LONGEST, f"{len(errors[0])} characters for {brief(argv)}"
        assert "None" not in errors[0].split(), f"{errors[0]} for {brief(argv)}"
    steering = {c for c in said if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"}
    assert not steering, f"{steering} in {brief(said)} for {brief(argv)}"
    return code


def brief(what: object) -> str:
    said = ascii(what)
    return said if len(said) < 600 else f"{said[:300]}...{said[-300:]}"
