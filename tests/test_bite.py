import re
import subprocess
import sys
from pathlib import Path

import pytest

import bite

PAGE = Path(__file__).parents[1] / "docs" / "tests-that-bite.md"


def rows():
    """The page's table: what was broken, and how many mutants, killed ones and equivalent ones."""
    found = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: tuple(map(int, counts)) for name, *counts in found}


@pytest.mark.parametrize(("name", "functions"), [pytest.param(n, f, id=n) for n, f, _ in bite.targets([], "vjp")])
def test_the_page_counts_every_mutant(name, functions):
    total, killed, equivalent = rows()[name]
    assert total == sum(1 for f in functions for _ in bite.mutants(f)), f"stale: python tests/bite.py --write {PAGE}"
    assert total == killed + equivalent


def test_the_page_has_no_row_too_many():
    assert set(rows()) == {name for name, _, _ in bite.targets([], "vjp")}


def test_a_run_of_the_script():
    run = subprocess.run(
        [sys.executable, Path(bite.__file__), "relu"], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "| relu | 3 | 3 | 0 |" in run.stdout
    assert run.stdout.endswith("0 mutants escaped.\n")
