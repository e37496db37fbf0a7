"""`dev.py` as a process, with a stub for uv that stops where a test says: interrupted anywhere, it works again."""

from __future__ import annotations

import os
import re
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

UV = r"""#!/bin/sh
# Like uv, in steps: `venv ... FOLDER` and `pip install --python PYTHON ... WHAT`. Stops at the step $STOP_AT.
for last; do :; done
reach() {
    echo "$1" >> "$STUB/steps"
    if [ "$1" = "$STOP_AT" ]; then
        touch "$STUB/stopped"
        while [ -e "$STUB/stopped" ]; do sleep 0.02; done
    fi
}
if [ "$1" = venv ]; then
    reach "venv: begun"
    mkdir -p "$last/bin" "$last/lib/python3/site-packages"
    reach "venv: folders"
    echo "version_info = $VERSION" > "$last/pyvenv.cfg"
    cp "$STUB/python" "$last/bin/python"
    reach "venv: python"
    echo "VIRTUAL_ENV=$last" > "$last/bin/activate"
    reach "venv: made"
else
    name=$(basename "$last")
    packages=$(dirname "$4")/../lib/python3/site-packages
    if [ -n "$OFFLINE" ]; then
        printf '  × Failed to fetch: https://index.invalid/%s/\n  ╰─▶ dns error: no such host\n' "$name" >&2
        exit 1
    fi
    if [ "$name" = "$REFUSED" ]; then echo "ERROR: there are no wheels of it" >&2; exit 1; fi
    echo half > "$packages/$name"
    reach "half of $name"
    echo whole > "$packages/$name"
    reach "whole $name"
fi
"""

