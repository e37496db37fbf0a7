"""The last line of defence: whatever a command raises is one line and an exit code; no stream can make it fail."""

import errno
import os
import subprocess
import sys

import pytest

from byhand.cli.main import main
from byhand.cli.measure import doctor
from byhand.errors import ByhandError
from cli.process import PATIENCE, environment


def raising(monkeypatch, error):
    def fail(arguments):
        raise error

    monkeypatch.setattr(doctor, "main", fail)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            ZeroDivisionError("division by zero"),
            70,
            "this is a defect of byhand: ZeroDivisionError: division by zero",
        ),
        (RecursionError("maximum recursion depth exceeded"), 70, "RecursionError"),
        (OverflowError("int too large\nto convert\n"), 70, "OverflowError: int too large to convert"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 70, "UnicodeDecodeError"),
        (KeyError("path"), 70, "KeyError: 'path'"),
        (AssertionError(), 70, "this is a defect of byhand: AssertionError at "),
        (MemoryError(), 2, "error: not enough memory: for these sizes."),
        (ByhandError("no \x1b[31msuch\nthing"), 2, r"error: no \x1b[31msuch thing"),
        (OSError("somebody's own words"), 2, "error: the system refused: somebody's own words."),
        (OSError(), 2, "error: the system refused: OSError."),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "cannot write the output: No space left on device."),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), 2, "cannot use a/b: Permission denied."),
        (PermissionError(errno.EACCES, "Permission denied", b"a\xff"), 2, r"cannot use a\udcff: Permission denied."),
        (OSError(errno.EBADF, None, 7), 2, f"cannot use 7: {os.strerror(errno.EBADF)}."),
        (SystemExit("a reason"), 2, "error: a reason"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_whatever_is_raised_is_one_line(monkeypatch, capsys, error, code, words):
    raising(monkeypatch, error)
    assert main(["doctor"]) == code
    said = capsys.readouterr().err
    assert words in said
    assert "None" not in said
    assert said.count("\n") == 1


def test_a_defect_names_the_line_of_ours_and_how_to_report_it(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "found", lambda: {"byhand": [1]})  # join fails inside main
    assert main(["doctor"]) == 70
    said = capsys.readouterr().err
    assert " at byhand/cli/measure/doctor.py:" in said
    assert "Please report it" in said
    assert "`byhand --debug`" in said


def test_debug_shows_the_traceback_and_keeps_the_code(monkeypatch, capsys):
    raising(monkeypatch, ZeroDivisionError("by hand"))
    assert main(["--debug", "--debug", "doctor"]) == 70
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert "ZeroDivisionError: by hand" in said


def test_a_message_of_any_length_is_a_line_of_bounded_length(monkeypatch, capsys):
    raising(monkeypatch, ByhandError("x" * 100_000))
    assert main(["doctor"]) == 2
    assert len(capsys.readouterr().err) < 1100


@pytest.mark.parametrize("arguments", [["x" * 100_000], [""], ["\0"], ["tr\udcffain"], ["doctor\n\x1b[31m"]])
def test_commands_that_are_none(arguments, refusal):
    said = refusal(*arguments)
    assert said.startswith("error: there is no command ")
    assert len(said) < 400


needs_shell = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
COMMANDS = ["--help", "worksheet", "nothing"]


def shell(command, **extra):
    done = subprocess.run(
        ["sh", "-c", command.replace("byhand", f"{sys.executable} -m byhand")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(**extra),
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stderr.decode()


@needs_shell
@needs_full
@pytest.mark.parametrize(("command", "unbuffered"), [*((command, "") for command in COMMANDS), ("worksheet", "1")])
def test_output_to_a_full_disk(command, unbuffered):
    code, said = shell(f"byhand {command} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert code == 2
    assert said.startswith("error: ")
    assert said.count("\n") == 1


@needs_shell
@needs_full
@pytest.mark.parametrize(("command", "code"), [("nothing", 2), ("where xyzzyplugh", 1), ("worksheet", 0)])
def test_complaints_to_a_full_disk(command, code):
    assert shell(f"byhand {command} 2>/dev/full") == (code, "")


@needs_shell
@pytest.mark.parametrize(("command", "unbuffered"), [*((c, "") for c in COMMANDS[:-1]), ("worksheet", "1")])
def test_a_reader_that_is_gone_is_no_error(command, unbuffered):
    _, said = shell(f"byhand {command} | true", PYTHONUNBUFFERED=unbuffered)
    assert said == ""


@needs_shell
@pytest.mark.parametrize(
    ("command", "code", "closed"),
    [
        *(("worksheet", 0, closed) for closed in (">&-", "2>&-", "<&-", "<&- >&- 2>&-")),
        ("--help", 0, ">&-"),
        ("nothing", 2, "2>&-"),
    ],
)
def test_closed_streams(command, code, closed):
    done, said = shell(f"byhand {command} {closed}")
    assert done == code
    assert "Traceback" not in said
    assert "Exception ignored" not in said
