"""SIGINT, SIGTERM and SIGHUP while a run trains, saves and starts: a prompt end, no traceback, nothing lost.

Whatever the moment, each outcome is judged by itself: the exit code, what was said, and the checkpoints that are
there. `python3 dev.py test -m slow -k random_moments` sends 200 at random moments of every command.
`tests/cli/terminal/test_interrupts.py` has the mechanism.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from byhand.files.run_folder import MODEL
from byhand.runs import checkpoint, metrics
from cli import inside
from cli.process import PATIENCE, TINY, byhand, environment, error_line

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows delivers no signals to one process")

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)
BURSTS = [[INT], [INT, INT], [INT, INT, INT], [TERM, TERM], [HUP], [HUP, HUP, HUP], [INT, TERM], [TERM, HUP, INT]]
NUMPY = ["--runtime", "numpy", "--save-interval", "3", "--eval-interval", "5", "--steps", "100000"]
LOOPS = ["--runtime", "loops", "--threads", "2", *NUMPY[2:]]
PROMPT = 10.0  # seconds of a processor after the last signal, and far less than what a first compile takes


@dataclass
class Outcome:
    """How a process ended: exit code, output, and CPU seconds since the last signal."""

    code: int
    out: str
    err: str
    seconds: float | None


class Process:
    """`byhand` as a process whose words go to files, with the stacks of its threads if it hangs."""

    def __init__(self, folder: Path, *arguments: object, python: Sequence[str] = ("-m", "byhand"), **extra: str):
        self.folder = folder
        number = len(list(folder.glob("*.err")))
        self.out, self.err = folder / f"{number}.out", folder / f"{number}.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", *python, *map(str, arguments)],
                cwd=folder,
                env=environment(**extra),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def wait_for(self, happened, what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not happened():
            assert self.process.poll() is None, f"it ended before {what}: {self.said()}"
            assert time.monotonic() < deadline, f"waited too long for {what}"
            time.sleep(0.002)

    def wait_for_words(self, words: str) -> None:
        self.wait_for(lambda: words in self.said(), words)

    def said(self) -> str:
        return (self.out.read_bytes() + self.err.read_bytes()).decode()

    def signal(self, numbers: list[int], gap: float = 0.002) -> Outcome:
        """Send signals one after the other, and wait for the end."""
        for i, number in enumerate(numbers):
            if i:
                time.sleep(gap)
            os.kill(self.process.pid, number)  # `send_signal` would take the exit code away
        return self.end()

    def end(self) -> Outcome:
        before = processor_seconds(self.process.pid)
        deadline = time.monotonic() + PATIENCE / 2
        while (ended := os.wait4(self.process.pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.process.pid, signal.SIGABRT)
                os.wait4(self.process.pid, 0)
                self.process.returncode = -signal.SIGABRT
                pytest.fail(f"it hangs: {self.said()}")
            time.sleep(0.005)
        _, status, usage = ended
        code = self.process.returncode = os.waitstatus_to_exitcode(status)
        seconds = None if before is None else usage.ru_utime + usage.ru_stime - before
        return Outcome(code, self.out.read_text(errors="replace"), self.err.read_text(errors="replace"), seconds)


def processor_seconds(pid: int) -> float | None:
    """Return the time that a process, and what it waited for, has had of a processor, where Linux tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def judge(outcome: Outcome, numbers: list[int], *runs: Path) -> None:
    """No traceback; the exit code of a signal that was sent, or of a good end; every checkpoint whole."""
    early = python_was_not_ready(outcome.err)
    if not early:
        assert "Traceback" not in outcome.err, outcome.err
        assert "Exception ignored" not in outcome.err, outcome.err
        assert outcome.code in {0} | {128 + n for n in numbers} | {-n for n in numbers}, outcome
        errors = [line for line in outcome.err.splitlines() if line.startswith(("error", "warning"))]
        assert not errors, outcome.err
    for run in runs:
        whole(run)


def python_was_not_ready(err: str) -> bool:
    """Return whether the interpreter itself was still starting, or had only begun to import the package."""
    reached = set(re.findall(r"byhand/([\w/]+)\.py\", line", err))
    return "KeyboardInterrupt" in err and reached <= {"__init__", "__main__"}


def whole(run: Path) -> int:
    """Load every checkpoint of a run; return the newest step, 0 if there is none."""
    found = sorted(run.glob("step-*"))
    for path in found:
        assert checkpoint.load(path).model()
    if not found:
        return 0
    loaded = checkpoint.load(run)
    assert loaded.path == max(found, key=lambda path: path.name), "the newest one is whole"
    return loaded.step


@pytest.fixture(scope="module")
def trained(text, tmp_path_factory):
    """A run that is there, and compiled code for its shapes."""
    folder = tmp_path_factory.mktemp("trained")
    for name, runtime in (("run", "numpy"), ("loops", "auto")):
        done = byhand("train", *TINY, "--runtime", runtime, "--data", text, "--out", name, cwd=folder)
        assert done.returncode == 0, done.stderr
    assert byhand("sample", "loops", "--max-new-tokens", 3, cwd=folder).returncode == 0
    return folder


def steps(run: Path) -> int:
    """Return how many lines of metrics a run has written."""
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def begin(folder: Path, text: Path, *settings: str, **extra: str) -> Process:
    return Process(folder, "train", *TINY, *settings, "--data", text, "--out", "run", **extra)