PYTHON = r"""#!/bin/sh
# The environment's Python: it only works where each installation was finished; says where it is and what it is given.
packages=$(dirname "$0")/../lib/python3/site-packages
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
        (self.stub / "bin").mkdir(parents=True)
        for path, script in ((self.stub / "bin" / "uv", UV), (self.stub / "python", PYTHON)):
            path.write_text(script, encoding="utf-8")
            path.chmod(0o755)

    def begin(self, *arguments: str, cwd: Path | None = None, **settings: str) -> subprocess.Popen[str]:
        """Start dev.py in a process group of its own, as a shell does."""
        environment = {
            **os.environ,
            "PATH": f"{self.stub / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "STUB": str(self.stub),
            "VERSION": f"{sys.version_info[0]}.{sys.version_info[1]}.9",
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
        """Run dev.py, which must end well and leave whole packages; return what it said."""
        done = self.dev(*(arguments or ("run",)), **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    def wait_for_stop(self, process: subprocess.Popen[str]) -> None:
        wait_until(lambda: (self.stub / "stopped").exists(), process)

    def wait_for_lock(self) -> None:
        """Wait until no process holds .venv.lock: a killed installer does until the system has ended all of it."""
        deadline = time.monotonic() + PATIENCE
        with (self.root / ".venv.lock").open("a+") as lock:
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


STEPS = ["venv: begun", "venv: folders", "venv: python", "venv: made"]
STEPS += [f"{part} {name}" for name in ("run.txt", "checkout", "fast.txt") for part in ("half of", "whole")]


def test_the_steps_are_those_that_a_first_run_takes(checkout):
    checkout.works()
    assert checkout.steps() == STEPS
    assert "making" not in checkout.works()
    assert checkout.steps() == STEPS  # nothing is installed twice


@pytest.mark.parametrize("step", STEPS)
def test_interrupted_while_it_installs_it_says_one_line_and_works_again(checkout, step):
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    for number in numbers[:1] if step != STEPS[0] else numbers:
        process = checkout.begin("run", STOP_AT=step)
        checkout.wait_for_stop(process)
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 128 + number
        lines = [line for line in err.splitlines() if line and not line.startswith(("installing", "making"))]
        assert (out, lines) == ("", ["interrupted; run the same command again"])
        checkout.go_on()  # the stub is dead, so that nothing does
        checkout.wait_for_lock()
    said = checkout.works(NEEDED="fast.txt")
    assert "waiting" not in said
    assert "an installation was interrupted" in said or step == STEPS[0]
    assert checkout.steps()[-len(STEPS) :] == STEPS


@pytest.mark.parametrize("step", STEPS)
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


def first_protected_line(checkout):
    lines = (checkout.root / "dev.py").read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if "signal.SIG_DFL" in line)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_at_moments_that_nobody_chose(checkout, number):
    """Whatever the moment, also before the first line and while a stub starts: no traceback, and it works again."""
    for attempt in range(12):
        process = checkout.begin("run")
        time.sleep(0.01 * attempt)
        if process.poll() is None:
            os.killpg(process.pid, number)
        _, err = process.communicate(timeout=PATIENCE)
        if "KeyboardInterrupt" in err:  # Python itself was not ready yet, or had come to the first lines
            assert number == signal.SIGINT
            reached = [int(line) for line in re.findall(r'checkout/dev.py", line (\d+)', err)]
            assert max(reached, default=0) <= first_protected_line(checkout), err
        else:
            assert process.returncode in (0, 128 + number, -number), err
            assert "Traceback" not in err
    checkout.works(NEEDED="fast.txt")


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
    folders = {word for call in checkout.calls() for word in call.split() if word.startswith("runs")}
    assert folders == {"runs/first", "runs/first-2"}


def test_a_moved_checkout_gets_its_own_environment(checkout, tmp_path):
    checkout.works()
    (tmp_path / "elsewhere").mkdir()
    checkout.root = checkout.root.rename(tmp_path / "elsewhere" / "checkout")
    assert "making .venv anew: it was made for another Python or in another place" in checkout.works()


def test_another_python_gets_its_own_environment(checkout):
    checkout.works()
    stamp = checkout.venv / "byhand-environment.stamp"
    assert f"{sys.version_info[0]}.{sys.version_info[1]}\n" in stamp.read_text()
    stamp.write_text(stamp.read_text().replace(f"{sys.version_info[0]}.", "2."))
    assert "making .venv anew: it was made for another Python" in checkout.works()


def test_a_python_that_is_gone_is_replaced(checkout):
    checkout.works()
    (checkout.venv / "bin" / "python").unlink()
    (checkout.venv / "bin" / "python").symlink_to("/nowhere/python")
    assert "making .venv anew: it has no Python" in checkout.works()


def test_an_environment_that_an_older_dev_left_unfinished_is_replaced(checkout):
    (checkout.venv / "bin").mkdir(parents=True)
    (checkout.venv / "pyvenv.cfg").write_text(f"version = {sys.version_info[0]}.{sys.version_info[1]}.1\n")
    (checkout.venv / "bin" / "python").symlink_to(sys.executable)
    assert "making .venv anew" in checkout.works()


def test_an_environment_that_an_older_dev_finished_is_kept(checkout):
    checkout.works()
    (checkout.venv / "byhand-environment.stamp").unlink()
    assert "making" not in checkout.works()
    assert checkout.steps() == STEPS


def test_what_is_not_from_dev_is_not_deleted(checkout):
    refusal = "is not from dev.py, and it"
    for make in (
        lambda: checkout.venv.write_text("mine"),
        lambda: checkout.venv.symlink_to("nowhere"),
        lambda: (
            (checkout.venv / "notes").mkdir(parents=True),
            (checkout.venv / "notes" / "novel").write_text("mine"),
        ),
    ):
        make()
        before = sorted(checkout.root.rglob("*"))
        done = checkout.dev("run")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert refusal in done.stderr
        after = sorted(checkout.root.rglob("*"))
        assert [p for p in after if p.name != ".venv.lock" and "__pycache__" not in p.parts] == [
            p for p in before if p.name != ".venv.lock" and "__pycache__" not in p.parts
        ]
        if checkout.venv.is_dir():
            shutil.rmtree(checkout.venv)
        else:
            checkout.venv.unlink()


def test_without_network_it_is_one_line_and_what_worked_still_does(checkout):
    checkout.works()
    done = checkout.dev("test", OFFLINE="1")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith(
        "error: cannot install what `dev.py test` needs: dns error: no such host. Check the network"
    )
    assert done.stderr.splitlines()[:-1] == [
        "installing what `dev.py xla` needs into .venv, once",
        "going on without xla: dns error: no such host",
        "installing what `dev.py test` needs into .venv, once",
    ]
    assert "making" not in checkout.works()
    assert "making" not in checkout.works("test", NEEDED="test.txt")


def test_the_first_time_without_network_is_one_line(checkout):
    done = checkout.dev("run", OFFLINE="1")
    assert done.returncode == 2
    assert "cannot install what `dev.py run` needs: dns error: no such host" in done.stderr
    assert checkout.works(NEEDED="fast.txt")


def test_what_is_optional_is_tried_again_only_after_a_network_error(checkout):
    assert "going on without fast: there are no wheels of it" in checkout.works(REFUSED="fast.txt")
    assert "fast" not in checkout.works()
    shutil.rmtree(checkout.venv)
    checkout.works("run", STOP_AT="", REFUSED="fast.txt")
    (checkout.venv / "byhand-fast.stamp").unlink()
    assert "going on without fast: dns error" in checkout.works(OFFLINE="1")
    assert "installing what `dev.py fast`" in checkout.works(NEEDED="fast.txt")


def test_paths_are_taken_from_the_users_folder(checkout, tmp_path):
    here = tmp_path / "elsewhere"
    here.mkdir()
    (here / "test_mine.py").touch()
    done = checkout.dev("run", "--data", "notes.txt", "--out", "x", cwd=here)
    assert done.returncode == 0, done.stderr
    first = checkout.root / "setup" / "first_run.py"
    assert checkout.calls()[-1].startswith(f"{here}: -P {first} ../checkout/.venv/bin/byhand x given --preset nano ")
    assert checkout.calls()[-1].endswith("--out x --data notes.txt --out x")
    checkout.works("run", cwd=here)
    assert " ../checkout/runs/first made " in checkout.calls()[-1]
    assert checkout.calls()[-1].endswith("--out ../checkout/runs/first")
    checkout.works("test", "test_mine.py::test_it", cwd=here)
    assert checkout.calls()[-1].endswith("-n 3 --dist worksteal test_mine.py::test_it")
    checkout.works("test", "-k", "anything", cwd=here)
    assert checkout.calls()[-1].endswith(f"-k anything {checkout.root / 'tests'}")


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["alone", "group"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", ["run", "docs"])
def test_what_runs_for_the_user_gets_the_signal(checkout, command, number, send):
    """It saves, and its exit code is dev.py's. What `run` starts gets a signal once, as if there were no dev.py."""
    checkout.works(command)
    process = checkout.begin(command, STOP_AT="python")
    checkout.wait_for_stop(process)
    if (command, number, send) == ("docs", signal.SIGINT, os.kill):
        send = os.killpg  # no terminal sends it to one process
    send(process.pid, number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 7
    saved = checkout.calls().count("saved")
    assert saved == 1 if command == "run" else saved >= 1


def test_an_installation_that_cannot_be_written_is_one_line(checkout):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    checkout.root.chmod(0o555)
    done = checkout.dev("run")
    checkout.root.chmod(0o755)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot prepare")
