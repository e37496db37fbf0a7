"""examples/port.c prints the digits of the page, and a mistake in it is named."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from byhand.book.port.naming import Printed, named, table

SOURCE = Path(__file__).resolve().parents[1] / "examples" / "port.c"
COMPILER = shutil.which(os.environ.get("CC", "cc"))
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def printed(folder, text, real="double"):
    """Compile a text in C99 without warnings, run it, and return the numbers that it prints."""
    (folder / "port.c").write_text(text, "utf-8")
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-DREAL={real}"]
    subprocess.run([str(COMPILER), *strict, "-O1", "-o", "port", "port.c", "-lm"], cwd=folder, check=True)
    return subprocess.run([folder / "port"], capture_output=True, check=True, text=True).stdout.split()


def test_it_prints_the_digits_of_the_page(tmp_path):
    assert printed(tmp_path, SOURCE.read_text("utf-8")) == [f"{x:.9g}" for x in table().right]


def test_in_float32_it_stays_within_what_the_page_promises(tmp_path):
    numbers = printed(tmp_path, SOURCE.read_text("utf-8"), "float")
    assert named([Printed.of(x) for x in numbers], table()).first is None


def test_a_mistake_in_it_is_named(tmp_path):
    wrong = SOURCE.read_text("utf-8").replace("1 / (real)sqrt(var + EPS)", "1 / ((real)sqrt(var) + EPS)")
    answer = named([Printed.of(x) for x in printed(tmp_path, wrong, "float")], table())
    assert [m.en for (m,) in answer.matches] == ["put eps outside the root"]
