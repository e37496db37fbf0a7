"""`byhand trace` and `byhand diff`: what they write, say and refuse, and their exit codes."""

import dataclasses

import numpy as np
import pytest

from byhand.book.port import recording
from byhand.book.port.comparing import of_page
from byhand.cli.main import main
from byhand.config import ModelConfig, TrainConfig
from byhand.files import writing
from cli.inside import write_run


def run(capsys, *arguments):
    code = main([*map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def traced(tmp_path, capsys):
    assert run(capsys, "trace", "--page", "gpt", "--out", tmp_path / "trace")[0] == 0
    return tmp_path / "trace"


def test_a_trace_equals_its_own_npz(traced, capsys):
    code, said, _ = run(capsys, "diff", traced, traced / "arrays.npz", "--lang", "en")
    assert (code, said.splitlines()[-1]) == (0, "Equal: 226 exactly, 0 within rounding. Not compared: 0.")
    assert sorted(path.name for path in traced.iterdir()) == ["arrays.bin", "arrays.npz", "config.json", "index.txt"]


@pytest.mark.parametrize(
    ("lang", "behind"),
    [
        ("en", "Behind it, 1 of 1 differ; all 0 before it are equal."),
        ("zh", "其后 1 个中有 1 个不同；之前的 0 个都相同。"),
    ],
)
def test_the_first_array_that_differs_is_printed_the_others_are_counted(tmp_path, traced, capsys, lang, behind):
    folder = tmp_path / "theirs"
    (folder / "grad").mkdir(parents=True)
    right = np.load(traced / "arrays.npz")
    np.save(folder / "grad" / "wte.npy", right["grad/wte"] + 1)
    np.save(folder / "blocks.0.attn.scores.npy", 2 * right["blocks.0.attn.scores"])
    np.save(folder / "other.npy", right["wte"])
    code, said, _ = run(capsys, "diff", traced, folder, "--lang", lang)
    lines = said.splitlines()
    assert code == 1
    assert "blocks.0.attn.scores[" in lines[2]
    assert "2" in lines[3]
    assert "blocks.0.attn.q" in lines[4]
    assert lines[5] == behind
    assert lines[6].endswith("other")
    assert run(capsys, "diff", traced, folder, "--within", "1e9")[0] == 0


def test_what_was_not_compared_is_counted(tmp_path, traced, capsys):
    np.save(tmp_path / "wte.npy", np.load(traced / "arrays.npz")["wte"])
    said = run(capsys, "diff", traced, tmp_path / "wte.npy", "--lang", "en")[1]
    assert said.splitlines()[-1] == "Equal: 1 exactly, 0 within rounding. Not compared: 225."


def test_a_trace_stands_first(traced, capsys):
    code, _, error = run(capsys, "diff", traced / "arrays.npz", traced)
    assert code == 2
    assert f"Swap them: byhand diff {traced} {traced / 'arrays.npz'}" in error


def test_another_models_trace_is_named_by_its_settings(tmp_path, traced, capsys):
    config = dataclasses.replace(of_page("gpt").config, norm_eps=0.2)
    recording.write(dataclasses.replace(of_page("gpt"), config=config), tmp_path / "other", "float64")
    code, said, _ = run(capsys, "diff", traced, tmp_path / "other", "--lang", "en")
    assert (code, said.splitlines()[0]) == (0, "Theirs is a trace of another model, with norm_eps 0.2 (0.1).")


def test_a_run_is_traced_with_its_own_optimizer(tmp_path, capsys):
    model = ModelConfig(seq_len=8, d_model=4, n_layers=1, n_heads=2)
    config = dataclasses.replace(TrainConfig(model=model), steps=10)
    write_run(tmp_path / "run", config, {"path": "text.txt", "bytes": 10, "sha256": "0" * 64})
    code, said, error = run(capsys, "trace", tmp_path / "run", "--prompt", "To be", "--out", tmp_path / "trace")
    assert code == 0, error
    assert "in float64" in said
    found = recording.read(tmp_path / "trace")
    assert found.named("tokens").array.tolist() == [[*b"To b"]]
    assert found.named("new/wte").equation == "adamw"
    assert run(capsys, "trace", tmp_path / "run", "--tokens", "1,2,3", "--out", tmp_path / "other")[0] == 0
    assert recording.read(tmp_path / "other").named("targets").array.tolist() == [[2, 3]]


def test_a_shape_is_traced(tmp_path, capsys):
    arguments = ["--shape", "1,4,8,1,2/1,17", "--architecture", "llama", "--seed", "3", "--dtype", "float32"]
    assert run(capsys, "trace", *arguments, "--out", tmp_path / "trace")[0] == 0
    found = recording.read(tmp_path / "trace")
    assert found.named("logits").array.shape == (1, 4, 17)
    assert found.named("wte").array.dtype == np.float32


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "needs a run, --page or --shape"),
        (["--page", "gpt", "--shape", "tiny"], "only one of them"),
        (["--page", "gpt", "--tokens", "1,2"], "--tokens changes nothing"),
        (["--page", "gpt", "--seed", "2"], "--seed changes nothing"),
        (["--shape", "1,4,8,1,2,17", "--prompt", "x"], "--prompt changes nothing"),
        (["--shape", "1,4,8,1,2,17", "--tokens", "1"], "at least two"),
        (["--shape", "1,4,8,1,2,17", "--tokens", "1,x"], "is not an integer"),
        (["--shape", "1,4,8,1,2,17", "--tokens", "1,99"], "99"),
        (["missing"], "missing"),
    ],
)
def test_what_cannot_be_traced_is_refused_in_one_line(tmp_path, capsys, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, said, error = run(capsys, "trace", *arguments, "--out", "trace")
    assert (code, said) == (2, "")
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "trace").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    code, _, error = run(capsys, "trace", "--page", "gpt", "--out", tmp_path)
    assert code == 2
    assert "holds 'mine.txt'" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_interrupt_leaves_no_part_of_a_trace(tmp_path, monkeypatch):
    whole = writing.write_new

    def interrupted(path, content, mode=0o666):
        if path.name == "arrays.npz":
            raise KeyboardInterrupt
        whole(path, content, mode)

    monkeypatch.setattr(writing, "write_new", interrupted)
    with pytest.raises(KeyboardInterrupt):
        recording.write(of_page("gpt"), tmp_path / "trace", "float32")
    assert list((tmp_path / "trace").iterdir()) == []


@pytest.mark.parametrize("within", ["nan", "-1", "inf"])
def test_a_tolerance_is_a_positive_number(traced, capsys, within):
    assert run(capsys, "diff", traced, traced, "--within", within)[0] == 2
