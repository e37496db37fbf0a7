"""SIGINT, SIGTERM and SIGHUP at any moment, once, twice and thrice: a prompt end, no traceback, nothing lost.

Whatever the moment, each outcome is judged by itself: the exit code, what was said, and the checkpoints that are
there. `python3 dev.py test -m slow -k random_moments` sends 200 at random moments.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from byhand.files.run_folder import MODEL
from byhand.runs import checkpoint
from cli.process import PATIENCE, TINY, byhand, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows delivers no signals to one process")

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)
BURSTS = [[INT], [INT, INT], [INT, INT, INT], [TERM, TERM], [HUP], [HUP, HUP, HUP], [INT, TERM], [TERM, HUP, INT]]
NUMPY = ["--runtime", "numpy", "--save-interval", "3", "--eval-interval", "5", "--steps", "100000"]
LOOPS = ["--runtime", "loops", "--threads", "2", *NUMPY[2:]]
PROMPT = 10.0  # seconds of a processor after the last signal, and far less than what a first compile takes


@dataclass
class Outcome:
    """How a process ended: its exit code, what it said, and the processor's seconds since the last signal."""

    code: int
    out: str
    err: str
    seconds: float | None


class Process:
    """`byhand` as a process whose words go to files, with the stacks of its threads if it hangs."""

    def __init__(self, folder: Path, *arguments: object, **extra: str) -> None:
        self.folder = folder
        number = len(list(folder.glob("*.err")))
        self.out, self.err = folder / f"{number}.out", folder / f"{number}.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", "byhand", *map(str, arguments)],
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


@pytest.mark.parametrize("numbers", BURSTS, ids=lambda b: "-".join(signal.Signals(n).name for n in b))
def test_while_training(tmp_path, text, numbers):
    process = begin(tmp_path, text, *NUMPY)
    process.wait_for(lambda: steps(tmp_path / "run") >= 4, "the fourth step")
    outcome = process.signal(numbers)
    judge(outcome, numbers, tmp_path / "run")
    assert outcome.code != 0
    if len(numbers) == 1:
        assert outcome.code == 128 + numbers[0]
        assert whole(tmp_path / "run") == steps(tmp_path / "run")  # the step is finished and saved
    else:
        assert whole(tmp_path / "run") >= 3


@pytest.mark.parametrize("numbers", [[INT, INT], [TERM, TERM]], ids=["INT", "TERM"])
def test_while_compiled_loops_train(tmp_path, text, trained, numbers):
    """Two threads work on a step; one that is interrupted may not keep the other waiting, nor the process."""
    process = begin(tmp_path, text, *LOOPS, "--save-interval", "0")
    process.wait_for(lambda: steps(tmp_path / "run") >= 4, "the fourth step")
    judge(process.signal(numbers), numbers, tmp_path / "run")


@pytest.mark.parametrize("numbers", [[INT], [TERM, TERM], [INT, INT, INT]], ids=len)
def test_while_saving(tmp_path, text, numbers):
    """The moment: a folder that is being written is there."""
    process = begin(tmp_path, text, *NUMPY, "--save-interval", "1", "--d-model", "64")
    run = tmp_path / "run"
    process.wait_for(lambda: any(run.glob("step-*")) and any(run.glob(f"{checkpoint.TEMPORARY}*")), "a save")
    judge(process.signal(numbers, gap=0.0), numbers, run)


@pytest.mark.parametrize("numbers", [[INT, INT], [TERM, TERM, TERM]], ids=["INT", "TERM"])
def test_during_the_first_compile_the_second_stops_at_once(tmp_path, text, numbers):
    cache = tmp_path / "cache"
    process = begin(tmp_path, text, *LOOPS, XDG_CACHE_HOME=str(cache), NUMBA_CACHE_DIR="")
    process.wait_for_words("runtime loops")
    process.wait_for(lambda: any(p.is_file() for p in cache.rglob("*")), "something that is compiled")
    outcome = process.signal(numbers, gap=0.1)
    judge(outcome, numbers, tmp_path / "run")
    assert outcome.code in (128 + numbers[0], -numbers[0])  # the same to a shell
    assert steps(tmp_path / "run") == 0
    assert outcome.seconds is None or outcome.seconds < PROMPT, f"it went on for {outcome.seconds:.0f} s"


COMMANDS = {
    "sample": (["sample", "run", "--prompt", "the ", "--max-new-tokens", 10**7, "--runtime", "numpy"], "the "),
    "sample by loops": (["sample", "loops", "--prompt", "the ", "--max-new-tokens", 10**7], "the "),
    "explain": (["explain", "run", "--prompt", "the "], ""),
    "bench": (["bench", "train", "--steps", 10**6], ""),
    "minutes": (["train", "--minutes", 5, "--runtime", "numpy", "--data", "TEXT", "--out", "NEW"], "expected: done"),
    "probe": (["train", "--minutes", 5, "--runtime", "numpy", "--data", "TEXT", "--out", "NEW"], ""),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_other_commands(tmp_path, text, trained, name):
    arguments, words = COMMANDS[name]
    arguments = [str(a).replace("TEXT", str(text)).replace("NEW", str(tmp_path / "run")) for a in arguments]
    arguments = [str(trained / a) if a in ("run", "loops") else a for a in arguments]
    for numbers in ([INT], [INT, INT, INT]):
        process = Process(tmp_path, *arguments)
        if words:
            process.wait_for_words(words)
        else:
            time.sleep(0.7)  # somewhere in it; whatever the moment, the outcome is judged
        judge(process.signal(numbers), numbers, tmp_path / "run")


def test_while_it_starts(tmp_path, text):
    """From the first line of Python to the first step, in steps of a few hundredths of a second."""
    for i in range(10):
        process = Process(tmp_path, "train", *TINY, *NUMPY, "--data", text, "--out", f"run-{i}")
        time.sleep(0.05 * i)
        numbers = BURSTS[i % len(BURSTS)]
        judge(process.signal(numbers), numbers, tmp_path / f"run-{i}")


def test_interrupted_again_and_again_it_ends_with_the_same_bits(tmp_path, text):
    settings = [*TINY, "--runtime", "numpy", "--steps", "60", "--save-interval", "2", "--data", str(text)]
    assert byhand("train", *settings, "--out", "whole", cwd=tmp_path).returncode == 0
    moments, run = random.Random(5), tmp_path / "parts"
    begin_with = ["train", *settings, "--out", "parts"]
    for attempt in range(100):
        process = Process(tmp_path, *(["train", "--resume", "parts"] if any(run.glob("step-*")) else begin_with))
        before = steps(run)
        if attempt % 5 == 4 or whole(run) > 40:
            assert process.end().code == 0, process.said()
            break
        process.wait_for(lambda: steps(run) != before, "a step")  # noqa: B023 (called within the loop)
        time.sleep(moments.random() * 0.05)
        numbers = moments.choice(BURSTS)
        judge(process.signal(numbers, gap=moments.random() * 0.01), numbers, run)
    same = [(tmp_path / name / "step-00000060" / MODEL).read_bytes() for name in ("whole", "parts")]
    assert same[0] == same[1]
    assert steps(run) == 60


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
