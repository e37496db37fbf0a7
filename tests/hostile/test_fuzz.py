"""`dev.py fuzz` finds what there is to find, and repeats it; every attack is run with a few seeds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.process import PATIENCE, environment
from hostile import fuzz
from hostile.worker import find_attack

SAMPLES = {
    "good": "pass",
    "raises": "assert seed % 3, 'a multiple of three'",
    "exits": "raise SystemExit(3)",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "takes_memory": "global taken; taken = bytearray(300 << 20)",
    "takes_long": "import time; real = time.process_time; time.process_time = lambda: real() + 30",
    "warns": "import warnings; warnings.warn('beware')",
}
SEEDS = [211850684834426, 150765548917353]  # of the first two attacks of `good` for --seed 5
FOUND = {
    "raises": "AssertionError: a multiple of three",
    "exits": "SystemExit: 3",
    "crashes": "the process died: Fatal Python error: Segmentation fault",
    "takes_memory": "it takes too much memory",
    "takes_long": "it takes too long",
    "warns": "UserWarning: beware",
}


@pytest.fixture
def folder(tmp_path):
    for name, body in SAMPLES.items():
        (tmp_path / f"{name}.py").write_text(f"def attack(seed, folder):\n    {body}\n")
    (tmp_path / "no_attack.py").write_text("def other(): pass\n")
    return tmp_path


@pytest.fixture
def run(folder, capfd):
    """Run the script with arguments; return its exit code and what it and its processes said."""

    def ran(*arguments):
        code = fuzz.main(["--folder", str(folder), *map(str, arguments)])
        return code, capfd.readouterr().out

    return ran


def test_nothing_is_found_where_nothing_is(folder):
    command = [sys.executable, fuzz.HERE / "fuzz.py", "--folder", folder, "--minutes", "0.01", "--seed", "5", "good"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"seed 5\ngood: [\d,]+ attacks, [\d.,]+ a second, 0 findings\n", done.stdout)


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measures memory as Linux does")
def test_what_there_is_to_find_is_found_and_repeated(run, name):
    code, said = run("--minutes", 0.001, "--seed", 5, "--jobs", 1, name)
    assert code == 1, said
    assert f"FOUND by {name}: {FOUND[name]}" in said
    again = re.search(rf"repeat: python3 dev.py fuzz (--seed 5 {name} --repeat \d+)\n", said)
    assert again
    code, said = run(*again[1].split())
    assert code != 0
    assert name == "crashes" or FOUND[name] in said


def test_what_hangs_is_ended(folder, monkeypatch):
    (folder / "hangs.py").write_text("import threading\ndef attack(seed, folder):\n    threading.Event().wait()\n")
    monkeypatch.setattr(fuzz, "GRACE", 1.0)
    tally = fuzz.explore("hangs", 5, 1.0, 1, folder)
    assert list(tally.findings) == ["the process died: exit code -9"]


def test_a_seed_gives_the_same_attacks(folder):
    assert [fuzz.seed_of(5, "good", i) for i in (0, 1)] == SEEDS
    assert fuzz.modules(folder) == sorted(SAMPLES)


def test_another_seed_is_printed_each_time(run):
    assert run("--minutes", 0, "good") != run("--minutes", 0, "good")


def test_property_tests_are_run_with_the_seed():
    tally = fuzz.explore(fuzz.HYPOTHESIS, 5, 0.5, 1, fuzz.HERE.parent / "files" / "attacks")
    assert tally.attacks >= 1
    assert not tally.findings


@pytest.mark.parametrize("count", [20, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", fuzz.modules())
def test_every_attack_holds_for_some_seeds(name, count, tmp_path, capfd):
    attack = find_attack(name, str(fuzz.HERE))
    for number in range(count):
        folder = tmp_path / str(number)
        folder.mkdir()
        attack(fuzz.seed_of(0, name, number), folder)
