"""`byhand train` as a process that is interrupted, has no disk or no reader, or whose text changes."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from byhand.files.run_folder import MODEL
from cli.process import PATIENCE, TINY, byhand, environment, error_line, weights, write_text


def start(run: Path, text: Path, *extra: str) -> subprocess.Popen[bytes]:
    """A run that would take minutes, as a process of its own."""
    long = [*TINY, "--steps", "100000", "--data", str(text), "--out", str(run), *extra]
    command = [sys.executable, "-m", "byhand", "train", *long]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_step(run: Path, step: int) -> None:
    metrics, deadline = run / "metrics.jsonl", time.monotonic() + PATIENCE
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < step:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows delivers no SIGTERM")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_finishes_the_step_saves_and_tells_how_to_resume(tmp_path, text, number):
    process = start(tmp_path / "run", text, "--save-interval", "0", "--eval-interval", "0")
    wait_for_step(tmp_path / "run", 3)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number, err
    said = re.search(r"stopped at step (\d+) of 100000, saved. Go on with: byhand train --resume (\S+)", out.decode())
    assert said, out
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["step"] == int(said[1])
    assert (tmp_path / "run" / f"step-{int(said[1]):08d}" / MODEL).exists()


ENDLESS = """
import sys, time
from byhand.__main__ import main
from byhand.runtimes.registry import register
from byhand.runtimes.tape.runtime import TapeRuntime
from byhand.runtimes.tape.session import TapeSession

class Session(TapeSession):
    def step(self, batches, max_norm):
        print("a step begins", file=sys.stderr, flush=True)
        time.sleep(10**6)

class Runtime(TapeRuntime):
    name = "endless"

    def session(self, model, optimizer, request):
        return Session(model, optimizer)

register(Runtime())
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows delivers no SIGINT to one process")
def test_the_second_signal_stops_at_once(tmp_path, text):
    """A step that takes long is not waited for; this one never ends."""
    command = ["train", *TINY, "--runtime", "endless", "--data", str(text), "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *command], env=environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stderr is not None
    for awaited in (b"a step begins", b"stopping after this step"):
        while awaited not in (line := process.stderr.readline()):
            assert line
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err == b"\ninterrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows delivers no SIGINT to one process")
def test_interrupted_and_resumed_as_processes_it_ends_with_the_same_bits(tmp_path, text):
    steps = [*TINY, "--steps", "40", "--grad-accum", "2"]
    whole = byhand("train", *steps, "--data", text, "--out", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    command = [sys.executable, "-m", "byhand", "train", *steps, "--data", str(text), "--out", "parts"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for_step(tmp_path / "parts", 5)
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    resumed = byhand("train", "--resume", "parts", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert weights(tmp_path / "parts", 40) == weights(tmp_path / "whole", 40)
    rows = (tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(r)["step"] for r in rows] == list(range(1, 41))


def test_a_run_in_use_is_refused(tmp_path, text):
    begin, resume = [*TINY, "--data", str(text), "--out", "run"], ["--resume", "run"]
    for arguments, interval in ((resume, "1"), (begin, "0")):  # a run that was begun and has no checkpoint yet
        process = start(tmp_path / "run", text, "--save-interval", interval)
        try:
            wait_for_step(tmp_path / "run", 2)
            line = error_line(byhand("train", *arguments, cwd=tmp_path))
            assert f"in use by process {process.pid}" in line
        finally:
            process.kill()
            process.communicate()
        shutil.rmtree(tmp_path / "run")


def test_a_text_that_changes_under_way_stops_the_run(tmp_path):
    text = write_text(tmp_path / "text.txt")
    process = start(tmp_path / "run", text)
    wait_for_step(tmp_path / "run", 3)
    content = text.read_bytes()
    text.write_bytes(content.swapcase())
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert b"changed while it was in use" in err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_file_system_that_takes_no_more_leaves_the_last_checkpoint_whole(tmp_path, text):
    """A real limit of the operating system: no file of the process may grow past it."""
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)\n"
        "from byhand.cli.main import main; sys.exit(main(sys.argv[2:]))"
    )
    first = byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path)
    assert first.returncode == 0
    (tmp_path / "run" / "step-00000006" / MODEL).unlink()
    size = (tmp_path / "run" / "step-00000004" / MODEL).stat().st_size
    command = [sys.executable, "-c", limited, str(size // 2), "train", "--resume", "run"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, timeout=PATIENCE, check=False
    )
    line = error_line(done)
    assert "File too large; step-00000004 is still whole" in line
    assert byhand("train", "--resume", "run", cwd=tmp_path).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_a_listener_that_goes_away_does_not_end_the_run(tmp_path, text):
    command = f"{sys.executable} -m byhand train {' '.join(TINY)} --data {text} --out run 2>&1 >/dev/null | head -1"
    subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=PATIENCE, check=True
    )
    assert (tmp_path / "run" / "step-00000006" / MODEL).exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_log_does_not_end_the_run(tmp_path, text):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "byhand", "train", *TINY, "--data", str(text), "--out", "run"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=full,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0
    assert (tmp_path / "run" / "step-00000006" / MODEL).exists()
