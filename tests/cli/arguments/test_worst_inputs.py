"""The worst of what people type: one line, the right exit code, soon, in any locale."""

import os
import subprocess
import sys

import pytest

from cli.inside import byhand, train_gpt
from cli.process import PATIENCE, environment

posix = pytest.mark.skipif(sys.platform == "win32", reason="arguments of any bytes, devices and FIFOs")
TRAIN_GPT = "import sys; from byhand.__main__ import train_gpt; sys.exit(train_gpt())"


def start(*arguments, program=("-m", "byhand"), stdin=subprocess.DEVNULL, **extra):
    done = subprocess.run(
        [sys.executable, *program, *arguments],
        stdin=stdin,
        capture_output=True,
        env=environment(**extra),
        timeout=PATIENCE,
        check=False,
    )
    for said in (done.stderr, done.stdout):
        assert b"Traceback" not in said
        assert b"Warning" not in said
    return done


def refused(done):
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(b"error: ")
    assert done.stderr.count(b"\n") == 1
    assert len(done.stderr) < 1500
    return done.stderr.decode()


@posix
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "--" + "x" * 100_000], "there is no option"),
        (["train", "--steps", "9" * 5000], "has 5,000 digits"),
        (["train", "--steps=\udcff\udcfe"], r"--steps \udcff\udcfe is not an integer"),
        (["train", "--config", "/dev/zero"], "it is not a regular file"),
        (["train", "--config", "fifo"], "it is not a regular file"),
        (["train", "--config", "deep.toml"], "nested more than 32 deep"),
        (["grade", "fifo"], "it is not a regular file"),
        (["where", "x" * 120_000], "the query has 120,000 characters"),
        (["\udcff"], r"there is no command '\udcff'"),
        (["bench", "train", "--shape", "9" * 5000], "is not known"),
        (["worksheet", "--topic", "adamw", "--out", "deep.toml/x"], "cannot write into deep.toml/x"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_line_and_exit_code_2(arguments, words, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "deep.toml").write_bytes(b"a = " + b"[" * 60_000)
    assert words in refused(byhand(*arguments, cwd=tmp_path))


@posix
@pytest.mark.parametrize("argument", ["\udcff", "x" * 100_000])
def test_what_a_shell_can_pass_is_refused_by_a_process_too(argument):
    assert "there is no command" in refused(start(argument))


@posix
def test_a_quiz_that_is_answered_for_ever(tmp_path):
    with open("/dev/zero", "rb") as zeros:
        done = start("work", "gelu", "--quiz", stdin=zeros)
    assert done.returncode == 0
    assert b"not a number" in done.stdout
    command = f"yes 99 | {sys.executable} -m byhand work attention-index --quiz"
    done = subprocess.run(
        ["sh", "-c", command], env=environment(), capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0
    assert b"0 of 6 right" in done.stdout


@posix
@pytest.mark.parametrize("locale", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii:strict"}])
def test_any_bytes_in_any_locale(locale):
    done = start("where", "\udce4\udcb8 xyzzy 中\udcff", **locale)
    assert done.returncode == 1
    assert done.stderr.startswith(
        (b"no answer to ", "没有找到 ".encode())
    )  # where the locale can read it: in Chinese
    assert start("where", "-log p_y", "--lang", "zh", **locale).stdout.decode().startswith("交叉熵")


@posix
@pytest.mark.parametrize("arguments", [["--layers", "9" * 5000], ["--data", "/dev/full"], ["--lo\udcff"], [""]])
def test_the_seed_programs_arguments(arguments):
    refused(train_gpt(*arguments))


@posix
@pytest.mark.parametrize(("redirected", "code"), [(">/dev/full", 2), ("| true", 0), (">&-", 0), ("2>&-", 0)])
def test_the_seed_programs_streams(redirected, code):
    command = f"{sys.executable} -c '{TRAIN_GPT}' --help {redirected}"
    done = subprocess.run(
        ["sh", "-c", command], env=environment(), capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
