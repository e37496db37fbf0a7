"""Several hosts as processes on this machine: one run, whatever happens to one of them.

`python3 dev.py test -m slow -k hosts` kills one of two at 20 random moments, lets one hang, and fills a disk.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from byhand.cli.main import main
from byhand.files.run_folder import step_of
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint
from cli.process import PATIENCE, environment

jax = pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")
jax.config.update("jax_num_cpu_devices", 8)  # before any test of this process begins with one
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="JAX joins no hosts on Windows")

TINY = ["--d-model", "16", "--n-heads", "2", "--seq-len", "8", "--batch-size", "4", "--eval-windows", "8"]
TINY += ["--steps", "8", "--eval-interval", "4", "--save-interval", "3", "--warmup-steps", "2"]
LONG = ["--steps", "100000", "--eval-interval", "0"]
LIKE_ONE_HOST = 1e-5  # of the loss
GONE = 75


class Hosts:
    """Processes that run one command together; their words go to files."""

    def __init__(
        self, folder: Path, count: int, *arguments: object, limits: dict[int, str] | None = None, **variables: object
    ) -> None:
        self.folder, self.address = folder, f"127.0.0.1:{free_port()}"
        self.variables = {name: str(value) for name, value in variables.items()}
        self.count = count
        self.processes = [self.start(i, *arguments, limit=(limits or {}).get(i, "")) for i in range(count)]

    def start(self, index: int, *arguments: object, limit: str = "") -> subprocess.Popen[bytes]:
        before = ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash"] if limit else []
        hosts = f"{self.address},{self.count},{index}"
        with self.out(index).open("wb") as out, self.err(index).open("wb") as err:
            return subprocess.Popen(
                [*before, sys.executable, "-m", "byhand", "train", "--hosts", hosts, *map(str, arguments)],
                cwd=self.folder,
                env=environment(**self.variables),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def out(self, index: int) -> Path:
        return self.folder / f"{self.address[10:]}.{index}.out"

    def err(self, index: int) -> Path:
        return self.folder / f"{self.address[10:]}.{index}.err"

    def codes(self) -> list[int]:
        """Wait for all, and return their exit codes."""
        try:
            return [process.wait(PATIENCE) for process in self.processes]
        finally:
            self.kill()

    def kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()

    def said(self) -> str:
        return "\n".join(f.read_text() for i in range(self.count) for f in (self.out(i), self.err(i)))

    def wait_for_step(self, run: Path, step: int) -> None:
        metrics = run / "metrics.jsonl"
        self.wait(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= step)

    def wait_for_checkpoint(self, run: Path, after: int) -> None:
        """Wait until a checkpoint is newer than this step: lines of metrics may be from before a kill."""
        self.wait(lambda: any((step_of(path.name) or 0) > after for path in run.glob("step-*")))

    def wait(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not happened():
            assert all(process.poll() is None for process in self.processes), self.said()
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def hosts(tmp_path) -> Iterator[object]:
    """Start hosts with `hosts(count, *arguments)`; none outlives the test."""
    started: list[Hosts] = []

    def start(*arguments: object, **more: object) -> Hosts:
        started.append(Hosts(tmp_path, *arguments, **more))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def done(hosts: Hosts) -> None:
    codes = hosts.codes()
    assert codes == [0] * hosts.count, hosts.said()


def losses(run: Path) -> list[float]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    return [row["train/loss"] for row in rows]


def last_line(path: Path) -> str:
    return path.read_text().strip().splitlines()[-1]


def same(a: Checkpoint, b: Checkpoint) -> None:
    for one, other in ((a.parameters, b.parameters), *((a.moments[k], b.moments[k]) for k in "mv")):
        assert one.keys() == other.keys()
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name], err_msg=name)


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Return a function that trains in this process, by itself."""
    monkeypatch.chdir(tmp_path)

    def train(*arguments: object) -> Path:
        assert main(["train", *map(str, arguments)]) == 0
        return tmp_path / str(arguments[-1])

    return train


FAMILY = ["--positions", "rotary", "--norm", "rms", "--activation", "swiglu", "--n-kv-heads", "1", "--n-layers", "2"]
FAMILY += ["--optimizer", "muon", "--ema", "0.9", "--grad-accum", "2"]


