"""The laws of `checks`, for every equation: on the `cases` of its own test file, with its `LAWS` if it has any.

then     applied to the result before the derivative is compared: the result may not be finite
sources  False: a poisoned input reaches more of the result than the terms name
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import byhand.equations
from byhand.engine import Composite, registry
from equations.checks import check_gradient, check_halves, check_terms

HERE = Path(__file__).parent
EVERY = sorted(registry)
SINGLE = [name for name in EVERY if not isinstance(registry[name], Composite)]  # a composite's halves are its parts'


# imported here: a test file's own `given` may not run inside another
OWN = {name: import_module(f"equations.test_{name}") for name in EVERY if (HERE / f"test_{name}.py").is_file()}


def law(name: str, setting: str) -> dict[str, Any]:
    """Return an equation's own setting of a law, by its name."""
    settings = getattr(OWN[name], "LAWS", {})
    return {setting: settings[setting]} if setting in settings else {}


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
def test_gradient(name, data):
    check_gradient(registry[name], data.draw(OWN[name].cases()), **law(name, "then"))


@pytest.mark.parametrize("name", SINGLE)
@given(data=st.data())
def test_halves(name, data):
    check_halves(registry[name], data.draw(OWN[name].cases()))


@pytest.mark.parametrize("name", SINGLE)
@given(data=st.data())
def test_terms(name, data):
    check_terms(registry[name], data.draw(OWN[name].cases()), **law(name, "sources"))


def test_each_has_cases_and_is_public():
    for name, equation in registry.items():
        assert hasattr(OWN.get(name), "cases"), f"test_{name}.py draws no `cases`, on which the laws are held"
        assert getattr(byhand.equations, name) is equation


def test_each_test_file_has_its_equation():
    stems = {path.stem.removeprefix("test_") for path in HERE.glob("test_*.py")} - {"laws", "broadcast"}
    assert stems <= set(registry)
