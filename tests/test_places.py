"""Every command where there is no home to write to: unset, without an entry in passwd, missing, or not writable."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.inside import byhand
from cli.process import PATIENCE, TINY, environment, write_text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps homes otherwise")

# A user whom the system does not know, as in many containers: `sitecustomize` is what Python imports first.
NOBODY = """
import pwd
def getpwuid(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = getpwuid
"""
PLACES = {
    "unknown user": {},
    "missing": {"HOME": "/proc/no/such/folder"},
    "a file": {"HOME": "/dev/null"},
    "not writable": {"HOME": "/proc"},  # by no user, root included
}
if hasattr(os, "geteuid") and os.geteuid() != 0:  # as root these tests would write there
    PLACES |= {"the root folder": {"HOME": "/"}, "empty": {"HOME": ""}}
COMMANDS = {
    "help": ["--help"],
    "where": ["where", "softmax"],
    "explain": ["explain", "run", "--prompt", "the ", "logits[0,0,1]"],
    "work": ["work", "matrix-core"],
    "worksheet": ["worksheet", "--topic", "backprop", "--out", "sheets"],
    "doctor": ["doctor"],
    "plan": ["plan", "--of", "decode", "--steps", "0"],
    "info": ["info", "run"],
    "runs": ["runs", "."],
    "tokenizer": ["tokenizer", "train", "text.txt", "--vocab-size", "260", "--out", "tokens.json"],
    "export": ["export", "run", "--to", "hf", "--out", "exported"],
    "import": ["import", "foreign", "--out", "imported"],
    "grade": ["grade", "sheet.md"],
    "port": ["port", "3.92195838", "5.52606013"],
    "break": ["break", "no_mask"],
    "plot": ["plot", "run"],
    "sample": ["sample", "run", "--max-new-tokens", "5", "--runtime", "numpy"],
    "chat": ["chat", "run", "--max-new-tokens", "5", "--runtime", "numpy"],
    "serve": ["serve", "--help"],
    "explore": ["explore", "--help"],
    "eval": ["eval", "run", "--data", "text.txt", "--runtime", "numpy"],
    "bench": ["bench", "train", "--runtime", "numpy", "--shape", "tiny", "--steps", "2"],
    "train": ["train", *TINY, "--runtime", "numpy", "--data", "text.txt", "--out", "new"],
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    write_text(folder / "text.txt")
    train = ["train", *TINY, "--no-lm-head-bias", "--runtime", "numpy", "--data", "text.txt", "--out", "run"]
    done = byhand(*train, cwd=folder)
    assert done.returncode == 0, done.stderr
    done = byhand("export", "run", "--to", "hf", "--out", "foreign", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "sheet.md").write_text("byhand worksheet: topic=adamw seed=1\n1.1 = 3\n", encoding="utf-8")
    return folder


# One process runs them all: what an import does without a home, it does once.
EACH = """
import json, os, sys
from byhand.cli.main import main
for arguments in json.loads(sys.argv[1]):
    before = set(os.listdir("."))
    code = main(arguments)
    sys.stdout.flush()
    print(f"\\n{arguments[0]} ended: {code}; left: {sorted(set(os.listdir('.')) - before)}", file=sys.stderr)
"""


def works(folder: Path, place: str, *commands: list[str]) -> None:
    """Run commands in a copy of the folder, with only what a place says about the user's home."""
    nobody = folder.parent / f"{folder.name}-nobody"
    nobody.mkdir(exist_ok=True)
    (nobody / "sitecustomize.py").write_text(NOBODY)
    unset = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NUMBA_CACHE_DIR", "BYHAND_CACHE", "MPLCONFIGDIR")
    kept = {name: value for name, value in environment().items() if name not in unset}
    path = os.pathsep.join([str(nobody), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", EACH, json.dumps(commands)],
        cwd=folder,
        env={**kept, "PYTHONPATH": path, **PLACES[place]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    said = done.stderr.decode()
    assert done.returncode == 0, said
    assert "Traceback" not in said
    assert "error" not in said.lower(), said
    ended = re.findall(r"^([-\w]+) ended: (\d+); left: (.*)$", said, re.MULTILINE)
    assert [(name, code) for name, code, _ in ended] == [(command[0], "0") for command in commands], said
    left = {name for *_, names in ended for name in ast.literal_eval(names)}
    assert left <= {"new", "sheets", "run.png", "tokens.json", "exported", "imported"}, said


OWN_FOLDERS = ("where", "tokenizer", "plot", "sample", "train")  # commands that ask for those of the user


@pytest.mark.parametrize("names", [OWN_FOLDERS, pytest.param(COMMANDS, marks=pytest.mark.slow)], ids=len)
def test_commands_work_for_a_user_whom_the_system_does_not_know(tmp_path, trained, names):
    works(shutil.copytree(trained, tmp_path / "here"), "unknown user", *(COMMANDS[name] for name in names))


@pytest.mark.parametrize(
    "place",
    [pytest.param(place, marks=[] if place == "not writable" else pytest.mark.slow) for place in PLACES],
)
def test_a_home_that_cannot_be_used_hinders_nothing(tmp_path, trained, place):
    folder = shutil.copytree(trained, tmp_path / "here")
    works(folder, place, *(COMMANDS[name] for name in ("plot", "train")))


def test_a_plot_compiles_nothing(tmp_path, trained):
    """Numba refuses to cache what it compiles of a package in a folder that one may not write to."""
    folder = shutil.copytree(trained, tmp_path / "here")
    code = "import sys\nfrom byhand.cli.main import main\nmain(['plot', 'run'])\nassert 'numba' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_compiled_code_needs_no_home(tmp_path, trained, place):
    folder = shutil.copytree(trained, tmp_path / "here")
    works(
        folder,
        place,
        COMMANDS["doctor"],
        ["train", *TINY, "--runtime", "loops", "--data", "text.txt", "--out", "new"],
    )
