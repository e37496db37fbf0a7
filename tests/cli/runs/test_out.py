"""`--out` and `--resume` write into byhand's own folders, and touch no file of the user's."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from byhand import errors
from byhand.files.run_folder import MARK, MARKER, MODEL
from cli.inside import byhand
from cli.process import TINY, error_line

QUICK = [*TINY, "--runtime", "numpy", "--steps", "2", "--eval-interval", "0"]
links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


def contents(folder: Path) -> dict[str, bytes | str]:
    """Every file below a folder, links as where they lead."""
    return {
        p.relative_to(folder).as_posix(): f"-> {os.readlink(p)}" if p.is_symlink() else p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_symlink() or p.is_file()
    }


def train(folder: Path, text: Path, *arguments: object, stdin: bytes = b""):
    return byhand("train", *QUICK, "--data", text, *arguments, cwd=folder, stdin=stdin)


OWN = {
    "corpus.bin": b"a corpus of mine",
    "metrics.jsonl": b'{"step": 1, "train/loss": 1.0}\n',
    "lock": b"mine",
    "latest": b"mine",
    "run.json": b'{"mine": 1}',
    ".writing-novel/chapter-1": b"It was a dark",
    ".writing-step-00000001/model.safetensors": b"mine",
    "step-00000001/notes": b"mine",
    "notes": b"mine",
}


@pytest.mark.parametrize("name", OWN)
def test_a_folder_with_a_file_of_its_owner_is_refused_and_stays_as_it_was(tmp_path, text, name):
    file = tmp_path / "mine" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(OWN[name])
    before = contents(tmp_path)
    line = error_line(train(tmp_path, text, "--out", "mine"))
    assert f"mine holds {name.split('/')[0]!r} and is not a run of byhand" in line
    assert contents(tmp_path) == before
    error_line(byhand("train", "--resume", "mine", cwd=tmp_path))
    assert contents(tmp_path) == before


@links
@pytest.mark.parametrize("name", ["corpus.bin", "metrics.jsonl", "lock", "run.json", "step-00000001", "notes"])
def test_links_in_a_folder_are_not_followed(tmp_path, text, name):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "mine").mkdir()
    for target in ("../precious", "../missing", "../mine"):
        (tmp_path / "mine" / name).symlink_to(target)
        before = contents(tmp_path)
        error_line(byhand("train", *QUICK, "--data", "-", "--out", "mine", cwd=tmp_path, stdin=text.read_bytes()))
        assert contents(tmp_path) == before
        (tmp_path / "mine" / name).unlink()


@pytest.fixture(scope="module")
def trained(tmp_path_factory, text):
    """A run of two steps, both saved."""
    folder = tmp_path_factory.mktemp("trained")
    done = train(folder, text, "--save-interval", "1", "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder / "run"


def unfinished(trained: Path, run: Path) -> Path:
    """A copy that has one step to go."""
    shutil.copytree(trained, run)
    shutil.rmtree(run / "step-00000002")
    return run


@links
@pytest.mark.parametrize("name", ["corpus.bin", "metrics.jsonl", "lock", "latest", "loss.png"])
@pytest.mark.parametrize("command", ["begin", "resume", "plot"])
def test_a_link_put_into_a_run_is_not_written_through(tmp_path, text, trained, name, command):
    (tmp_path / "precious").write_bytes(b"precious")
    run = tmp_path / "run"
    if command == "begin":
        run.mkdir()
        (run / MARKER).write_bytes(MARK)
    else:
        unfinished(trained, run)
    if command != "plot" or name != "metrics.jsonl":
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to("../precious")
    arguments = {
        "begin": ["train", *QUICK, "--data", "-", "--out", "run"],
        "resume": ["train", "--resume", "run"],
        "plot": ["plot", "run"],
    }[command]
    done = byhand(*arguments, cwd=tmp_path, stdin=text.read_bytes())
    assert b"Traceback" not in done.stderr
    assert (tmp_path / "precious").read_bytes() == b"precious"


def hard_linked(run: Path, name: str) -> Path:
    """A file beside the run with a hard link inside it."""
    other = run.parent / "other"
    shutil.copyfile(run / name, other)
    (run / name).unlink()
    (run / name).hardlink_to(other)
    return other


def test_metrics_that_another_folder_shares_by_a_hard_link_are_written_apart(tmp_path, text, trained):
    other = hard_linked(unfinished(trained, tmp_path / "run"), "metrics.jsonl")
    kept = (tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines(keepends=True)[0]
    other.write_bytes(kept)  # no line is to be dropped, so the file is not rewritten
    assert byhand("train", "--resume", "run", cwd=tmp_path).returncode == 0
    assert other.read_bytes() == kept
    written = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    assert written.startswith(kept)
    assert [json.loads(line)["step"] for line in written.splitlines()] == [1, 2]


def test_a_lock_that_is_a_hard_link_is_not_written_into(tmp_path, text, trained):
    other = hard_linked(unfinished(trained, tmp_path / "run"), "lock")
    other.write_bytes(b"precious")
    line = error_line(byhand("train", "--resume", "run", cwd=tmp_path))
    assert f"cannot use {Path('run/lock')}: it is a hard link to another file. Remove this link" in line
    assert other.read_bytes() == b"precious"
    (tmp_path / "run" / "lock").unlink()
    assert byhand("train", "--resume", "run", cwd=tmp_path).returncode == 0
    assert other.read_bytes() == b"precious"


def test_a_run_killed_before_its_first_checkpoint_begins_again_with_the_same_command(tmp_path, text):
    run = tmp_path / "run"
    run.mkdir()
    left = {
        MARKER: MARK,
        "lock": b"process 1\n",
        "corpus.bin": text.read_bytes(),
        "metrics.jsonl": b'{"step": 1, "train/loss": 5.5}\n',
    }
    for name, content in left.items():
        (run / name).write_bytes(content)
    for name in (f".writing-step-00000002/{MODEL}", ".writing-0123456789abcdef/metrics.jsonl"):
        (run / name).parent.mkdir()
        (run / name).write_bytes(b"half")
    done = byhand("train", *QUICK, "--data", "-", "--out", "run", cwd=tmp_path, stdin=text.read_bytes())
    assert done.returncode == 0, done.stderr
    assert (run / "corpus.bin").read_bytes() == text.read_bytes()
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert steps == [1, 2]
    assert not list(run.glob(".writing-*"))


OTHERS = {"corpus.bin": "exists already, with another text", "metrics.jsonl": "has lines that byhand did not write"}


@pytest.mark.parametrize("name", [*OTHERS, ".writing-latest", ".writing-corpus.bin", ".writing-metrics.jsonl"])
def test_a_file_that_its_owner_put_into_a_run_before_its_first_checkpoint_stays(tmp_path, text, name):
    run = tmp_path / "run"
    run.mkdir()
    (run / MARKER).write_bytes(MARK)
    (run / name).write_bytes(b"mine")
    done = byhand("train", *QUICK, "--data", "-", "--out", "run", cwd=tmp_path, stdin=text.read_bytes())
    assert (run / name).read_bytes() == b"mine"
    if name in OTHERS:
        assert f"{name} {OTHERS[name]}. Move it away, or choose another --out." in error_line(done)
        (run / name).unlink()
        done = byhand("train", *QUICK, "--data", "-", "--out", "run", cwd=tmp_path, stdin=text.read_bytes())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("length", [0, 1, len(MARK) - 1])
def test_a_marker_that_was_cut_short_locks_nobody_out(tmp_path, text, length):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / MARKER).write_bytes(MARK[:length])
    done = train(tmp_path, text, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / MARKER).read_bytes() == MARK


def test_a_cut_marker_beside_other_files_is_no_run(tmp_path, text):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / MARKER).write_bytes(b"")
    (tmp_path / "mine" / "corpus.bin").write_bytes(b"mine")
    before = contents(tmp_path)
    assert "is not a run of byhand" in error_line(train(tmp_path, text, "--out", "mine"))
    assert contents(tmp_path) == before


def test_runs_of_versions_without_marker_are_resumed_and_not_begun_again(tmp_path, text, trained):
    run = unfinished(trained, tmp_path / "run")
    (run / MARKER).unlink()
    assert "holds a run already. Choose another folder with --out; `byhand train --resume run`" in error_line(
        train(tmp_path, text, "--out", "run")
    )
    done = byhand("train", "--resume", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (run / "step-00000002" / MODEL).exists()


@pytest.mark.parametrize("name", ["step-00000001", "step-9", "步骤", "a b", "run.json", "latest", "-x"])
def test_a_run_folder_may_have_any_name(tmp_path, text, trained, name):
    shutil.copytree(trained, tmp_path / name)
    shutil.rmtree(tmp_path / name / "step-00000002")
    path = f"./{name}"
    for command in (
        ["info", path],
        ["sample", path, "--max-new-tokens", "1", "--runtime", "numpy"],
        ["train", "--resume", path],
    ):
        done = byhand(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "holds a run already" in error_line(train(tmp_path, text, "--out", path))


def test_a_new_run_may_be_called_like_a_checkpoint(tmp_path, text):
    done = train(tmp_path, text, "--out", "step-00000007")
    assert done.returncode == 0, done.stderr
    facts = json.loads(byhand("info", "step-00000007", "--json", cwd=tmp_path).stdout)
    assert facts["checkpoints"] == {"step-00000002": "whole"}
    assert b"complete" in byhand("train", "--resume", "step-00000007", cwd=tmp_path).stdout
    # the folder above is not a run, though it holds a file named like a checkpoint
    assert "holds 1 run. Give one of them" in error_line(byhand("info", ".", cwd=tmp_path))


@links
def test_relative_paths_and_links_lead_to_runs_and_checkpoints(tmp_path, text, trained):
    run = unfinished(trained, tmp_path / "run")
    (tmp_path / "link").symlink_to("run")
    (tmp_path / "best").symlink_to("run/step-00000001")
    inside = run / "step-00000001"
    for path, cwd in ((".", run), ("..", inside), ("../link", run), (".", inside), ("best", tmp_path)):
        facts = json.loads(byhand("info", path, "--json", cwd=cwd).stdout)
        assert (facts["step"], facts["checkpoints"]) == ("1 of 2", {"step-00000001": "whole"})
    for path, cwd in ((".", inside), ("best", tmp_path)):
        assert f"Use --resume {errors.command(run)}" in error_line(byhand("train", "--resume", path, cwd=cwd))
    for path, cwd in (("..", inside), ("link", tmp_path)):
        shutil.rmtree(run / "step-00000002", ignore_errors=True)
        assert byhand("train", "--resume", path, cwd=cwd).returncode == 0


def test_a_copy_of_a_checkpoint_is_told_alone(tmp_path, trained):
    shutil.copytree(trained / "step-00000001", tmp_path / "best")
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "train/loss": 99.0}\n')
    facts = json.loads(byhand("info", "best", "--json", cwd=tmp_path).stdout)
    assert (facts["checkpoints"], facts["train/loss"]) == ({"best": "whole"}, None)


@pytest.mark.parametrize("flag", ["--out", "--resume"])
@pytest.mark.parametrize("written", [["{}", ""], ["{}="]])
def test_an_empty_name_is_not_the_current_folder(tmp_path, text, flag, written):
    arguments = [word.format(flag) for word in written]
    base = [] if flag == "--resume" else [*QUICK, "--data", str(text)]
    assert f"{flag} names no folder" in error_line(byhand("train", *base, *arguments, cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/run", "n" * 300])
def test_places_where_no_folder_can_be_are_one_line(tmp_path, text, name):
    (tmp_path / "file").write_bytes(b"mine")
    error_line(train(tmp_path, text, "--out", name))
    error_line(byhand("train", "--resume", name, cwd=tmp_path))
    assert contents(tmp_path) == {"file": b"mine"}


def test_the_default_folder_takes_no_name_that_is_no_number(tmp_path, text):
    for name in ("1²", "007x", "9"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    done = train(tmp_path, text)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "010" / "latest").exists()


def test_a_run_saved_through_python_is_resumed_with_its_text(tmp_path, text):
    """Trainer.save knows no text: the command asks for it, takes it, and records it."""
    import numpy as np

    from byhand.config import ModelConfig, TrainConfig
    from byhand.corpus.dataset import ByteDataset
    from byhand.runs.trainer import Trainer

    config = TrainConfig(model=ModelConfig(seq_len=16, d_model=8), steps=3, batch_size=2, runtime="numpy")
    train_part, val = ByteDataset(np.frombuffer(text.read_bytes(), np.uint8)).split(0.1, 16)
    for step, run in ((0, tmp_path / "run0"), (2, tmp_path / "run2")):
        trainer = Trainer(config, train_part, val)
        for _ in range(step):
            trainer.update()
        trainer.save(run)
        line = error_line(byhand("train", "--resume", run, cwd=tmp_path))
        assert line.endswith("does not say which text it was trained on. Name it with --data FILE.")
        done = byhand("train", "--resume", run, "--data", text, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(byhand("info", run, "--json", cwd=tmp_path).stdout)["text"]["path"] == str(text.resolve())
        assert byhand("sample", run, "--max-new-tokens", "1", "--runtime", "numpy", cwd=tmp_path).returncode == 0


def in_the_way(run: Path, what: str, step: str) -> Path:
    """What byhand may not remove, at a name that a checkpoint needs."""
    path = run / step
    if what == "damaged, with a file":
        path.mkdir()
        (path / MODEL).write_bytes(b"damaged")
        (path / "notes").write_bytes(b"mine")
    elif what == "link":
        (run.parent / "elsewhere").mkdir()
        path.symlink_to("../elsewhere")
    elif what == "file":
        path.write_bytes(b"mine")
    else:
        if what == ".removing-":  # it is needed where a damaged checkpoint is to go
            path.mkdir()
            (path / MODEL).write_bytes(b"damaged")
        path = run / f"{what}{step}"
        path.mkdir()
        (path / "user.txt").write_bytes(b"mine")
    return path


@links
@pytest.mark.parametrize("what", ["damaged, with a file", "link", "file", ".writing-", ".removing-"])
def test_what_blocks_a_checkpoint_is_named_before_a_step_is_trained(tmp_path, text, trained, what):
    run = unfinished(trained, tmp_path / "run")
    path = in_the_way(run, what, "step-00000002")
    before = contents(tmp_path)
    line = error_line(byhand("train", "--resume", "run", cwd=tmp_path))
    assert f"{Path('run') / path.name} blocks a checkpoint" in line
    assert "Move it away, then resume." in line
    assert {**contents(tmp_path), "run/lock": b""} == {**before, "run/lock": b""}
    path.rename(tmp_path / "away")
    assert byhand("train", "--resume", "run", cwd=tmp_path).returncode == 0


@links
def test_what_blocks_the_first_checkpoint_is_named_before_a_step_is_trained(tmp_path, text):
    run = tmp_path / "run"
    run.mkdir()
    (run / MARKER).write_bytes(MARK)
    path = in_the_way(run, ".writing-", "step-00000002")
    line = error_line(train(tmp_path, text, "--out", "run"))
    assert f"{Path('run') / path.name} blocks a checkpoint" in line
    assert "Move it away, then run the same command again." in line
    assert not (run / "metrics.jsonl").exists()


@pytest.mark.parametrize("call", ["listdir", "stat"])
@pytest.mark.parametrize("command", [["info"], ["sample"], ["train", "--resume"]], ids=" ".join)
def test_a_run_that_may_not_be_read_is_not_called_empty(tmp_path, trained, monkeypatch, command, call):
    """Of a folder without the right to read it cannot be listed; without that to search, nothing in it is found."""
    run = shutil.copytree(trained, tmp_path / "run")
    real = getattr(os, call)

    def refuse(path=".", *arguments, **options):
        inside = isinstance(path, (str, Path)) and Path(os.path.abspath(path)).is_relative_to(run)
        if inside and (call == "listdir" or os.fspath(path) not in ("run", str(run))):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, call, refuse)
    line = error_line(byhand(*command, "run", cwd=tmp_path))
    assert "Permission denied" in line
    assert "no checkpoint" not in line


@links
def test_a_link_that_leads_nowhere_is_named_as_one(tmp_path, text):
    (tmp_path / "run").symlink_to("nowhere")
    line = error_line(train(tmp_path, text, "--out", "run"))
    assert "run is a link that leads nowhere. Remove it, or choose another folder with --out." in line
    assert contents(tmp_path) == {"run": "-> nowhere"}
