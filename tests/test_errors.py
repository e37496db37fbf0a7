"""Reasons for people: never `None`, whatever an OSError lacks."""

import errno
import os
import re
from pathlib import Path

import pytest

import byhand
from byhand.errors import reason


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
