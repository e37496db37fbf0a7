"""`byhand train` as a process: runs, resumes, stops, and says what is wrong."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from byhand.runs.checkpoint import MODEL
from cli.process import PATIENCE, TINY, byhand, environment, error_line, write_text


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")


def weights(run: Path, step: int = 6) -> str:
    return hashlib.sha256((run / f"step-{step:08d}" / MODEL).read_bytes()).hexdigest()


def test_a_run_leaves_checkpoints_metrics_and_says_how_to_go_on(tmp_path, text):
    done = byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "run"
    assert sorted(p.name for p in run.iterdir()) == [
        "latest",
        "lock",
        "metrics.jsonl",
        "run.json",
        "step-00000004",
        "step-00000006",
    ]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in rows] == [1, 2, 3, 4, 5, 6]
    assert {"train/loss", "lr", "grad_norm", "train/tok_per_sec", "tokens"} <= rows[0].keys()
    assert {"val/loss", "val/bpb"} <= rows[2].keys()
    assert rows[5]["tokens"] == 6 * 2 * 16
    assert b"byhand sample run" in done.stdout
    assert re.search(rb"step 1/6  loss \d\.\d{4}  [\d,]+ tokens/s  ETA", done.stderr)


def test_the_default_folder_is_the_next_free_number(tmp_path, text):
    for number in ("001", "002"):
        assert byhand("train", *TINY, "--data", text, cwd=tmp_path).returncode == 0
        assert (tmp_path / "runs" / number / "latest").exists()


def test_from_standard_input_and_resumed(tmp_path, text):
    """What came through a pipe is kept, so that the run can go on."""
    done = byhand("train", *TINY, "--data", "-", "--out", "run", cwd=tmp_path, stdin=text.read_bytes())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "corpus.bin").read_bytes() == text.read_bytes()
    again = byhand("train", *TINY, "--data", text, "--out", "other", cwd=tmp_path)
    assert again.returncode == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "other")
    complete = byhand("train", "--resume", "run", cwd=tmp_path)
    assert (complete.returncode, b"complete" in complete.stdout) == (0, True)


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


def test_toml_presets_and_flags_in_that_order(tmp_path, text):
    toml = 'steps = 4\nlr = 0.002\n[model]\nd-model = 16\nactivation = "relu"\n[optim]\nwarmup_steps = 2\n'
    (tmp_path / "settings.toml").write_text(toml)
    flags = ["--preset", "seed", "--config", "settings.toml", "--seq-len", "8", "--steps", "3", "--n-head", "2"]
    done = byhand("train", *flags, "--data", text, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    info = json.loads(byhand("info", "run", "--json", cwd=tmp_path).stdout)
    assert info["training"]["steps"] == 3
    assert info["training"]["batch_size"] == 4
    assert (info["model"]["d_model"], info["model"]["activation"], info["model"]["n_heads"]) == (16, "relu", 2)
    assert (info["optim"]["lr"], info["optim"]["warmup_steps"], info["optim"]["beta2"]) == (0.002, 2, 0.999)


BAD = [
    (["--data", "missing.txt"], "there is no file or folder missing.txt"),
    (["--data", "empty.txt"], "empty.txt is empty"),
    (["--data", "short.txt"], "short.txt holds 1 byte, but seq_len 16 needs at least 17"),
    (["--data", "folder"], "holds no text"),
    (["--d-model", "30", "--n-heads", "4"], "--n-heads 4 does not divide --d-model 30. Use --n-heads 3 or 5"),
    (["--steps", "many"], "--steps many is not an integer. See byhand train --help"),
    (["--steps", "0"], "^error: --steps is 0, but must be at least 1. Use 1000.$"),
    (["--n-head", "3"], "^error: --n-heads 3 does not divide --d-model 16. Use --n-heads 2 or 4.$"),
    (["--lr", "-1"], "^error: --lr is -1"),
    (["--lr", "nan"], "^error: --lr is nan"),
    (["--min-lr", "1"], "^error: --min-lr 1.0 must lie between 0 and lr 0.003. Lower --min-lr.$"),
    (["--val-fraction", "1.5"], "^error: --val-fraction is 1.5"),
    (["--d-ff", "None"], "--d-ff None is not an integer"),
    (["--activation", "tanh"], "tanh"),
    (["--dtype", "float16"], "float16"),
    (["--vocab-size", "50"], "text.txt holds the byte 122, but vocab_size 50 has ids 0 to 49. Use --vocab-size 256"),
    (["--data", ""], "--data names no file"),
    (["--data", "fifo"], "is no regular file.*--data -"),
    (["--lr"], "--lr needs a value"),
    (["--seed", "1.5"], "--seed 1.5 is not an integer"),
    (["--d-ff", "x"], "--d-ff x is not an integer"),
    (["--preset", ""], "there is no preset ''. Use one of tiny, nano, small, seed."),
    (["--config="], "cannot read --config"),
    (["--preset", "huge"], "there is no preset 'huge'. Use one of tiny"),
    (["--config", "missing.toml"], "cannot read --config missing.toml"),
    (["--config", "bad.toml"], "is not TOML"),
    (["--config", "unknown.toml"], "unknown key 'stepz'"),
    (["--config", "typed.toml"], "--config typed.toml: steps is 'many', but must be a whole number, such as 1000"),
    (["--stesp", "3"], "Perhaps you meant --steps"),
    (["--resume", "missing"], "there is no run missing"),
    (["--resume", "folder"], "holds no checkpoint"),
]


@pytest.mark.parametrize(("arguments", "expected"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_line(tmp_path, text, arguments, expected):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").touch()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "fifo")
    (tmp_path / "short.txt").write_bytes(b"0123456789")
    (tmp_path / "bad.toml").write_text("steps = = 3")
    (tmp_path / "unknown.toml").write_text("stepz = 3")
    (tmp_path / "typed.toml").write_text('steps = "many"')
    resuming = arguments[0] == "--resume"
    base = [] if resuming else [*TINY, "--out", "run"] + (["--data", text] if "--data" not in arguments else [])
    line = error_line(byhand("train", *base, *arguments, cwd=tmp_path))
    assert re.search(expected, line), line


def test_an_out_folder_that_holds_a_run_is_not_touched(tmp_path, text):
    assert byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path).returncode == 0
    before = weights(tmp_path / "run")
    line = error_line(byhand("train", *TINY, "--seed", 2, "--data", text, "--out", "run", cwd=tmp_path))
    assert "holds a run already. Choose another folder with --out; `byhand train --resume run`" in line
    assert weights(tmp_path / "run") == before


def test_a_resumed_run_keeps_its_settings_and_its_text(tmp_path):
    text = write_text(tmp_path / "text.txt")
    done = byhand("train", *TINY, "--data", "text.txt", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0
    assert "--lr cannot change" in error_line(byhand("train", "--resume", "run", "--lr", "1", cwd=tmp_path))
    newest = tmp_path / "run" / "step-00000006"
    (newest / MODEL).unlink()  # so that there is something left to do
    text.rename(tmp_path / "moved.txt")
    assert "cannot read" in error_line(byhand("train", "--resume", "run", cwd=tmp_path))
    done = byhand("train", "--resume", "run", "--data", "moved.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"warning: " in done.stderr
    (newest / MODEL).unlink()
    (tmp_path / "moved.txt").write_bytes(b"another text" * 50)
    line = error_line(byhand("train", "--resume", "run", "--data", "moved.txt", cwd=tmp_path))
    assert "the text changed since the run began" in line


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


def test_one_checkpoint_is_no_run_to_resume(tmp_path, text):
    assert byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path).returncode == 0
    line = error_line(byhand("train", "--resume", "run/step-00000004", cwd=tmp_path))
    assert line.endswith("is one checkpoint of a run. Use --resume run.")
    inside = error_line(byhand("train", "--resume", ".", cwd=tmp_path / "run" / "step-00000004"))
    assert inside.endswith(f"Use --resume {tmp_path / 'run'}.")
    (tmp_path / "run").rename(tmp_path / "my run")
    assert "Use --resume 'my run'." in error_line(byhand("train", "--resume", "my run/step-00000004", cwd=tmp_path))
    assert "`byhand train --resume 'my run'` goes on" in error_line(byhand("train", "--out", "my run", cwd=tmp_path))


def test_a_text_that_changes_under_way_stops_the_run(tmp_path):
    text = write_text(tmp_path / "text.txt")
    process = start(tmp_path / "run", text)
    wait_for_step(tmp_path / "run", 3)
    content = text.read_bytes()
    text.write_bytes(content.swapcase())
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert b"changed while it was in use" in err


def test_a_run_begun_with_one_runtime_can_go_on_with_another(tmp_path, text):
    begin = [*TINY, "--data", text, "--out", "run", "--runtime", "auto", "--keep", 9]
    assert byhand("train", *begin, cwd=tmp_path).returncode == 0
    for step in ("step-00000004", "step-00000006"):
        (tmp_path / "run" / step / MODEL).unlink()
    done = byhand("train", "--resume", "run", "--runtime", "numpy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"runtime numpy" in done.stderr
    (tmp_path / "run" / "step-00000006" / MODEL).unlink()
    again = byhand("train", "--resume", "run", cwd=tmp_path)
    assert b"runtime numpy" in again.stderr, "it keeps what was asked for last"


def test_runs_are_no_text(tmp_path, text):
    folder = tmp_path / "project"
    folder.mkdir()
    write_text(folder / "notes.txt", 3000)
    for _ in range(2):
        done = byhand("train", *TINY, "--data", ".", cwd=folder)
        assert b"(3,000 bytes)" in done.stderr


def test_damaged_metrics_do_not_stop_anything(tmp_path, text):
    assert byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path).returncode == 0
    with (tmp_path / "run" / "metrics.jsonl").open("ab") as file:
        file.write(b'\xff\n[1]\n{"step": "x"}\n{"step": 7')
    for command in (["plot", "run"], ["info", "run"], ["train", "--resume", "run"]):
        done = byhand(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_weights_that_an_update_made_infinite_are_not_saved(tmp_path, text):
    wild = [*TINY, "--steps", "1", "--lr", "1e300", "--warmup-steps", "0"]
    line = error_line(byhand("train", *wild, "--data", text, "--out", "run", cwd=tmp_path))
    assert "is not finite; it was not saved" in line
    assert not list((tmp_path / "run").glob("step-*"))


def test_sizes_beyond_memory_are_one_line(tmp_path, text):
    line = error_line(
        byhand("train", *TINY, "--d-model", 131072, "--n-heads", 1, "--data", text, "--out", "run", cwd=tmp_path)
    )
    assert "this run needs at least" in line


@pytest.mark.parametrize("runtime", ["auto", "numpy"])
def test_weights_so_large_that_the_next_loss_overflows_are_not_saved(tmp_path, text, runtime):
    """They are finite, and the loss of the step that made them was finite too."""
    wild = [*TINY, "--lr", "1e30", "--grad-clip", "0", "--warmup-steps", "0", "--save-interval", "1", "--steps", "50"]
    done = byhand("train", *wild, "--data", text, "--out", "run", "--runtime", runtime, cwd=tmp_path)
    assert re.search(r"step 1: .* is not finite; it was not saved", error_line(done))
    assert b"Warning" not in done.stderr
    assert not list((tmp_path / "run").glob("step-*"))


def test_a_run_keeps_what_was_asked_for_and_what_computed_it(tmp_path, text):
    assert byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path).returncode == 0
    newest = tmp_path / "run" / "step-00000006"
    config = json.loads((newest / "config.json").read_bytes())
    assert (config["runtime"], config["threads"]) == ("auto", 0)
    used = json.loads((newest / "trainer_state.json").read_bytes())["used"]
    assert used["runtime"] in ("loops", "numpy")
    assert (used["runtime"] == "numpy") or (used["threads"] >= 1 and used["blas"])


def test_a_run_goes_on_where_there_is_no_numba_and_says_so(tmp_path, text):
    """A folder of modules that cannot be imported stands for a machine without them."""
    whole = byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path)
    assert whole.returncode == 0
    if b"runtime loops" not in whole.stderr:
        pytest.skip("the loops runtime is not here")
    (tmp_path / "run" / "step-00000006" / MODEL).unlink()
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'numba':\n"
        "            raise ModuleNotFoundError(name)\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'numba' else real(name, *rest)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    path = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    done = byhand("train", "--resume", "run", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "runtime numpy" in said
    (line,) = [line for line in said.splitlines() if "computed this run" in line]
    assert line.startswith("so far loops on ")
    assert "now numpy goes on" in line
