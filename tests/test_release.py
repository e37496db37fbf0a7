"""What a release publishes: a wheel with all that the package reads, which works where there is no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from byhand import __version__
from cli.process import PATIENCE, TINY, environment, write_text

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
READ = ("py.typed", "book/finding/index.json", "book/lessons/roles.toml", "web/index.html", "web/vendor/lit-html.js")
INSTALLED = """
import sys
from byhand.cli.main import main
for line in {lines!r}:
    print("$", *line, flush=True)
    assert main(line) == 0, line
assert {checkout!r} not in sys.path
"""
PAGE = """
from byhand.serving.page import FILES
print(len(FILES), FILES["/"].content.decode())
"""


def run(*command: object, cwd: Path, **extra: str) -> str:
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=environment(**extra),
        capture_output=True,
        timeout=PATIENCE,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(kind: str, source: Path, out: Path) -> Path:
    """Build as `dev.py release` does, without a network."""
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", out, cwd=source)
    return next(out.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as files:
        return {name: files.read(name) for name in files.namelist() if not name.endswith("/")}


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    assert wheel.name == f"byhand-{__version__}-py3-none-any.whl"
    found = contents(wheel)
    package = {path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    expected = {path.relative_to(ROOT / "src").as_posix(): path.read_bytes() for path in package}
    about = f"byhand-{__version__}.dist-info/"
    assert {name: content for name, content in found.items() if not name.startswith(about)} == expected
    assert expected.keys() >= {f"byhand/{name}" for name in READ}
    licences = {name.rpartition("/")[2] for name in found if name.startswith(f"{about}licenses/")}
    assert licences == {"LICENSE", *(path.name for path in (ROOT / "src/byhand/web/vendor").glob("*.LICENSE"))}
    assert b"byhand = byhand.__main__:main" in found[f"{about}entry_points.txt"]


def test_the_sdist_builds_the_same_wheel(wheel, tmp_path):
    with tarfile.open(built("sdist", ROOT, tmp_path / "sdist")) as sdist:
        sdist.extractall(tmp_path, filter="data")
    again = built("wheel", tmp_path / f"byhand-{__version__}", tmp_path / "again")
    assert contents(again) == contents(wheel)


def test_it_works_where_it_is_installed_alone(wheel, tmp_path):
    """The environment has the wheel and the libraries, but not the checkout: no .pth beside them is followed."""
    pytest.importorskip("pip")
    venv.create(tmp_path / "venv", symlinks=os.name != "nt")
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    alone = {"PYTHONPATH": ""}
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "-q", "--no-index", "--no-deps", "--no-compile", wheel, cwd=tmp_path)
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    libraries = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (packages / "libraries.pth").write_text("\n".join(libraries))

    assert run(scripts / "byhand", "--version", cwd=tmp_path, **alone) == f"byhand {__version__}\n"
    text = write_text(tmp_path / "text.txt")
    train = ["train", *TINY, "--steps", "2", "--runtime", "numpy", "--data", text.name, "--out", "run"]
    lines = [["where", "causal mask"], ["work", "cross-entropy"], train, ["sample", "run", "--runtime", "numpy"]]
    said = run(python, "-c", INSTALLED.format(lines=lines, checkout=str(ROOT / "src")), cwd=tmp_path, **alone)
    assert re.search(r"forward +byhand/equations/causal_softmax\.py:\d+", said)
    assert "0.236883" in said
    assert (tmp_path / "run" / "step-00000002" / "model.safetensors").exists()
    pytest.importorskip("fastapi")
    assert re.match(r"\d\d <!doctype html>", run(python, "-c", PAGE, cwd=tmp_path, **alone))


def test_a_tag_publishes_only_its_own_version():
    for tag in ("v0.9", __version__, "v", "--help"):
        done = subprocess.run([sys.executable, ROOT / "dev.py", "release", tag], capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr == (
            f"error: src/byhand/version.py says {__version__}, whose tag is v{__version__}. "
            "Change the version, or use this tag.\n"
        )


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_commits_of_actions_and_commands_that_exist(path):
    """A tag of an action can move; a commit cannot."""
    text = path.read_text(encoding="utf-8")
    for action in re.findall(r"uses: *(.*)", text):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+|\./\.github/workflows/\w+\.yml", action), action
    for command in re.findall(r"python dev\.py (\w+)", text):
        assert f"\ndef {command}(" in (ROOT / "dev.py").read_text(encoding="utf-8")
    assert text.count("id-token: write") == (path.stem in ("release", "site"))


def test_workflows_and_metadata_name_the_same_pythons():
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {line.rpartition(" ")[2] for line in ours["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert named == set(re.findall(r'"(3\.\d+)"', (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")))
    assert f"abstract: {ours['description']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
