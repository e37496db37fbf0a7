"""What reaches a terminal: help of any width, and no characters of others that steer it."""

import contextlib
import json
import logging
import os
import subprocess
import sys
from base64 import b64encode

import pytest

from byhand.cli.terminal.progress import Display
from byhand.cli.terminal.say import say, say_what_is_logged, show, show_json
from byhand.cli.terminal.shown import on_terminal
from byhand.files import sealed
from byhand.runs.trainer import Progress
from cli.inside import byhand
from cli.process import environment, write_text

TINY = ["--preset", "tiny", "--seq-len", 8, "--d-model", 8, "--batch-size", 2, "--steps", 1, "--runtime", "numpy"]


@pytest.mark.parametrize("columns", ["1", "5", "0", "-3", "x"])
def test_help_ends_on_a_terminal_of_any_width(columns):
    done = byhand("info", "--help", COLUMNS=columns)
    assert done.returncode == 0
    assert b"usage: byhand info" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize(
    ("settings", "coloured"),
    [
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb", "NO_COLOR": ""}, False),
    ],
    ids=str,
)
def test_help_obeys_who_wants_no_colour(settings, coloured):
    import pty

    reading, terminal = pty.openpty()
    command = [sys.executable, "-m", "byhand", "info", "--help"]
    process = subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environment(**settings))
    os.close(terminal)
    said = b""
    with contextlib.suppress(OSError):  # Linux's error once no writer is left
        while part := os.read(reading, 4096):
            said += part
    os.close(reading)
    assert process.wait() == 0
    assert b"last losses" in said
    assert (b"\x1b" in said) == coloured
    assert b"\x1b" not in byhand("info", "--help", **settings).stdout, "a pipe has no colours"


def test_names_of_others_steer_no_terminal(tmp_path):
    text = write_text(tmp_path / "t\x1b[31m.txt", 400)
    done = byhand("train", *TINY, "--data", text, "--out", "a\x1b[31mb", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    resumed = byhand("train", "--resume", "a\x1b[31mb", cwd=tmp_path)
    measured = byhand("eval", "a\x1b[31mb", "--data", text, cwd=tmp_path)
    told = byhand("info", "a\x1b[31mb", cwd=tmp_path)
    for each in (done, resumed, measured, told):
        assert each.returncode == 0
        assert b"\x1b" not in each.stdout + each.stderr
        assert b"\\x1b[31m" in each.stdout


def test_a_checkpoint_of_others_steers_no_terminal(tmp_path):
    text = write_text(tmp_path / "text", 400)
    assert byhand("train", *TINY, "--data", text, "--out", "run", cwd=tmp_path).returncode == 0
    step = tmp_path / "run" / "step-00000001"
    state = json.loads((step / "trainer_state.json").read_bytes())
    state["versions"] = {"\x1b[31m": "\x9b31m\u202e"}
    contents = {p.name: p.read_bytes() for p in step.iterdir() if p.name != "manifest.json"}
    contents["trainer_state.json"] = (json.dumps(state, indent=2, sort_keys=True) + "\n").encode()
    (step / "trainer_state.json").write_bytes(contents["trainer_state.json"])
    (step / "manifest.json").write_bytes(
        sealed.manifest(sealed.entries({name: [content] for name, content in contents.items()}))
    )
    done = byhand("info", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert rb"\x1b[31m" in done.stdout
    assert not {"\x1b", "\x9b", "\u202e"} & set(done.stdout.decode())


HOSTILE = "t\x1b[2J\r\nerror: \x9b31m\u202e中文\u200d"


@pytest.fixture
def logged(capsys):
    """Log a message as the package does while a command runs; return what the command says."""

    def run(level, message, *words):
        say_what_is_logged()
        logging.getLogger("byhand.somewhere").log(level, message, *words)
        return capsys.readouterr().err

    return run


def test_what_is_logged_is_one_line_of_visible_characters(logged):
    seen = r"t\x1b[2J error: \x9b31m\u202e中文" + "\u200d"
    assert logged(logging.INFO, "missing: %s", HOSTILE) == f"missing: {seen}\n"
    assert logged(logging.WARNING, "%s", HOSTILE) == f"warning: {seen}\n"
    assert len(logged(logging.WARNING, "%s", "x" * 100_000)) < 1100


def test_whatever_is_said_or_shown_steers_no_terminal(capsys):
    say(HOSTILE)
    assert capsys.readouterr().err == r"t\x1b[2J\r\nerror: \x9b31m\u202e中文" + "\u200d\n"
    show("a\n", HOSTILE)
    assert capsys.readouterr().out == "a\n\n" + r"t\x1b[2J\r" + "\n" + r"error: \x9b31m\u202e中文" + "\u200d\n"
    show_json({"text": HOSTILE, "del": "\x7f"}, indent=1)
    said = capsys.readouterr().out
    assert said.replace("\n", "").replace("\u200d", "").isprintable()
    assert "中文" in said
    assert json.loads(said) == {"text": HOSTILE, "del": "\x7f"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_a_text_whose_name_is_hostile_forges_no_line(tmp_path, monkeypatch):
    """The name is logged while the text is encoded, and shown when it is done."""
    monkeypatch.setattr("byhand.corpus.encoding.cache_folder", lambda: tmp_path / "cache")  # where it is not kept yet
    text = write_text(tmp_path / "t\x9b31m\nerror: forged", 4000)
    (tmp_path / "t.tiktoken").write_bytes(
        b"".join(b64encode(bytes([i])) + b" %d\n" % i for i in range(256)) + b"YWI= 256\n"
    )  # and ab
    done = byhand("train", *TINY, "--tokenizer", "t.tiktoken", "--data", text, "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "encoding 4,000 bytes once" in said
    assert "\x9b" not in said
    assert not any(line.startswith("error") for line in said.splitlines())


def test_a_sample_on_a_terminal_keeps_its_lines_only():
    assert on_terminal("a\n\tb中\x1b[2J\x07\u202e") == "a\n\tb中\\x1b[2J\\x07\\u202e"


def test_a_step_shows_the_validation_loss_of_its_own_evaluation_alone(capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    display = Display(0)
    for step, val in ((1, None), (2, 2.5), (3, None)):
        display.show(Progress(step, 20, 3.0, 1e-3, 1.0, step, 100.0, val))
    assert [" val 2.5000 " in line for line in capsys.readouterr().err.splitlines()] == [False, True, False]
