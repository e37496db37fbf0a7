"""The pages that answer back, and a browser to read them; skipped, with a word, where one is missing."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from browser.webdriver import Browser, missing

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def pages_with(mark):
    """Return the pages in English that hold a generated block of this kind."""
    found = (page for page in DOCS.rglob("*.md") if not page.name.endswith(".zh-CN.md"))
    with_mark = (page for page in found if f"<!-- generated: {mark} " in page.read_text(encoding="utf-8"))
    return sorted(page.relative_to(DOCS).with_suffix("") for page in with_mark)


PAGES, EQUATIONS = pages_with("lesson"), pages_with("worked")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    if why := missing():
        pytest.skip(why)
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("no Sphinx: install the dependency group docs")
    folder = tmp_path_factory.mktemp("built") / "site"
    names = sorted({page.name for page in (*PAGES, *EQUATIONS)})
    command = [sys.executable, "-P", str(ROOT / "docs/site/build.py"), str(folder), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if why := missing():
        pytest.skip(why)
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()
