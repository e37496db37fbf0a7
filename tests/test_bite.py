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
    counted = sum(1 for f in functions for _ in (*bite.mutants(f), *bite.mistakes(name, "vjp", f)))
    total, killed, equivalent = rows().get(name, (0, 0, 0))
    assert total == counted == killed + equivalent, f"run: python tests/bite.py {name} --write docs/{PAGE.name}"


def test_the_page_has_no_row_too_many():
    assert set(rows()) <= {name for name, _, _ in bite.targets([], "vjp")}, (
        f"run: python tests/bite.py --write {PAGE}"
    )


def test_a_run_of_the_script_writes_one_row_and_leaves_the_others(tmp_path):
    """The page lacks the row of relu, has one too many, and its sums are wrong; all that is mended."""
    page, text = tmp_path / PAGE.name, PAGE.read_text(encoding="utf-8")
    spoilt = re.sub(r"\| relu \|.*", "| no_longer | 5 | 5 | 0 | `test_gradient` (5) |", text)
    page.write_text(re.sub(r"\*\*all\*\* \| \d+", "**all** | 7", spoilt), encoding="utf-8")
    command = [sys.executable, Path(bite.__file__), "relu", "--write", page]
    run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "| relu | 3 | 3 | 0 |" in run.stdout
    assert run.stdout.endswith("0 mutants escaped.\n")
    assert page.read_text(encoding="utf-8") == text
