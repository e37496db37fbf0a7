"""`dev.py` as a process, with stubs for venv and pip that stop where a test says: it works again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.process import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
fcntl = pytest.importorskip("fcntl", reason="the stubs are shell scripts")

VENV = r"""# Like venv, in steps: `python -m venv --clear FOLDER`. Stops at the step $STOP_AT.
import os, pathlib, shutil, sys, time
stub, venv = pathlib.Path(os.environ["STUB"]), pathlib.Path(sys.argv[-1])
def reach(step):
    with (stub / "steps").open("a") as steps:
        steps.write(f"{step}\n")
    if step == os.environ.get("STOP_AT"):
        (stub / "stopped").touch()
        while (stub / "stopped").exists():
            time.sleep(0.02)
shutil.rmtree(venv, ignore_errors=True)
venv.mkdir()
reach("venv: begun")
(venv / "bin").mkdir()
(venv / "lib/python3/site-packages").mkdir(parents=True)
shutil.copy(stub / "python", venv / "bin/python")
reach("venv: made")
"""

PYTHON = r"""#!/bin/sh
# The environment's Python: pip, in steps; any other program works only where each installation was finished.
packages=$(dirname "$0")/../lib/python3/site-packages
for last; do :; done
reach() {
    echo "$1" >> "$STUB/steps"
    if [ "$1" = "$STOP_AT" ]; then
        touch "$STUB/stopped"
        while [ -e "$STUB/stopped" ]; do sleep 0.02; done
    fi
}
if [ "$2" = pip ]; then
    name=$(basename "$last")
    if [ -n "$OFFLINE" ]; then
        echo 'WARNING: Retrying after a connection broke' >&2
        echo "ERROR: No matching distribution found for $name" >&2
        exit 1
    fi
    if [ "$name" = "$REFUSED" ]; then echo "ERROR: there are no wheels of it" >&2; exit 1; fi
    echo half > "$packages/$name"
    reach "half of $name"
    echo whole > "$packages/$name"
    reach "whole $name"
    exit 0
fi
for name in run.txt checkout $NEEDED; do
    [ "$(cat "$packages/$name")" = whole ] || { echo "$name is not whole"; exit 3; }
done
echo "$PWD: $*" >> "$STUB/calls"
if [ "$STOP_AT" = python ]; then
    trap 'echo "saved" >> "$STUB/calls"; exit 7' INT TERM
    touch "$STUB/stopped"
    while :; do sleep 0.02; done
fi
"""


class Checkout:
    """A folder with what dev.py needs, and stubs for what it calls."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.stub = folder / "stub"
        self.venv = self.root / ".venv"
        shutil.copytree(ROOT / "setup", self.root / "setup", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "requirements", self.root / "requirements")
        for name in ("dev.py", "pyproject.toml"):
            shutil.copy(ROOT / name, self.root)
        self.stub.mkdir()
        for name, script in (("venv.py", VENV), ("python", PYTHON)):
            (self.stub / name).write_text(script, encoding="utf-8")
            (self.stub / name).chmod(0o755)

    def begin(self, *arguments: str, cwd: Path | None = None, **settings: str) -> subprocess.Popen[str]:
        """Start dev.py in a process group of its own, as a shell does."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.stub),
            "STUB": str(self.stub),
            **settings,
        }
        return subprocess.Popen(
            [sys.executable, self.root / "dev.py", *arguments],
            cwd=cwd or self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def dev(self, *arguments: str, cwd: Path | None = None, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run dev.py to its end."""
        process = self.begin(*arguments, cwd=cwd, **settings)
        out, err = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def works(self, *arguments: str, **settings: str) -> str:
        """Run dev.py, which must succeed and leave whole packages; return its output."""
        done = self.dev(*(arguments or ("run",)), **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    def wait_for_stop(self, process: subprocess.Popen[str]) -> None:
        wait_until(lambda: (self.stub / "stopped").exists(), process)

    def wait_for_lock(self) -> None:
        """Wait until no process holds .venv.stamp: a killed installer does until the system has ended all of it."""
        deadline = time.monotonic() + PATIENCE
        with (self.root / ".venv.stamp").open("a+") as lock:
            while True:
                try:
                    return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    assert time.monotonic() < deadline
                    time.sleep(0.005)

    def go_on(self) -> None:
        (self.stub / "stopped").unlink()

    def steps(self) -> list[str]:
        return (self.stub / "steps").read_text().splitlines()

    def calls(self) -> list[str]:
        return (self.stub / "calls").read_text().splitlines()


def wait_until(happened, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


STEPS = ["venv: begun", "venv: made"]
STEPS += [f"{part} {name}" for name in ("run.txt", "checkout", "fast.txt") for part in ("half of", "whole")]


def test_the_steps_are_those_that_a_first_run_takes(checkout):
    checkout.works()
    assert checkout.steps() == STEPS
    assert "making" not in checkout.works()
    assert checkout.steps() == STEPS  # nothing is installed twice


@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("venv: begun", signal.SIGHUP),
        ("half of run.txt", signal.SIGTERM),
        ("whole fast.txt", signal.SIGINT),
    ],
)
def test_interrupted_while_it_installs_it_says_one_line_and_works_again(checkout, step, number):
    process = checkout.begin("run", STOP_AT=step)
    checkout.wait_for_stop(process)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    lines = [line for line in err.splitlines() if line and not line.startswith(("installing", "making"))]
    assert (out, lines) == ("", ["interrupted; run the same command again"])
    checkout.go_on()  # the stub is dead, so that nothing does
    checkout.wait_for_lock()
    assert "making .venv anew" in checkout.works(NEEDED="fast.txt")
    assert checkout.steps()[-len(STEPS) :] == STEPS


