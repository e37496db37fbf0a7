"""The examples of `byhand.tracing` run as they stand: in its docstring, and in the guide, in both languages."""

import doctest
import re
from pathlib import Path

import pytest

from byhand import tracing

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
PAGES = ["equation-to-code.md", "equation-to-code.zh-CN.md"]


def test_the_docstring():
    tried = doctest.testmod(tracing)
    assert tried.attempted > 5
    assert tried.failed == 0


@pytest.mark.parametrize("name", PAGES)
def test_the_guide(name):
    blocks = re.findall(r"```python\n(>>> .*?)```", (GUIDES / name).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_both_languages_show_the_same_program():
    programs = [
        re.findall(r"^(?:>>>|\.\.\.) .*", (GUIDES / name).read_text(encoding="utf-8"), re.M) for name in PAGES
    ]
    assert programs[0] == programs[1]