@pytest.mark.parametrize("numbers", [[INT], [TERM, HUP, INT]], ids=["once", "thrice"])
def test_while_training(tmp_path, text, numbers):
    process = begin(tmp_path, text, *NUMPY)
    process.wait_for(lambda: steps(tmp_path / "run") >= 4, "the fourth step")
    outcome = process.signal(numbers)
    judge(outcome, numbers, tmp_path / "run")
    assert outcome.code != 0
    if len(numbers) > 1:
        assert whole(tmp_path / "run") >= 3
        return
    assert outcome.code == 128 + numbers[0]
    last = steps(tmp_path / "run")
    assert whole(tmp_path / "run") == last  # the step is finished and saved
    assert f"stopped at step {last} of 100000, saved. Go on with: byhand train --resume run" in outcome.out


@pytest.mark.parametrize("at", ["a save", "its start"])
def test_at_a_moment(tmp_path, text, at):
    process = begin(tmp_path, text, *NUMPY, "--save-interval", "1", "--d-model", "64")
    run = tmp_path / "run"
    if at == "a save":
        process.wait_for(lambda: any(run.glob("step-*")) and any(run.glob(".writing-step-*")), at)
    else:
        process.wait_for((run / "lock").exists, at)
    judge(process.signal([TERM, TERM], gap=0.0), [TERM], run)


def test_before_training_begins_the_command_to_repeat_is_told(tmp_path, text):
    code = (
        "import sys, time\n"
        "from byhand.runs.trainer import Trainer\n"
        "Trainer.prepare = lambda trainer: (print('ready', flush=True), time.sleep(600))\n"
        "from byhand.__main__ import main\n"
        "sys.exit(main())"
    )
    command = [*TINY, "--runtime", "numpy", "--data", str(text), "--out", "run"]
    process = Process(tmp_path, *command, python=["-c", code, "train"])
    process.wait_for_words("ready")
    outcome = process.signal([INT])
    assert (outcome.code, outcome.err.splitlines()[-1]) == (
        130,
        "interrupted before training began: run the same command again",
    )
    for command in (["info", "run"], ["sample", "run"], ["plot", "run"], ["train", "--resume", "run"]):
        said = error_line(inside.byhand(*command, cwd=tmp_path))
        assert said == "error: run has no checkpoint yet. Wait for one, or repeat its `byhand train`.", command
    again = ["train", *TINY, "--runtime", "numpy", "--data", text, "--out", "run"]
    assert inside.byhand(*again, cwd=tmp_path).returncode == 0


def test_interrupted_again_and_again_it_ends_with_the_same_bits(tmp_path, text):
    settings = [*TINY, "--runtime", "numpy", "--steps", "40", "--save-interval", "2", "--data", str(text)]
    settings += ["--grad-accum", "2"]
    assert inside.byhand("train", *settings, "--out", "whole", cwd=tmp_path).returncode == 0
    moments, run = random.Random(5), tmp_path / "parts"
    for _ in range(4):
        again = ["--resume", "parts"] if any(run.glob("step-*")) else [*settings, "--out", "parts"]
        process = Process(tmp_path, "train", *again)
        before = steps(run)
        process.wait_for(lambda: steps(run) != before, "a step")  # noqa: B023 (called within the loop)
        numbers = moments.choice(BURSTS)
        outcome = process.signal(numbers, gap=moments.random() * 0.01)
        judge(outcome, numbers, run)
        if outcome.code == 0:
            break
    if whole(run) < 40:
        assert inside.byhand("train", "--resume", "parts", cwd=tmp_path).returncode == 0
    same = [(tmp_path / name / "step-00000040" / MODEL).read_bytes() for name in ("whole", "parts")]
    assert same[0] == same[1]
    assert [row["step"] for row in metrics.read(run)] == list(range(1, 41))


COMMANDS = {
    "sample": (["sample", "run", "--prompt", "the ", "--max-new-tokens", 10**7, "--runtime", "numpy"], "the "),
    "sample by loops": (["sample", "loops", "--prompt", "the ", "--max-new-tokens", 10**7], "the "),
    "explain": (["explain", "run", "--prompt", "the "], ""),
    "bench": (["bench", "train", "--steps", 10**6], ""),
    "minutes": (["train", "--minutes", 5, "--runtime", "numpy", "--data", "TEXT", "--out", "NEW"], "expected: done"),
    "probe": (["train", "--minutes", 5, "--runtime", "numpy", "--data", "TEXT", "--out", "NEW"], ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_at_random_moments(tmp_path, text, trained, seed):
    """Cold and warm starts of both runtimes, sampling, planning, resuming: at a moment that the seed decides."""
    rng = random.Random(seed)
    kind = rng.choice(["numpy", "loops", "cold", "resume", *COMMANDS])
    numbers = [rng.choice([INT, TERM, HUP]) for _ in range(rng.randint(1, 3))]
    extra, run = {}, tmp_path / "run"
    if kind in COMMANDS:
        arguments = [str(a).replace("TEXT", str(text)).replace("NEW", str(run)) for a in COMMANDS[kind][0]]
        arguments = [str(trained / a) if a in ("run", "loops") else a for a in arguments]
    else:
        runtime = NUMPY if kind == "numpy" or (kind == "resume" and rng.random() < 0.5) else LOOPS
        arguments = ["train", *TINY, *runtime, "--data", text, "--out", "run"]
    if kind == "cold":
        extra = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": ""}
    if kind == "resume":
        first = Process(tmp_path, *arguments)
        first.wait_for(lambda: any(run.glob("step-*")), "a checkpoint")
        judge(first.signal([TERM]), [TERM], run)
        arguments = ["train", "--resume", "run"]
    process = Process(tmp_path, *arguments, **extra)
    time.sleep(rng.random() * (6 if kind == "cold" else 2))
    outcome = process.signal(numbers, gap=rng.random() * 0.01)
    judge(outcome, numbers, run)
    if len(numbers) > 1 and outcome.seconds is not None:
        assert outcome.seconds < PROMPT
