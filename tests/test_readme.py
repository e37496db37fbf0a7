"""The Python of README and guides runs as it stands, and every file that README names is there."""

import doctest
import re
from pathlib import Path

import pytest

from byhand.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
READMES = ["README.md", "README.zh-CN.md"]
MAPS = ["docs/guides/code-map.md", "docs/guides/code-map.zh-CN.md"]
PAGES = ["README", "docs/guides/training-and-generation", "docs/guides/python"]


@pytest.mark.parametrize("name", PAGES)
def test_the_python_of_the_tour(name):
    """That of the Chinese page is the same, so it runs once."""
    texts = [(ROOT / f"{name}{end}").read_text(encoding="utf-8") for end in (".md", ".zh-CN.md")]
    blocks, chinese = (re.findall(r"```python\n(.*?)```", text, re.DOTALL) for text in texts)
    assert blocks == chinese != []
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


def mapped(name):
    """Return the files and folders of the map of the code, as its rows name them: each part, and what is in it."""
    rows = [row.split("|") for row in (ROOT / name).read_text(encoding="utf-8").split("\n## ")[1].splitlines()]
    named = [[re.findall(r"`([\w./-]+(?:/|\.py))`", cell) for cell in row[1:3]] for row in rows if len(row) == 4]
    return [(part, inner) for parts, inside in named for part in parts for inner in ("", *inside)]


@pytest.mark.parametrize("name", MAPS)
def test_every_part_of_the_map_exists(name):
    places = mapped(name)
    assert len(places) > 50
    for part, inner in places:
        homes = [home for home in (ROOT / "src/byhand", ROOT) if (home / part).exists()]
        assert homes, part
        assert any((home / part / inner).exists() or (ROOT / inner).exists() for home in homes), (part, inner)


def test_both_languages_name_the_same_parts():
    assert set(mapped(MAPS[0])) == set(mapped(MAPS[1]))


def test_every_place_that_contributing_names_exists():
    """NAME is the stem of what is added: an equation, an optimizer or a page."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = re.findall(r"(?:`|^    |and )((?:src|docs|tests|\.ci)/[\w./-]+)", text, re.MULTILINE)
    assert len(places) > 30
    for place in places:
        stems = [place.replace("NAME", stem) for stem in ("adamw", "attention-index")]
        assert any((ROOT / stem).exists() for stem in stems), place
    heads = [section.partition("\n")[0] for section in text.split("\n## ")[1:]]
    assert {"A new equation", "A new optimizer", "A page of the book", "A new command"} <= set(heads)
