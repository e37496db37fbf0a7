#!/usr/bin/env python3
"""Set-up and the commands of a checkout; needs Python 3.11 or newer and nothing else.

    python3 dev.py run [flags of byhand train]   train a small GPT for about a minute, and sample from it
    python3 dev.py test [arguments of pytest]    run the whole test suite
    python3 dev.py check                         lint, format, types, import layers
    python3 dev.py docs                          bring generated pages up to date, and build the site
    python3 dev.py oracle                        compare with PyTorch (installs its CPU build)
    python3 dev.py lock                          compute the pinned requirements anew (needs uv)

Everything goes into the private environment .venv beside this file. Packages are pinned with hashes in
requirements/; nothing is installed again until those files, pyproject.toml or the interpreter change.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
BYHAND = VENV / ("Scripts/byhand.exe" if os.name == "nt" else "bin/byhand")
WANTED = {  # what is in requirements/GROUP.txt; each group needs the ones before it
    "run": ["--extra", "plot"],
    "fast": ["--extra", "fast"],
    "test": ["--group", "test"],
    "lint": ["--group", "lint"],
    "docs": ["--group", "docs"],
}
OPTIONAL = ("fast",)  # left out, with a line, where a platform has no wheels
FIRST_RUN = ["--preset", "nano", "--steps", "2000", "--data", "python-stdlib"]


def main() -> int:
    """Run the command that the first argument names."""
    if sys.version_info < (3, 11):  # noqa: UP036 (a checkout can meet any Python)
        print(f"error: this is Python {sys.version.split()[0]}, but byhand needs 3.11 or newer.", file=sys.stderr)
        return 2
    commands = {"run": run, "test": test, "check": check, "docs": docs, "oracle": oracle, "lock": lock}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        print(__doc__)
        return 0 if sys.argv[1:] in ([], ["-h"], ["--help"]) else 2
    os.chdir(ROOT)
    return commands[sys.argv[1]](sys.argv[2:])


def run(arguments: list[str]) -> int:
    """Train a small model on text that is on every machine with Python, then show what it writes."""
    prepare("fast")
    if "--resume" in arguments or "--help" in arguments:
        return call("-m", "byhand", "train", *arguments)
    folder = option(arguments, "--out") or free_folder()
    planned = option(arguments, "--minutes")
    begin_with = FIRST_RUN[-2:] if planned else FIRST_RUN
    code = call("-m", "byhand", "train", *begin_with, "--out", folder, *arguments)
    if code:
        return code
    print("\nA sample:\n", flush=True)
    code = call("-m", "byhand", "sample", folder, "--prompt", "def ", "--max-new-tokens", "400")
    command = BYHAND.relative_to(ROOT)
    print(
        f"\nThree things to try next:\n"
        f"  {command} sample {folder} --prompt 'import ' --temperature 0.5\n"
        f"  {command} plot {folder}\n"
        f"  {command} train --data YOUR_TEXT.txt --steps 2000"
    )
    return code


def test(arguments: list[str]) -> int:
    """Run the suite, two tests at a time, each with one BLAS thread."""
    prepare("test")
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    workers = [] if any(a.startswith("-n") for a in arguments) else ["-n", "2"]
    return call("-m", "pytest", *workers, *arguments, environment=environment)


def check(arguments: list[str]) -> int:
    """Format, lint, types, import layers; the first that complains decides."""
    prepare("lint")
    tools = VENV / PYTHON.parent.name
    for tool in (
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["basedpyright", "--pythonpath", str(PYTHON), "src"],
        ["lint-imports"],
    ):
        print("$", *tool, flush=True)
        code = subprocess.run([tools / tool[0], *tool[1:]], check=False).returncode
        if code:
            return code
    return 0


def docs(arguments: list[str]) -> int:
    """Write what is stale in docs/, then the site into build/site (or another folder)."""
    prepare("docs")
    return call("-m", "byhand.book.pages") or call("docs/site/build.py", *arguments)


def oracle(arguments: list[str]) -> int:
    """Run the comparisons with PyTorch; 2.13.0 is pinned, since a newer one may bring gigabytes of CUDA."""
    prepare("test")
    if subprocess.run([PYTHON, "-c", "import torch"], check=False, capture_output=True).returncode:
        print("installing torch 2.13.0", flush=True)
        subprocess.run([PYTHON, "-m", "pip", "install", "-q", "torch==2.13.0"], check=True)
    return call("-m", "pytest", "-m", "oracle", *arguments)


def lock(arguments: list[str]) -> int:
    """Write requirements/*.txt anew: one resolution for all supported Pythons and platforms."""
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "all.txt"  # one version of each package, whatever the group
        compile_requirements([word for wanted in WANTED.values() for word in wanted], constraints)
        for group, wanted in WANTED.items():
            compile_requirements([*wanted, "-c", str(constraints)], ROOT / "requirements" / f"{group}.txt")
    return 0


def compile_requirements(wanted: list[str], output: Path) -> None:
    """Resolve what is wanted for all supported Pythons and platforms at once, with hashes."""
    command = ["uv", "pip", "compile", "pyproject.toml", "--universal", "--generate-hashes", "--no-header"]
    command += ["--no-annotate", "--python-version", "3.11", "-q", *wanted, "-o", str(output)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def prepare(group: str) -> None:
    """Make the environment hold what this group needs, unless it already does."""
    if not PYTHON.exists():
        make_environment()
    for name in [*WANTED][: [*WANTED].index(group) + 1]:
        stamp = VENV / f"byhand-{name}.stamp"
        wanted = fingerprint(name)
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        print(f"installing what `dev.py {name}` needs into {VENV.name}, once", file=sys.stderr, flush=True)
        wheels = ["--only-binary", ":all:"] if name in OPTIONAL else []
        if not install(*wheels, "--require-hashes", "-r", f"requirements/{name}.txt"):
            if name not in OPTIONAL:
                sys.exit("error: installing failed; see above. Check the network and run the same command again.")
            print(f"there are no wheels of {name} for this platform; going on without", file=sys.stderr)
        if name == "run" and not install("--no-deps", "-e", "."):
            sys.exit("error: installing byhand failed; see above.")
        stamp.write_text(wanted)


def make_environment() -> None:
    """Create .venv with uv where it is installed, else with the standard library."""
    if uv := shutil.which("uv"):
        subprocess.run([uv, "venv", "-q", "--seed", "--python", sys.executable, str(VENV)], check=True)
        return
    made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False, capture_output=True, text=True)
    if made.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        print(made.stdout + made.stderr, file=sys.stderr)
        sys.exit("error: this Python cannot make environments. Install python3-venv, or uv, and try again.")


def install(*arguments: str) -> bool:
    """Install into .venv; False if that failed, for which the installer has its own words."""
    uv = shutil.which("uv")
    installer = [uv, "pip", "install", "--python", str(PYTHON)] if uv else [str(PYTHON), "-m", "pip", "install"]
    quiet = ["-q"] if uv else ["-q", "--disable-pip-version-check"]
    return subprocess.run([*installer, *quiet, *arguments], check=False).returncode == 0


def fingerprint(group: str) -> str:
    """Return what decides whether a group must be installed again."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("pyproject.toml", f"requirements/{group}.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def call(*arguments: str, environment: dict[str, str] | None = None) -> int:
    """Run the environment's Python and return its exit code; Ctrl-C is for the child, which knows what to save."""
    child = subprocess.Popen([PYTHON, *arguments], env={**os.environ, **(environment or {})})
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue


def option(arguments: list[str], flag: str) -> str | None:
    """Return the value of a flag, or None."""
    for i, argument in enumerate(arguments):
        if argument == flag and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
    return None


def free_folder() -> str:
    """Return the first of runs/first, runs/first-2, ... that is not there yet."""
    number = 1
    while (ROOT / "runs" / (name := "first" if number == 1 else f"first-{number}")).exists():
        number += 1
    return f"runs/{name}"


if __name__ == "__main__":
    sys.exit(main())
