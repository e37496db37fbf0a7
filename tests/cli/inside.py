"""The command line within the test's own process: as `cli.process.byhand`, without the second that a start takes."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from byhand.cli.main import main


def byhand(*arguments: object, cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run `byhand` to its end in a folder."""
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (stdin, b"", b"")]
    words = [str(argument) for argument in arguments]
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd):
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        patch.setitem(os.environ, "NO_COLOR", "1")
        code = main(words)
        said = []
        for stream in streams[1:]:
            stream.flush()
            said.append(stream.buffer.getvalue())  # pyright: ignore[reportAttributeAccessIssue]
    return subprocess.CompletedProcess(words, code, *said)
