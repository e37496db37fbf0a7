from pathlib import Path

import pytest

import byhand.equations
from byhand.engine import registry

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", sorted(registry))
def test_has_its_file_and_its_test(name):
    assert (Path(byhand.equations.__file__).parent / f"{name}.py").is_file()
    test = HERE / f"test_{name}.py"
    assert test.is_file(), f"equation {name} has no {test.name}"
    assert f"check_gradient({name}" in test.read_text(encoding="utf-8"), f"{test.name} holds no derivative"


def test_each_is_public():
    assert all(getattr(byhand.equations, name) is equation for name, equation in registry.items())


def test_each_test_file_has_its_equation():
    stems = {path.stem.removeprefix("test_") for path in HERE.glob("test_*.py")} - {"every_equation", "broadcast"}
    assert stems <= set(registry)
