"""A user's own folder given as --out: whatever is in it, training changes nothing that was there before."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
from pathlib import Path

from byhand.cli.main import main
from cli.process import write_text

# What a run writes, what looks like it, and what people keep beside it.
NAMES = ["corpus.bin", "metrics.jsonl", "lock", "latest", "step-00000001", "step-1", "step-", "manifest.json"]
NAMES += [".writing-novel", ".writing-step-00000001", "model.safetensors", "config.json", "notes.txt", "x.part"]
FLAGS = [
    "--preset",
    "tiny",
    "--seq-len",
    "8",
    "--d-model",
    "8",
    "--n-heads",
    "2",
    "--batch-size",
    "1",
    "--steps",
    "1",
]
FLAGS += ["--steps", "1", "--eval-windows", "1", "--warmup-steps", "0", "--runtime", "numpy"]


def attack(seed: int, folder: Path) -> None:
    """Train into a folder of random content."""
    rng = random.Random(seed)
    text, mine, outside = write_text(folder / "text.txt", 800), folder / "mine", folder / "outside"
    mine.mkdir()
    outside.mkdir()
    (outside / "novel").write_bytes(b"the only copy")
    for name in rng.sample(NAMES, rng.randint(0, 4)):
        _put(mine / name, outside, rng)
    before = _contents(folder)
    data = rng.choice([str(text), "-"])
    code, said = _train(["train", *FLAGS, "--data", data, "--out", str(mine)], text.read_bytes())
    after = _contents(folder)
    assert code in (0, 2), f"exit code {code}\n{said}"
    assert "Traceback" not in said, f"a traceback\n{said}"
    assert sum(line.startswith("error: ") for line in said.splitlines()) == (code == 2), f"no error line\n{said}"
    for path, content in before.items():
        assert after.get(path) == content, f"{path} has changed\n{content!r}\n{after.get(path)!r}\n{code}: {said}"
    if code:
        assert before == after, f"refused, but something was left\n{sorted(after.keys() - before.keys())}"


def _put(path: Path, outside: Path, rng: random.Random) -> None:
    """Make a file, a link, or a folder with something in it."""
    match rng.choice(["file", "empty", "link", "dangling", "folder", "empty folder", "linked folder"]):
        case "file":
            path.write_bytes(rng.choice([b"mine", b'{"step": 1}\n', b"step-00000001\n", rng.randbytes(50)]))
        case "empty":
            path.touch()
        case "link":
            path.symlink_to(outside / "novel")
        case "dangling":
            path.symlink_to(outside / "not-there")
        case "folder":
            path.mkdir()
            (path / rng.choice(NAMES)).write_bytes(b"mine")
        case "empty folder":
            path.mkdir()
        case "linked folder":
            path.symlink_to(outside)


def _contents(folder: Path) -> dict[str, bytes | str]:
    """Return what is where, without following links."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        else:
            found[name] = "a folder" if path.is_dir() else path.read_bytes()
    return found


def _train(arguments: list[str], stdin: bytes) -> tuple[int, str]:
    """Run the command in this process; return its exit code and what it said on standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    finally:
        sys.stdin = before
    return code, err.buffer.getvalue().decode()
