"""The command line in the process of the test: as `cli.process.byhand`, without the second that a start takes."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from byhand import TinyGPT, TrainConfig
from byhand.cli.main import main
from byhand.runs.checkpoint import save
from byhand.runs.contents import Checkpoint


def byhand(*arguments: object, cwd: Path = Path(), stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
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


def write_run(folder: Path, config: TrainConfig, text: dict[str, Any] | None = None) -> Path:
    """Save a run that stands at step 4, with initial weights and moments of zero; return its folder."""
    parameters = {n: p.data for n, p in TinyGPT(config.model, seed=3).parameters().items()}
    moments = {n: 0 * a for n, a in parameters.items()}
    save(folder, Checkpoint(config, parameters, moments, moments, {"step": 4, "text": text or {}}))
    return folder
