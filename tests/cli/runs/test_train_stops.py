"""`byhand train` without disk, reader or log, and in a folder that another process uses."""

import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from byhand.files.run_folder import MARK, MARKER, MODEL
from byhand.runs.lock import locked
from cli.inside import byhand
from cli.process import PATIENCE, environment, error_line
from cli.process import TINY as SETTINGS

TINY = [*SETTINGS, "--runtime", "numpy"]


def test_a_run_in_use_is_refused(tmp_path, text):
    begin = [*TINY, "--data", str(text), "--out", "run"]
    assert byhand("train", *begin, cwd=tmp_path).returncode == 0
    holder = (
        "import sys; from pathlib import Path; from byhand.runs.lock import locked\n"
        "with locked(Path(sys.argv[1])):\n    print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holder, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline()
        line = error_line(byhand("train", "--resume", "run", cwd=tmp_path))
        assert f"in use by process {process.pid}" in line
    assert byhand("train", "--resume", "run", cwd=tmp_path).returncode == 0


def test_a_run_that_another_process_begins_is_refused(tmp_path, text):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / MARKER).write_bytes(MARK)
    with locked(tmp_path / "run"):  # it has no checkpoint yet
        line = error_line(byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path))
    assert "in use by" in line


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
    train = f"{sys.executable} -m byhand train {' '.join(TINY)} --data {quote(str(text))} --out run"
    command = f"{train} 2>&1 >/dev/null | head -1"
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