@pytest.mark.parametrize("step", ["venv: begun", "half of fast.txt"])
def test_killed_while_it_installs_it_works_again(checkout, step):
    """The installer outlives a SIGKILL of dev.py. The next one waits for it, and trusts nothing that it left."""
    process = checkout.begin("run", STOP_AT=step)
    checkout.wait_for_stop(process)
    process.kill()
    process.communicate(timeout=PATIENCE)
    second = checkout.begin("run", NEEDED="fast.txt")
    assert second.stderr
    assert second.stderr.readline() == "another dev.py is installing; waiting for it\n"
    checkout.go_on()
    _, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, err
    assert checkout.steps()[-len(STEPS) :] == STEPS


def test_an_environment_of_an_earlier_version_is_made_anew(checkout):
    checkout.venv.mkdir()
    (checkout.venv / "byhand-environment.stamp").touch()
    assert "making .venv anew" in checkout.works()


def test_two_at_once_install_once(checkout):
    first = checkout.begin("run", STOP_AT="half of run.txt")
    checkout.wait_for_stop(first)
    second = checkout.begin("run")
    assert second.stderr
    assert second.stderr.readline() == "another dev.py is installing; waiting for it\n"
    checkout.go_on()
    for process in (first, second):
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
    assert checkout.steps() == STEPS


def damage(checkout, tmp_path, how):
    python = checkout.venv / "bin" / "python"
    if how == "moved":
        (tmp_path / "elsewhere").mkdir()
        checkout.root = checkout.root.rename(tmp_path / "elsewhere" / "checkout")
        checkout.venv = checkout.root / ".venv"
    elif how == "another Python":
        stamp = checkout.root / ".venv.stamp"
        stamp.write_text(stamp.read_text().replace(f"{sys.version_info[0]}.", "2."))
    else:
        python.unlink()
        python.symlink_to("/nowhere/python")


@pytest.mark.parametrize("how", ["moved", "another Python", "Python is gone"])
def test_an_environment_that_does_not_fit_is_made_anew(checkout, tmp_path, how):
    checkout.works()
    damage(checkout, tmp_path, how)
    assert "making .venv anew: it is unfinished, or of another place or Python" in checkout.works(NEEDED="fast.txt")


def test_what_is_not_from_dev_is_not_deleted(checkout):
    refusal = ".venv is not from dev.py. Move it away"
    for make in (
        lambda: checkout.venv.write_text("mine"),
        lambda: checkout.venv.symlink_to("nowhere"),
        lambda: (
            (checkout.venv / "notes").mkdir(parents=True),
            (checkout.venv / "notes" / "novel").write_text("mine"),
        ),
    ):
        make()
        before = {*checkout.root.rglob("*")}
        done = checkout.dev("run")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert refusal in done.stderr
        assert before <= {*checkout.root.rglob("*")}
        new = {*checkout.root.rglob("*")} - before
        assert not [p for p in new if p.name != ".venv.stamp" and "__pycache__" not in p.parts]
        if checkout.venv.is_dir():
            shutil.rmtree(checkout.venv)
        else:
            checkout.venv.unlink()