@pytest.mark.slow
def test_hosts_go_on_with_a_run_of_one_process_and_end_where_it_did(tmp_path, text, alone, hosts):
    """Two hosts of four devices take up a run that NumPy began, along every axis, and end with what NumPy ends with.

    Micro-batches send while they are computed: hosts that came to their sends in another order waited for ever.
    """
    whole = alone(*TINY, *FAMILY, "--keep", "9", "--runtime", "numpy", "--data", text, "--out", "whole")
    shutil.copytree(whole, tmp_path / "run")
    for later in ("step-00000006", "step-00000008"):
        shutil.rmtree(tmp_path / "run" / later)
    together = hosts(2, "--resume", "run", "--runtime", "xla", "--mesh", "data=2,fsdp=2,tensor=2")
    done(together)
    np.testing.assert_allclose(losses(tmp_path / "run"), losses(whole), rtol=LIKE_ONE_HOST)
    files = {path.name for path in (tmp_path / "run" / "step-00000008").iterdir()}
    parts = {f"{kind}-{i}-of-00002.safetensors" for kind in ("model", "optimizer") for i in ("00001", "00002")}
    assert files >= parts | {"config.json", "trainer_state.json", "manifest.json"}
    assert not files & {"model.safetensors", "optimizer.safetensors"}
    ours, theirs = checkpoint.load(tmp_path / "run"), checkpoint.load(whole)
    assert (ours.step, ours.state["used"]["hosts"]) == (8, 2)
    pairs = (
        (ours.parameters, theirs.parameters),
        (ours.moments["m"], theirs.moments["m"]),
        (ours.averages, theirs.averages),
    )
    for one, other in pairs:
        assert one.keys() == other.keys() != set()
        for name, array in other.items():
            np.testing.assert_allclose(one[name], array, rtol=0, atol=1e-5, err_msg=name)
    assert "done in" in together.out(0).read_text()
    assert together.out(1).read_text() == ""
    assert last_line(together.err(1)) == "host 1 of 2: host 0 shows the progress"


def test_a_signal_to_one_stops_all_and_they_go_on_bit_for_bit(tmp_path, text, alone, hosts):
    """The second host gets the signal; all finish a step and save. Two hosts resume and end with one process's bits.

    Another runtime, in one process, can resume too. The hosts' second start compiles nothing.
    """
    settings = [*TINY, "--steps", "40", "--mesh", "data=2", "--data", text]
    whole = alone(*settings, "--out", "whole")
    cache = tmp_path / "cache"
    first = hosts(2, *settings, "--out", "run", BYHAND_CACHE=cache)
    first.wait_for_step(tmp_path / "run", 3)
    first.processes[1].send_signal(signal.SIGTERM)
    assert first.codes() == [128 + signal.SIGTERM] * 2, first.said()
    stopped = checkpoint.load(tmp_path / "run").step
    assert f"stopped at step {stopped} of 40, saved. Go on with: byhand train --resume" in first.said()
    shutil.copytree(tmp_path / "run", tmp_path / "other")
    kept = {path: path.stat().st_mtime_ns for path in cache.glob("xla/*/host-*")}
    done(hosts(2, "--resume", "run", BYHAND_CACHE=cache))
    assert {path: path.stat().st_mtime_ns for path in cache.glob("xla/*/host-*")} == kept != {}
    assert losses(tmp_path / "run") == losses(whole)
    same(checkpoint.load(tmp_path / "run"), checkpoint.load(whole))
    alone("--runtime", "numpy", "--resume", "other")
    np.testing.assert_allclose(losses(tmp_path / "other"), losses(whole), rtol=LIKE_ONE_HOST)


@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_hosts_notice_one_that_dies(tmp_path, text, hosts, victim):
    """Half the patience after its last word, the other host ends with a line."""
    first = hosts(2, *TINY, *LONG, "--patience", "10", "--data", text, "--out", "run")
    first.wait_for_step(tmp_path / "run", 5)
    first.processes[victim].kill()
    assert first.processes[1 - victim].wait(PATIENCE) == GONE, first.said()
    line = f"error: host {victim} is gone: it was not heard for 5 s. Go on from the last checkpoint with --resume."
    assert last_line(first.err(1 - victim)) == line
    assert "Traceback" not in first.said()
    assert checkpoint.load(tmp_path / "run").step > 0


@pytest.mark.slow
def test_hosts_with_other_settings_are_refused(tmp_path, text, hosts):
    refused = hosts(0)
    refused.count = 2
    common = [*TINY, "--data", text, "--out", "run"]
    refused.processes = [refused.start(0, *common), refused.start(1, *common, "--lr", "0.1")]
    assert refused.codes() == [2, 2], refused.said()
    for i in range(2):
        line = "error: hosts 0 and 1 have different --lr: 0.003 and 0.1. Give all the same."
        assert last_line(refused.err(i)) == line, refused.said()


