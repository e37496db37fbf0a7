#!/usr/bin/env python3
"""Set-up and the commands of a checkout; needs Python 3.11 or newer and nothing else.

    python3 dev.py run [flags of byhand train]   train a small GPT for about a minute, and sample from it
    python3 dev.py test [arguments of pytest]    run the test suite
    python3 dev.py fuzz [--minutes M] [NAME ...] look for new findings with fresh seeds
    python3 dev.py check                         lint, format, types, import layers
    python3 dev.py docs                          bring generated pages up to date, and build the site
    python3 dev.py browser                       read the pages that answer back in a real browser
    python3 dev.py oracle                        compare with PyTorch, transformers, llama.cpp (installs them)
    python3 dev.py release [TAG]                 build what a release publishes into dist/, and check it
    python3 dev.py lock                          regenerate the pinned requirements (needs uv)

Everything goes into the private environment .venv next to this file. Packages are pinned with hashes in
requirements/; nothing is installed again until those files, pyproject.toml or the interpreter change. After an
interrupt at any moment, the same command works again. Relative paths start from the current folder.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback from here on

ROOT = Path(__file__).resolve().parent
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

if sys.version_info < (3, 11):  # noqa: UP036 (a checkout can meet any Python)
    print(f"error: this is Python {sys.version.split()[0]}, but byhand needs 3.11 or newer.", file=sys.stderr)
    sys.exit(2)

sys.path.insert(0, str(ROOT / "setup"))

import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import tomllib  # noqa: E402

from environment import BIN, GROUPS, PYTHON, fail, install, prepare  # noqa: E402


def main() -> int:
    """Run the command that the first argument names."""
    known = (run, test, fuzz, check, docs, browser, oracle, release, lock)
    commands = {command.__name__: command for command in known}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        print(__doc__)
        return 0 if sys.argv[1:] in ([], ["-h"], ["--help"]) else 2
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, signal.SIGINT)
        if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, interrupted)
    return commands[sys.argv[1]](sys.argv[2:])


def interrupted(number: int, frame: object) -> None:
    """End with a line; `subprocess.run` kills the tool that it waits for."""
    os.write(2, b"\ninterrupted; run the same command again\n")
    sys.exit(128 + number)


def run(arguments: list[str]) -> int:
    """Train a small model on text that every Python installation has, then show what it writes."""
    prepare("fast")
    return become(ROOT / "setup" / "first_run.py", *arguments)


def test(arguments: list[str]) -> int:
    """Run the suite, three tests at a time (some only wait), each with one BLAS thread."""
    prepare("test")
    workers = [] if any(a.startswith("-n") for a in arguments) else ["-n", "3"]
    return pytest(*workers, *arguments)


def fuzz(arguments: list[str]) -> int:
    """Run Hypothesis and the attacks of tests/hostile on fresh seeds, for some minutes."""
    prepare("test")
    return become(ROOT / "tests" / "hostile" / "fuzz.py", *arguments, environment=ONE_THREAD)


def check(arguments: list[str]) -> int:
    """Format, lint, types, import layers; stop at the first that fails."""
    prepare("lint")
    for tool in (
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["basedpyright", "--pythonpath", str(PYTHON)],
        ["lint-imports"],
    ):
        print("$", *tool, flush=True)
        code = call([BIN / tool[0], *tool[1:]], folder=ROOT)
        if code:
            return code
    tsc = shutil.which("tsc")
    if not tsc:
        print("tsc: not installed, so the types of the pages' scripts are not checked", flush=True)
    return call([tsc, "--project", ROOT], folder=ROOT) if tsc else 0


def docs(arguments: list[str]) -> int:
    """Regenerate stale pages in docs/, then write the site into build/site (or another folder)."""
    prepare("docs")
    return python(ROOT / "docs" / "build") or python(ROOT / "docs" / "site" / "build.py", *arguments)


def browser(arguments: list[str]) -> int:
    """Read the pages with lessons in a real browser, where there is one with its chromedriver."""
    prepare("docs")
    return pytest("-m", "browser", *arguments)


def oracle(arguments: list[str]) -> int:
    """Compare with other programs, of which only the first is required: a newer torch may bring gigabytes of CUDA."""
    prepare("test")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    witnesses, models = groups["oracle"], groups["models"]
    for package in witnesses + models:
        name = package.partition("==")[0].replace("-", "_")
        if not python("-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{name}'))"):
            continue
        alone = ["--no-deps"] if package in models else []
        if (why := install(*alone, package)) and package == witnesses[0]:
            fail(f"cannot install {package}: {why}. Check the network and run the same command again.")
        if why:
            print(f"{package} cannot be installed here: tests that need it are skipped", file=sys.stderr, flush=True)
    return pytest("-m", "oracle", *arguments)


def release(arguments: list[str]) -> int:
    """Build the sdist, and from it the wheel, and check both; under a tag only what it names."""
    version = (ROOT / "src" / "byhand" / "version.py").read_text(encoding="utf-8").split('"')[-2]
    if arguments not in ([], [f"v{version}"]):
        fail(f"src/byhand/version.py says {version}, whose tag is v{version}. Change the version, or use this tag.")
    if arguments and f"\n## [{version}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        fail(f"CHANGELOG.md has no section [{version}]. Write it, then set the tag anew.")
    prepare("release")
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)  # all that it holds is published
    built = python("-m", "build", "--no-isolation", "--outdir", dist, ROOT)
    return built or python("-m", "twine", "check", "--strict", *sorted(dist.glob("byhand-*")))


def lock(arguments: list[str]) -> int:
    """Regenerate requirements/*.txt: one resolution for all supported Pythons and platforms."""
    if not shutil.which("uv"):
        fail("`dev.py lock` needs uv, which is not installed. See https://docs.astral.sh/uv/.")
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "all.txt"  # one version of each package, whatever the group
        code = compile_requirements([word for wanted in GROUPS.values() for word in wanted], constraints)
        for group, wanted in GROUPS.items():
            target = ROOT / "requirements" / f"{group}.txt"
            code = code or compile_requirements([*wanted, "-c", str(constraints)], target)
    return code


def compile_requirements(wanted: list[str], output: Path) -> int:
    """Resolve the wanted groups and extras for all supported Pythons and platforms at once, with hashes."""
    command = ["uv", "pip", "compile", "pyproject.toml", "--universal", "--generate-hashes", "--no-header"]
    command += ["--no-annotate", "--python-version", "3.11", "-q", "--no-progress", *wanted, "-o", str(output)]
    return call(command, folder=ROOT, quiet=True)


def call(command: list[str | Path], *, folder: Path | None = None, quiet: bool = False) -> int:
    """Run a tool that shares the terminal; return its exit code as a shell gives it."""
    output = subprocess.DEVNULL if quiet else None
    code = subprocess.run(command, cwd=folder, stdout=output, check=False).returncode
    return code if code >= 0 else 128 - code


def python(*arguments: str | Path) -> int:
    """Run the environment's Python in the current folder, from which it imports nothing."""
    return call([PYTHON, "-P", *arguments])


def become(*arguments: str | Path, environment: dict[str, str] | None = None) -> int:
    """Replace this process by the environment's Python, which then gets every signal itself."""
    command, variables = [PYTHON, "-P", *arguments], {**os.environ, **(environment or {})}
    if os.name == "posix":
        sys.stdout.flush()
        os.execve(PYTHON, [*map(str, command)], variables)
    signal.signal(signal.SIGINT, lambda number, frame: None)
    return subprocess.run(command, env=variables, check=False).returncode


def pytest(*arguments: str) -> int:
    """Run pytest on the paths that the user gives, or on the whole suite."""
    paths = [a for a in arguments if not a.startswith("-") and Path(a.partition("::")[0]).exists()]
    everything = [] if paths else [ROOT / "tests"]
    settings = ["-c", ROOT / "pyproject.toml", f"--rootdir={ROOT}"]
    return become("-m", "pytest", *settings, *arguments, *everything, environment=ONE_THREAD)


if __name__ == "__main__":
    sys.exit(main())
