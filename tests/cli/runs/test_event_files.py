"""`byhand plot --to tensorboard`: the numbers of metrics.jsonl, as TensorBoard reads them."""

import json
import struct
from pathlib import Path

import pytest

from byhand.cli.main import main
from byhand.cli.runs import event_files
from byhand.errors import ConfigError

ROWS = [
    {"step": 1, "tokens": 100, "train/loss": 5.5, "lr": 0.5, "grad_norm": 2.0, "train/tok_per_sec": 50.0},
    {"step": 2, "tokens": 200, "train/loss": 5.25, "lr": 0.25, "grad_norm": 1e300, "train/tok_per_sec": 200.0},
    {"step": 4, "tokens": 300, "train/loss": 5.0, "train/tok_per_sec": 0, "val/loss": 4.5, "val/bpb": 6.5, "more": 1},
]
SECONDS = [0.0, 0.5, 0.5]  # of training since the first row


@pytest.fixture
def runs(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX")
    monkeypatch.chdir(tmp_path)
    for name in ("here/one", "here/two", "there/two"):
        Path(name).mkdir(parents=True)
        Path(name, "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return tmp_path


def events(path):
    """Return the events of a file: each has its length and a sum before it, and a sum after it."""
    from tensorboardX.proto.event_pb2 import Event

    content, found = path.read_bytes(), []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        found.append(Event.FromString(content[12 : 12 + length]))
        content = content[16 + length :]
    return found


def test_each_run_gets_a_folder_with_all_its_numbers(runs, capsys):
    for _ in range(2):  # the second replaces the first
        assert main(["plot", "here/one", "here/two", "there/two", "--to", "tensorboard", "--csv", "x.csv"]) == 0
    files = sorted(path for path in Path("tensorboard").rglob("*") if path.is_file())
    assert files == [Path("tensorboard", name, event_files.NAME) for name in ("here/one", "here/two", "there/two")]
    first, *rest = events(files[0])
    assert first.file_version == "brain.Event:2"
    assert [event.step for event in rest] == [1, 2, 4]
    assert [event.wall_time for event in rest] == SECONDS
    expected = [{key: row[key] for key in event_files.KEYS if key in row} for row in ROWS]
    del expected[1]["grad_norm"]  # no float32
    assert [{value.tag: value.simple_value for value in event.summary.value} for event in rest] == expected
    said = capsys.readouterr().out
    assert "tensorboard --logdir tensorboard" in said
    assert "loss in nats" not in said  # nothing is drawn


@pytest.mark.oracle
def test_tensorboard_reads_them(runs):
    multiplexer = pytest.importorskip("tensorboard.backend.event_processing.event_multiplexer").EventMultiplexer()
    assert main(["plot", "here/one", "here/two", "--to", "tensorboard", "--out", "made"]) == 0
    multiplexer.AddRunsFromDirectory("made").Reload()
    assert multiplexer.Runs().keys() == {"one", "two"}
    read = [(event.wall_time, event.step, event.value) for event in multiplexer.Scalars("two", "train/loss")]
    assert read == [(time, row["step"], row["train/loss"]) for time, row in zip(SECONDS, ROWS, strict=True)]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--out", "here/one/metrics.jsonl"], "cannot write into "),
        (["--out", "a\0b"], r"cannot write into a\x00b: "),
        (["--png", "x.png"], "--png changes nothing with --to"),
    ],
)
def test_what_cannot_be_written_is_one_line(runs, arguments, why, capsys):
    assert main(["plot", "here/one", "--to", "tensorboard", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"error: {why}")


def test_without_the_library_the_message_names_what_brings_it(monkeypatch):
    monkeypatch.setattr(event_files, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'needs tensorboardX\. Use pip install "byhand\[tensorboard\]"'):
        event_files.write({}, Path("made"))


def test_out_changes_nothing_for_a_drawing(capsys):
    assert main(["plot", "run", "--out", "made"]) == 2
    assert "--out changes nothing without --to tensorboard" in capsys.readouterr().err
