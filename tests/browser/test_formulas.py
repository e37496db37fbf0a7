"""Formulas are MathML in the page as it is built; what cannot be converted ends the build with a line."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from browser.conftest import PAGES, ROOT
from browser.test_live_pages import LANGUAGES, read

pytestmark = pytest.mark.browser


@pytest.fixture
def built(site, tmp_path):  # `site` skips where there is no Sphinx
    def build(text):
        (tmp_path / "index.md").write_text(f"# Title\n\n{text}\n", encoding="utf-8")
        flags = ["-q", "-W", "--keep-going", "--no-color", "-c", str(ROOT / "docs/site"), "-D", "html_static_path="]
        command = [sys.executable, "-m", "sphinx", *flags, str(tmp_path), str(tmp_path / "out")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done, (tmp_path / "out/index.html").read_text(encoding="utf-8")

    return build


@pytest.mark.parametrize("latex", [r"\unheard{x}", "{x", r"\left( x", "a & b"])
def test_what_is_no_formula_ends_the_build(built, latex):
    done, _ = built(f"Text {{math}}`{latex}`.")
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if "WARNING" in line)
    assert "index.md:3: WARNING: " in line
    assert line.partition(" [")[0].endswith(f"in the formula {latex}")


def test_an_empty_formula_ends_the_build(built):
    done, _ = built("Text {math}` `.")
    assert done.returncode == 1
    assert "index.md:3: WARNING: a formula is empty" in done.stderr


@pytest.mark.parametrize("length", ["[4pt]", "[-0.5em]", " [1.5ex]"])
def test_rows_that_stand_apart_are_rows(built, length):
    done, page = built(f"```{{math}}\n\\begin{{aligned}}\n& a = b \\\\{length}\n& c = d\n\\end{{aligned}}\n```")
    assert done.returncode == 0, done.stderr
    (formula,) = re.findall(r"<math.*?</math>", page, re.DOTALL)
    rows = ET.fromstring(formula).findall(".//mtr")
    assert ["".join(row.itertext()) for row in rows] == ["a=b", "c=d"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_latex_is_left(site, lang):
    for page in PAGES:
        text = (site / lang / f"{page}.html").read_text(encoding="utf-8")
        text = re.sub(r"<annotation.*?</annotation>|<code.*?</code>|<pre>.*?</pre>", "", text, flags=re.DOTALL)
        assert re.findall(r"\\(?:begin|frac|partial|mathrm|sqrt|quad|\(|\[)|\$", text) == [], page


def test_matrices_have_brackets_of_their_height(browser, site):
    """Only a font with a table for mathematics lets browsers stretch them; the site brings one."""
    read(browser, site)
    browser.devtools("Emulation.setEmulatedMedia", media="print", features=[])
    heights = """
        return [...document.querySelectorAll("mrow > mtable")].map((table) => [table.previousElementSibling, table]
          .map((e) => e.getBoundingClientRect().height)).filter(([bracket, table]) => table);
    """
    found = browser.run(heights)
    browser.devtools("Emulation.setEmulatedMedia", media="", features=[])
    assert len(found) > 20
    assert all(bracket > 0.8 * table for bracket, table in found)