def test_a_host_that_fails_says_why_to_all(tmp_path, text, hosts):
    refused = hosts(2, *TINY, "--data", tmp_path / "missing", "--out", "run")
    assert refused.codes() == [2, 2]
    line = f"there is no file or folder {tmp_path / 'missing'}. Check the name, or use python-stdlib."
    assert last_line(refused.err(0)) == f"error: {line}"
    assert last_line(refused.err(1)) == f"error: host 0: {line}"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("10.0.0.1:9876", "hosts is '10.0.0.1:9876'. Write the first host's address"),
        ("10.0.0.1:9876,2,2", "--hosts says host 2 of 2, but they are numbered from 0 to 1."),
        ("", "--hosts names no host. Leave it out to train alone, or use --hosts auto."),
        ("auto", "--hosts auto finds no SLURM, Kubernetes, Open MPI or torchrun here."),
    ],
)
def test_what_describes_no_host_is_one_line(tmp_path, text, refusal, given, line):
    out = tmp_path / "run"
    assert line in refusal("train", *TINY, "--data", str(text), "--hosts", given, "--out", str(out))
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_hosts_killed_at_random_moments_lose_nothing(tmp_path, text, hosts, seed):
    """Whichever is killed and when, even twice: saves are whole, and the run ends as if uninterrupted."""
    rng = random.Random(seed)
    settings = [*TINY, "--steps", "60", "--save-interval", "1", "--data", text, "--out", "run"]
    run = tmp_path / "run"
    for _ in range(rng.randint(1, 2)):
        resume = run.exists() and any(run.glob("step-*"))
        each = hosts(2, *(["--resume", "run"] if resume else settings), "--patience", "10")
        time.sleep(rng.random() * 8)
        each.processes[rng.randrange(2)].kill()
        codes = each.codes()
        vain = any(words in each.said() for words in ("did not meet all 2 hosts", "cannot join the others"))
        waited = {2} if vain else set()  # the other one was killed before
        assert set(codes) <= {0, GONE, -signal.SIGKILL} | waited, each.said()
        assert "Traceback" not in each.said()
        for older in run.glob("step-*"):
            assert checkpoint.load(older)
    resume = run.exists() and any(run.glob("step-*"))
    done(hosts(2, *(["--resume", "run"] if resume else settings)))
    assert len(losses(run)) == 60
    assert not list(run.glob(".*"))


@pytest.mark.slow
def test_a_host_that_hangs_ends_all(tmp_path, text, hosts):
    """A stopped host neither beats nor makes steps; when it wakes, it ends too."""
    first = hosts(2, *TINY, *LONG, "--data", text, "--out", "run")
    first.wait_for_step(tmp_path / "run", 5)
    first.processes[1].send_signal(signal.SIGSTOP)
    assert first.processes[0].wait(PATIENCE) == GONE
    assert "error: host 1 is gone: it was not heard for 15 s." in last_line(first.err(0))
    first.processes[1].send_signal(signal.SIGCONT)
    assert first.processes[1].wait(PATIENCE) == GONE
    assert checkpoint.load(tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("full", [0, 1])
def test_a_host_whose_disk_is_full_stops_all_and_nothing_is_lost(tmp_path, text, hosts, full):
    run = tmp_path / "run"
    first = hosts(2, *TINY, *LONG, "--save-interval", "2", "--data", text, "--out", "run")
    first.wait_for_step(run, 5)
    first.processes[0].send_signal(signal.SIGTERM)
    assert first.codes() == [128 + signal.SIGTERM] * 2
    before = checkpoint.load(run)
    failed = hosts(2, "--resume", "run", limits={full: "-f 8"})  # in blocks of 1,024 bytes
    assert failed.codes() == [2, 2], failed.said()
    assert all("File too large" in last_line(failed.err(i)) for i in range(2)), failed.said()
    assert checkpoint.load(run).step == before.step
    assert not list(run.glob(".writing-*"))
    again = hosts(2, "--resume", "run")
    again.wait_for_checkpoint(run, before.step)
    again.processes[1].send_signal(signal.SIGTERM)
    assert again.codes() == [128 + signal.SIGTERM] * 2
    assert checkpoint.load(run).step > before.step
