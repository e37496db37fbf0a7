"""Reasons for people: never `None`, whatever an OSError lacks."""

import errno
import os
import re
import shlex
from pathlib import Path

import pytest

import byhand
from byhand.errors import command, reason


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOENT, "No such file", "x"), "No such file"),
        (OSError(errno.ENOENT, None), os.strerror(errno.ENOENT)),
        (OSError("somebody's own words"), "somebody's own words"),
        (OSError(), "OSError"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_reason_in_words(error, words):
    assert reason(error) == words


def test_every_message_takes_its_reason_from_there():
    """`strerror` is None for an OSError that a library made without a number."""
    for path in Path(byhand.__file__).parent.rglob("*.py"):
        assert not re.search(r"\{\w+\.strerror\}", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    ("word", "posix", "windows"),
    [
        ("runs/a-1", "runs/a-1", "runs/a-1"),
        ("my runs", '"my runs"', '"my runs"'),
        ("", '""', '""'),
        ("a'b", '"a\'b"', '"a\'b"'),
        ("C:\\runs", "'C:\\runs'", "C:\\runs"),
        ('say "no"', "'say \"no\"'", '"say \\"no\\""'),
        ("$HOME", "'$HOME'", '"$HOME"'),
        ("~", '"~"', '"~"'),
    ],
)
def test_commands_are_quoted_as_shells_read_them(word, posix, windows, monkeypatch):
    monkeypatch.setattr("byhand.errors.WINDOWS", False)
    assert command("byhand", word) == f"byhand {posix}"
    assert shlex.split(posix) == [word]
    monkeypatch.setattr("byhand.errors.WINDOWS", True)
    assert command("byhand", word) == f"byhand {windows}"