def test_without_network_it_is_one_line_and_what_worked_still_does(checkout):
    checkout.works()
    done = checkout.dev("test", OFFLINE="1")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    why = "No matching distribution found for test.txt. Check the network"
    assert done.stderr.splitlines()[-1].startswith(
        f"error: cannot install pytest and Hypothesis for `dev.py test`: {why}"
    )
    assert done.stderr.splitlines()[:-1] == [
        "installing JAX for `dev.py test` into .venv, once",
        "going on without JAX: No matching distribution found for xla.txt",
        "installing pytest and Hypothesis for `dev.py test` into .venv, once",
    ]
    assert "making" not in checkout.works()
    assert "making" not in checkout.works("test", NEEDED="test.txt")


def test_the_first_time_without_network_is_one_line(checkout):
    done = checkout.dev("run", OFFLINE="1")
    assert done.returncode == 2
    assert (
        "cannot install byhand and matplotlib for `dev.py run`: No matching distribution found for run.txt"
        in done.stderr
    )
    assert checkout.works(NEEDED="fast.txt")


def test_what_is_optional_is_left_out_with_a_line(checkout):
    for _ in range(2):  # each command that wants it tries again
        assert "going on without numba: there are no wheels of it\n" in checkout.works(REFUSED="fast.txt")
    assert "installing numba for `dev.py run`" in checkout.works(NEEDED="fast.txt")
    assert "numba" not in checkout.works(REFUSED="fast.txt")


def test_paths_are_taken_from_the_users_folder(checkout, tmp_path):
    here = tmp_path / "elsewhere"
    here.mkdir()
    (here / "test_mine.py").touch()
    done = checkout.dev("run", "--data", "notes.txt", "--out", "x", cwd=here)
    assert done.returncode == 0, done.stderr
    first = checkout.root / "setup" / "first_run.py"
    assert checkout.calls()[-1] == f"{here}: -P {first} --data notes.txt --out x"
    checkout.works("test", "test_mine.py::test_it", cwd=here)
    assert checkout.calls()[-1].endswith("-n 3 test_mine.py::test_it")
    checkout.works("test", "-k", "anything", cwd=here)
    assert checkout.calls()[-1].endswith(f"-k anything {checkout.root / 'tests'}")


@pytest.mark.parametrize(
    ("given", "trains", "folder"),
    [
        ([], ["--out", "{free}"], "{free}"),
        (["--preset=nano", "--out=x"], ["--out", "x", "--preset=nano", "--out=x"], "x"),
        (["--resume", "r"], ["--resume", "r"], None),
    ],
)
def test_the_first_run_trains_and_samples(monkeypatch, given, trains, folder):
    monkeypatch.syspath_prepend(str(ROOT / "setup"))
    import first_run

    said = []
    monkeypatch.setattr("byhand.cli.main.main", lambda arguments: said.append(arguments) or 0)
    monkeypatch.setattr("byhand.cli.terminal.interrupts.receive", lambda: None)
    assert first_run.first_run(given) == 0
    free = first_run.free_folder()
    assert not Path(free).exists()
    assert said[0] == ["train", *(word.format(free=free) for word in trains)]
    assert [arguments[:2] for arguments in said[1:]] == ([["sample", folder.format(free=free)]] if folder else [])


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["alone", "group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_runs_for_the_user_gets_the_signal(checkout, number, send):
    """Once, as if there were no dev.py: it saves, and its exit code is dev.py's."""
    checkout.works()
    process = checkout.begin("run", STOP_AT="python")
    checkout.wait_for_stop(process)
    send(process.pid, number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 7
    assert checkout.calls().count("saved") == 1


def test_a_tool_ends_with_dev(checkout):
    checkout.works("docs")
    process = checkout.begin("docs", STOP_AT="python")
    checkout.wait_for_stop(process)
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (128 + signal.SIGTERM, "\ninterrupted; run the same command again\n")


def test_an_installation_that_cannot_be_written_is_one_line(checkout):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    checkout.root.chmod(0o555)
    done = checkout.dev("run")
    checkout.root.chmod(0o755)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot prepare")
