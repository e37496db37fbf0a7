"""A new command is in the READMEs and among those tested without a home and attacked."""

import logging
import os
import re
import signal
import sys
from pathlib import Path

import pytest

import test_places
from byhand.cli.main import COMMANDS
from byhand.cli.terminal import ending
from byhand.cli.terminal.interrupts import SIGNALS
from cli.inside import byhand

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_every_command_stands_in_the_tables_of_the_readme(name):
    rows = re.findall(r"^\|.*", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    named = set(re.findall(r"`byhand (\w+)", "\n".join(rows)))
    assert not set(COMMANDS) - named, f"add a row to {name}"


def test_every_command_is_run_without_a_home():
    run = {arguments[0] for arguments in test_places.COMMANDS.values()}
    assert not set(COMMANDS) - run, "add it to COMMANDS of tests/test_places.py"


def state():
    log, streams = logging.getLogger("byhand"), (sys.argv, sys.stdin, sys.stdout, sys.stderr)
    signals = [signal.getsignal(number) for number in SIGNALS]
    return dict(os.environ), os.getcwd(), log.handlers[:], log.level, streams, signals, ending._causes[:]


@pytest.mark.parametrize("arguments", [["info", "missing"], ["work", "gelu"], ["--help"], ["train", "--hosts", "x"]])
def test_a_command_inside_a_test_leaves_its_process_as_it_was(arguments, tmp_path):
    before = state()
    done = byhand(*arguments, cwd=tmp_path, LANG="zh_CN.UTF-8")
    assert done.stdout or done.stderr
    assert state() == before
