"""`byhand train`: the files of a run, its settings, and resuming."""

import json
import os
import re

import pytest

from byhand.files.run_folder import MODEL
from cli import process
from cli.inside import byhand
from cli.process import TINY, error_line, weights, write_text


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
    """A piped text is kept, so that the run can resume."""
    done = byhand("train", *TINY, "--data", "-", "--out", "run", cwd=tmp_path, stdin=text.read_bytes())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "corpus.bin").read_bytes() == text.read_bytes()
    again = byhand("train", *TINY, "--data", text, "--out", "other", cwd=tmp_path)
    assert again.returncode == 0
    assert weights(tmp_path / "run", 6) == weights(tmp_path / "other", 6)
    complete = byhand("train", "--resume", "run", cwd=tmp_path)
    assert (complete.returncode, b"complete" in complete.stdout) == (0, True)


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


def test_an_out_folder_that_holds_a_run_is_not_touched(tmp_path, text):
    assert byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path).returncode == 0
    before = weights(tmp_path / "run", 6)
    line = error_line(byhand("train", *TINY, "--seed", 2, "--data", text, "--out", "run", cwd=tmp_path))
    assert "holds a run already. Choose another folder with --out; `byhand train --resume run`" in line
    assert weights(tmp_path / "run", 6) == before


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


def test_a_run_keeps_what_was_asked_for_and_what_computed_it(tmp_path, text):
    assert byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path).returncode == 0
    newest = tmp_path / "run" / "step-00000006"
    config = json.loads((newest / "config.json").read_bytes())
    assert (config["runtime"], config["threads"]) == ("auto", 0)
    used = json.loads((newest / "trainer_state.json").read_bytes())["used"]
    assert used["runtime"] in ("loops", "numpy")
    assert (used["runtime"] == "numpy") or (used["threads"] >= 1 and used["blas"])


def test_a_run_goes_on_where_there_is_no_numba_and_says_so(tmp_path, text):
    """A folder of modules that cannot be imported simulates a machine without them."""
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
    done = process.byhand("train", "--resume", "run", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "runtime numpy" in said
    (line,) = [line for line in said.splitlines() if "computed this run" in line]
    assert line.startswith("so far loops on ")
    assert "now numpy goes on" in line


def test_a_run_with_long_updates_says_so_before_the_first(tmp_path, text, monkeypatch):
    for bound, begins in ((2e12, False), (1e3, True)):
        monkeypatch.setattr("byhand.cli.runs.training.LONG", bound)
        done = byhand("train", *TINY, "--steps", "1", "--data", text, "--out", f"run{begins}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (
            re.search(rb"; an update computes [\d.]+ MFLOP, so the first may take a while\n", done.stderr) is not None
        ) is begins
