"""`--config`: TOML of every kind is settings, or one line that says why not."""

import os
import sys

import pytest

from byhand.cli.arguments.presets import PRESETS, with_toml
from byhand.errors import ConfigError
from hostile.outcome import soon


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a = " + b"[" * 100_00 + b"]" * 100_00, "nested more than 32 deep"),
        (b"a = " + b"[" * 50, "nested more than 32 deep"),
        (b"[" * 50, "nested more than 32 deep"),
        (b"a = " + b"{a=" * 40 + b"1" + b"}" * 40, "nested more than 32 deep"),
        (b"a." * 30_000 + b"a = 1", "more than 64 points"),
        (b"[" + b"a." * 30_000 + b"a]", "more than 64 points"),
        (b'"a".' * 10_000 + b"a = 1", "more than 64 points"),
        (b"steps = " + b"9" * 5000, "a number of more than 400 digits"),
        (b"lr = " + b"0" * 300 + b"." + b"1" * 300, "a number of more than 400 digits"),
        (b"steps = " + b"9" * 300, "'steps' is an integer of more than 64 bits"),
        (b"lr = 1" + b"0" * 399, "'lr' is an integer of more than 64 bits"),
        (b"[optim]\nlr = " + b"9" * 30, "'lr' is an integer of more than 64 bits"),
        (b"steps = [1]", "'steps' is a list, but must be a value"),
        (b"[steps]\na = 1", "'steps' is a table, but must be a value"),
        (b"[optim.lr]\na = 1", "'lr' is a table, but must be a value"),
        (b"[optimizer]\nlr = 1", "'optimizer' is a table"),
        (b"d-model = 8\nd_model = 16", " sets d_model twice: d-model and d_model. Leave out one of them."),
        (b"lr = 1\n[optim]\nlr = 1", " sets lr twice: lr and lr in [optim]."),
        (b"[optim]\nmin-lr = 1\nmin_lr = 1", " sets min_lr twice: min-lr in [optim] and min_lr in [optim]."),
        (b'x-"y" = 1', "is not TOML"),
        (b'"\\u001b-" = 1\n"\\u001b_" = 1', r" sets \x1b_ twice: \x1b- and \x1b_."),
        (b"model = 3", "unknown key 'model'"),
        (b"steps = nan", ": steps is nan, but must be a whole number, such as 1000."),
        (b"[optim]\nlr = inf", "must be a finite number"),
        (b"[optim]\nlr = -1", ": lr is -1, but must be at least 0. Use 0.003."),
        (b"n_heads = 3", ": n_heads 3 does not divide d_model 64. Use n_heads 2 or 4."),
        (b"data = 3", ": data is 3, but must be text in quotes, such as 'python-stdlib'."),
        (b"steps = true", ": steps is true, but must be a whole number"),
        (b"steps = 2020-01-01", ": steps is 2020-01-01, but must be a whole number"),
        (b'"\\u001b[31m" = 1', r"unknown key '\x1b[31m'"),
        (b'"' + b"x" * 9000 + b'" = 1', "unknown key 'xxx"),
        (b"\xff\xfe", "is not TOML: 'utf-8' codec can't decode"),
        (b"\0" * 100, "is not TOML"),
        (b'a = """' * 5000, "is not TOML"),
        (b"'''" * 9999, "is not TOML"),
        (b'a = "\\', "is not TOML"),
        (b"#" * (1 << 16) + b"#", "it holds more than 65,536 bytes"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_hostile_toml_is_one_line(tmp_path, content, words):
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with soon(content), pytest.raises(ConfigError) as error:
        with_toml(PRESETS["tiny"], path)
    assert words in str(error.value)
    assert str(path) in str(error.value)
    assert len(str(error.value)) < 500
    assert "\x1b" not in str(error.value)


def test_strings_and_comments_hold_what_they_like(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(
        "# " + "-" * 500 + " [[[[ ' \" " + "9" * 500 + "\n"
        'data = "' + "[{" * 40 + "'#" + "1" * 500 + '\\""\n'
        "steps = 7 # '''\n"
        "[optim]  # \"\"\"\nlr = 0.5\n"
    )  # fmt: skip
    config, named = with_toml(PRESETS["tiny"], path)
    assert (config.steps, config.optim.lr) == (7, 0.5)
    assert config.data.data.startswith("[{[{")
    assert named.keys() == {"steps", "data", "lr"}


@pytest.mark.parametrize("path", ["", "\0", "x" * 5000, ".", "missing\x1b[31m"])
def test_paths_of_every_kind(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="cannot read --config ") as error:
        with_toml(PRESETS["tiny"], path)
    assert "None" not in str(error.value)
    assert "\x1b" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs and devices")
def test_a_fifo_and_a_device_are_no_settings(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero"):
        with pytest.raises(ConfigError, match="it is not a regular file"):
            with_toml(PRESETS["tiny"], path)
