"""The README's Python runs as it stands, and every file that it names is there."""

import doctest
import re
from pathlib import Path

import pytest

from byhand.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
READMES = ["README.md", "README.zh-CN.md"]


@pytest.mark.parametrize("name", READMES)
def test_the_python_of_the_tour(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", READMES)
def test_every_file_and_command_that_is_named_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (ROOT / target.replace("\n", "")).exists(), target
    for path in re.findall(r"`((?:src|docs|tests)/[^`*]*)`", text):
        assert (ROOT / path).exists(), path
    for command in re.findall(r"(?:`|\$ )byhand (\w+)", text):
        assert command in COMMANDS, command
