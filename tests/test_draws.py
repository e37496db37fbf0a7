"""Hypothesis's draws in this suite depend on the test alone: not of the machine, the order or the day."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# Numbers from a wide range, drawn by the profile of the suite, in a process that has loaded what its argument says.
DRAW = """
import sys, importlib
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import conftest
for name in sys.argv[3:]:
    importlib.import_module(name)
from hypothesis import given, strategies as st

drawn = []

@given(st.integers(-10**6, 10**6), st.text(), st.floats())
def test(number, text, real):
    drawn.append((number, text, real.hex()))

for _ in range(2):
    test()
half = len(drawn) // 2
assert half == 20
assert drawn[:half] == drawn[half:], "the second run drew something else"
print(ascii(drawn))
"""


def drawn(tmp_path: Path, *modules: str, **environment: str) -> str:
    folder = tmp_path / "-".join(("empty", *modules, *environment))
    folder.mkdir()
    (folder / "draw.py").write_text(DRAW)
    command = [sys.executable, "draw.py", str(TESTS), str(TESTS.parent / "src"), *modules]
    tables = {
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / "tables")
    }  # of Unicode: seconds to make, the same for all
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | tables | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_draws_do_not_depend_on_what_is_loaded_nor_on_the_machine(tmp_path):
    plain = drawn(tmp_path)
    assert (
        drawn(tmp_path, "byhand.flops", "byhand.book.words.glossary", "bite", PYTHONHASHSEED="1", CI="true") == plain
    )
    assert drawn(tmp_path, PYTHONHASHSEED="2", CI="", GITHUB_ACTIONS="") == plain


def test_shuffling_changes_the_order_and_nothing_else(tmp_path):
    def collected(*options: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
        command += [str(TESTS / "formats"), str(TESTS / "files")]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False)
        return [line for line in done.stdout.splitlines() if "::" in line]

    plain, one, again, two = (
        collected(),
        collected("--shuffle=1"),
        collected("--shuffle=1"),
        collected("--shuffle=2"),
    )
    assert one == again
    assert len({tuple(order) for order in (plain, one, two)}) == 3
    assert sorted(plain) == sorted(one) == sorted(two)


@pytest.mark.parametrize("name", ["derandomize", "database", "phases"])
def test_no_test_has_settings_of_its_own_that_would_let_luck_in(name):
    files = [path for path in TESTS.rglob("*.py") if path != Path(__file__) and path.name != "conftest.py"]
    assert len(files) > 50
    for path in files:
        assert f"{name}=" not in path.read_text(encoding="utf-8"), (
            f"{path.name} sets {name}, which the profile decides"
        )
