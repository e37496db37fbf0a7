"""`byhand --help` answers at once, and importing byhand imports next to nothing."""

import subprocess
import sys

import pytest

from byhand.cli.main import COMMANDS
from cli.inside import byhand
from cli.process import function_calls

HEAVY = {"numpy", "jax", "torch", "numba", "scipy", "argparse", "rich", "safetensors", "matplotlib"}
LOADED = "print(sorted({m.partition('.')[0] for m in __import__('sys').modules}))"


@pytest.mark.parametrize(
    "code",
    ["import byhand", "from byhand.cli.main import main; main(['--help'])", "import byhand.config, byhand.equations"],
)
def test_nothing_heavy_is_imported(code):
    done = subprocess.run([sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, check=True, text=True)
    loaded = set(eval_list(done.stdout.splitlines()[-1]))
    assert "byhand" in loaded
    assert not loaded & HEAVY


def eval_list(line: str) -> list[str]:
    import ast

    return ast.literal_eval(line)


def test_help_answers_at_once():
    """Some 17,000 calls are a few hundredths of a second, most of it Python's own start."""
    assert function_calls("--help") < 25_000


def test_help_lists_every_command_and_each_has_its_own():
    said = byhand("--help").stdout.decode()
    for name in COMMANDS:
        assert f"\n  {name} " in said
        done = byhand(name, "--help")
        assert done.returncode == 0, name
        assert b"{None}" not in done.stdout, name


@pytest.mark.parametrize("arguments", [[], ["tokenizer"], ["bench"], ["train"], ["sample"], ["where"]])
def test_help_fits_a_narrow_terminal(arguments):
    said = byhand(*arguments, "--help", COLUMNS="60").stdout.decode().splitlines()
    assert max(len(line) for line in said if "{" not in line) <= 60  # choices are on one line
    assert len(said) > 6


def test_version():
    import byhand as package

    assert byhand("--version").stdout.decode().split() == ["byhand", package.__version__]
