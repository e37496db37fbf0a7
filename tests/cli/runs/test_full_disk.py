"""The disk fills up at any byte that a run writes: one line names the file, nothing whole is lost, and it goes on."""

import errno
import hashlib
import os
import random
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from byhand.files import run_folder
from byhand.files.run_folder import MODEL
from byhand.runs import checkpoint, metrics
from byhand.runs.contents import OPTIMIZER
from cli.inside import byhand
from cli.process import TINY, error_line, write_text

SETTINGS = [*TINY, "--d-model", "4", "--runtime", "numpy", "--steps", "3", "--eval-interval", "0"]
SETTINGS += ["--save-interval", "1", "--keep", "2", "--data", "-", "--out", "run"]


Room = tuple[str, int, float]  # in this write of a file of this name the disk is full, after this share of the bytes
PLENTY: Room = ("", 0, 0.0)


@contextmanager
def room_for(last: Room, written: list[str]):
    """A disk that fills up in the middle of a write; `written` becomes the names of the files of all writes.

    Sizes say nothing: lines of metrics hold times, and differ from run to run.
    """
    real, full = os.write, False

    def write(descriptor: int, content: bytes) -> int:
        nonlocal full
        if descriptor > 2:
            name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.removeprefix(".writing-")
            written.append(name)
            if not full and (name, written.count(name)) == last[:2]:
                full, content = True, content[: int(last[2] * len(content))]
                if content:
                    return real(descriptor, content)
            if full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", write)
        yield


def train(folder: Path, text: bytes, arguments: list[str], last: Room = PLENTY):
    written: list[str] = []
    with room_for(last, written):
        return byhand("train", *arguments, cwd=folder, stdin=text), written


def digest(run: Path) -> str:
    last = run / "step-00000003"
    return hashlib.sha256((last / MODEL).read_bytes() + (last / OPTIMIZER).read_bytes()).hexdigest()


@pytest.mark.parametrize("every_write", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="names descriptors by /proc")
def test_a_full_disk_at_any_byte(tmp_path, every_write):
    """At the first write of each file and within the last one; in the sweep at every write and within it."""
    text = write_text(tmp_path / "text").read_bytes()
    done, written = train(tmp_path, text, SETTINGS)
    assert done.returncode == 0, done.stderr
    expected = digest(tmp_path / "run")
    files = set(written)
    assert files == {
        *("run.json", "lock", "corpus.bin", "metrics.jsonl", "latest", "manifest.json"),
        *("model.safetensors", "optimizer.safetensors", "config.json", "trainer_state.json"),
    }
    chance = random.Random(1)
    counts = [(name, written[: i + 1].count(name)) for i, name in enumerate(written)]
    rooms = [(*count, share) for count in counts for share in (0.0, chance.random())]
    if not every_write:
        last = {(name, written.count(name)) for name in files}
        rooms = [room for room in rooms if (room[1] == 1 if room[2] == 0 else room[:2] in last)]
    refused = set()
    for room in rooms:
        shutil.rmtree(tmp_path / "run")
        done, attempts = train(tmp_path, text, SETTINGS, room)
        line = error_line(done)
        culprit = attempts[-1]
        refused.add(culprit)
        assert culprit in line, (room, line)
        assert "No space left on device" in line
        run = tmp_path / "run"
        there = run_folder.checkpoints(run)
        if culprit not in ("run.json", "lock", "corpus.bin"):  # these offer another folder
            assert line.endswith(
                "Free some space and resume." if there else "Free some space and run the same command again."
            )
        assert all(not checkpoint.defect(path) for path in there)
        before = max((row["step"] for row in metrics.read(run)), default=0)
        if there:
            assert checkpoint.load(run).step >= before - 1
        again = ["--resume", "run"] if there else SETTINGS
        done = byhand("train", *again, cwd=tmp_path, stdin=text)
        assert done.returncode == 0, (room, done.stderr)
        assert digest(run) == expected
        assert [row["step"] for row in metrics.read(run)] == [1, 2, 3]
        assert not [p.name for p in run.iterdir() if p.name.startswith(".")]
    assert refused == files


def test_a_file_system_that_is_full_in_earnest(tmp_path):
    """A small one of its own, where the system lets the test make it."""
    import subprocess
    import sys

    if sys.platform != "linux" or os.geteuid():
        pytest.skip("needs the right to mount")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount")
    try:
        text = write_text(tmp_path / "text")
        settings = [*SETTINGS[: SETTINGS.index("--data")], "--data", text, "--out", "small/run"]
        line = error_line(byhand("train", *settings, cwd=tmp_path))
        assert "No space left on device" in line
        assert str(Path("small/run/")) in line
        (subprocess.run(["mount", "-o", "remount,size=10m", str(small)], check=True))
        again = ["--resume", "small/run"] if run_folder.checkpoints(small / "run") else settings
        done = byhand("train", *again, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert checkpoint.load(small / "run").step == 3
    finally:
        subprocess.run(["umount", str(small)], check=True)
