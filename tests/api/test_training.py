import inspect
import signal
import threading

import pytest

import byhand as bh
from api.conftest import SMALL, TEXT, train
from byhand.config import DataConfig, ModelConfig, OptimConfig
from byhand.files.run_folder import checkpoints
from byhand.runs import run as runs
from cli.inside import byhand
from cli.process import weights


def test_it_trains_what_the_command_trains_with_the_same_settings(tmp_path, trained):
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8", newline="\n")
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in (SMALL | {"steps": 6}).items()]
    done = byhand(
        "train", "--data", "text.txt", "--out", "r", "--runtime=numpy", "--no-lm-head-bias", *flags, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert weights(tmp_path / "r", 6) == weights(trained.folder, 6)
    assert [row["step"] for row in trained.metrics] == [1, 2, 3, 4, 5, 6]
    assert trained.loss == trained.metrics[-1]["val/loss"] == bh.load(tmp_path / "r").loss


def test_it_goes_on_and_begins_with_another_model(tmp_path, trained):
    one = train(out=tmp_path / "one", steps=3)
    assert train(resume=one, steps=6).checkpoint.step == 6
    assert len(bh.load(one).metrics) == 6
    assert train(resume=one).checkpoint.step == 6  # it is complete
    tuned = bh.train(
        text=TEXT, init_from=trained, steps=1, runtime="numpy", batch_size=2, out=tmp_path / "t", progress=False
    )
    assert tuned.config.model == trained.config.model


def test_a_text_is_one_string_or_documents(tmp_path):
    documents = [f"document {n} of several\n" * 9 for n in range(20)]
    run = train(text=documents, out=tmp_path / "several")
    assert run.checkpoint.ends
    assert run.checkpoint.state["text"]["bytes"] == len("\0".join(documents)) + 1
    assert train(text=TEXT.encode(), out=tmp_path / "bytes", steps=1).checkpoint.step == 1
    assert train(resume=tmp_path / "bytes", steps=2).checkpoint.step == 2  # the text is in the run's folder
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "b.txt").write_text(TEXT[::-1], encoding="utf-8")
    assert train(data=[tmp_path / "a.txt", tmp_path / "b.txt"], out=tmp_path / "files", steps=1).checkpoint.ends


def test_progress_is_on_standard_output_where_a_notebook_shows_it_as_text(tmp_path, capsys, monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    train(out=tmp_path / "aloud", progress=True)
    said = capsys.readouterr()
    assert said.err == ""
    assert "step 6/6  loss " in said.out
    assert "done in " in said.out
    train(out=tmp_path / "quiet")
    assert capsys.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_saves_the_step_and_says_how_to_go_on(tmp_path, monkeypatch):
    append = runs.metrics.append

    def interrupted(run, progress):
        append(run, progress)
        if progress.step == 4:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(runs.metrics, "append", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"stopped at step 4, saved. Go on with byhand.train\(resume="):
        train(out=tmp_path / "run")
    monkeypatch.undo()
    assert [path.name for path in checkpoints(tmp_path / "run")] == ["step-00000004"]
    assert weights(train(resume=tmp_path / "run").folder, 6) == weights(train(out=tmp_path / "whole").folder, 6)


def test_a_second_interrupt_does_not_wait(tmp_path, monkeypatch):
    """The first two come at the same moment and are one."""
    monkeypatch.setattr(runs.metrics, "append", lambda *_: [signal.raise_signal(signal.SIGINT) for _ in range(3)])
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        train(out=tmp_path / "run")
    assert checkpoints(tmp_path / "run") == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_trains_in_another_thread(tmp_path):
    found = []
    thread = threading.Thread(target=lambda: found.append(train(out=tmp_path / "run", steps=1)))
    thread.start()
    thread.join()
    assert found[0].checkpoint.step == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"step": 3}, "train has no setting 'step'. Did you mean steps?"),
        ({"epochs": 3}, "train has no setting 'epochs'. Use minutes M, or steps N"),
        ({"device": "cuda"}, "train has no setting 'device'. Use runtime xla"),
        ({"learning_rate": 0.1}, "train has no setting 'learning_rate'. Use lr"),
        ({"data": "To be,\nor not to be"}, "data names files, but here it is a text"),
        ({"hosts": "auto"}, "train has no setting 'hosts'"),
        ({"steps": "3"}, "steps is '3', but must be a whole number"),
        ({"minutes": True}, "minutes is true, but must be a number"),
        ({"dtype": "float16"}, "dtype is 'float16'. Use one of"),
        ({"out": 3}, "out is 3, but must be a path"),
        ({"out": ""}, "out names no folder"),
        ({"lr": -1.0}, "lr is -1.0, but must be at least 0"),
        ({"data": "x.txt", "text": "x"}, "text is given in memory, and a text on disk too"),
        ({"resume": "run", "text": "x"}, "text is given in memory, and a text on disk too"),
        ({"text": ["a", 3]}, "text 2 is of type int"),
        ({"text": []}, "holds no text"),
        ({"text": 3}, "text 1 is of type int"),
        ({"data": 123}, "data is 123, but must be"),
        ({"data": b"a.txt"}, "data is .*, but must be"),
        ({"data": ["a.txt", 3]}, "data names 3, but must name files"),
        ({"text": "too short"}, "too short|holds"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, settings, said):
    with pytest.raises(bh.ByhandError, match=said) as refused:
        train(**{"out": tmp_path / "run", **settings})
    assert "\n" not in str(refused.value)


def test_none_is_a_setting_that_is_not_given(tmp_path):
    assert train(out=tmp_path / "run", steps=1, minutes=None, init_from=None, d_ff=None).checkpoint.step == 1


def test_its_signature_and_help_have_every_setting():
    known = inspect.signature(bh.train).parameters
    for record in (ModelConfig(), OptimConfig(), DataConfig()):
        for name in vars(record).keys() - {"data"}:
            assert f"\n{name} " in bh.train.__doc__
            assert not isinstance(record, OptimConfig) or known[name].default == getattr(record, name)
    assert "hosts" not in known
