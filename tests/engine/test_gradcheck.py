import numpy as np
import pytest

from byhand.engine import Equation, Symbol, gradcheck, registry
from byhand.engine.terms import number
from byhand.equations import embedding, split_qkv


@pytest.fixture
def cube():
    """Make an equation y = x^3 whose derivative is a factor times the right one."""

    def make(factor):
        symbol = Symbol("x", "x", "(...)", "any array")
        return Equation(
            name="cube",
            title="Cube",
            latex="y = x^3",
            derivative="3 x^2",
            inputs=(symbol,),
            result=symbol,
            forward=lambda x: (x * x * x, (x,)),
            vjp=lambda saved, d: (factor * 3.0 * saved[0] * saved[0] * d,),
            terms=lambda index, inputs, result: number(0),
        )

    yield make
    registry.pop("cube", None)


X = np.array([0.5, -1.0, 2.0])
D = np.array([1.0, -2.0, 0.5])


def test_a_right_derivative_passes(cube):
    assert gradcheck(cube(1.0), X, d=D) < 1e-9


@pytest.mark.parametrize("factor", [0.0, -1.0, 1.001, 2.0])
def test_a_wrong_derivative_is_caught(cube, factor):
    assert gradcheck(cube(factor), X, d=D) > 0.4 * min(1.0, abs(factor - 1))


@pytest.mark.parametrize("forgotten", range(3))
def test_one_forgotten_element_is_caught(cube, forgotten):
    assert gradcheck(cube(np.where(np.arange(3) == forgotten, 0.0, 1.0)), X, d=D) > 0.01


@pytest.mark.parametrize("factor", [np.nan, np.inf])
def test_a_derivative_that_is_no_number_is_caught(cube, factor):
    assert gradcheck(cube(factor), X, d=D) == np.inf


def test_a_wrong_derivative_of_a_single_number_is_caught(cube):
    wrong = cube(2.0)
    assert gradcheck(wrong, np.array(0.5), d=np.array(1.0)) > 0.4
    assert gradcheck(wrong, np.array([0.5]), d=np.array([1.0])) > 0.4


def test_the_error_is_relative_also_where_all_is_small(cube):
    assert gradcheck(cube(2.0), X, d=1e-9 * D) > 0.4


def test_an_empty_input_has_no_error(cube):
    assert gradcheck(cube(2.0), np.ones((0, 3)), d=np.ones((0, 3))) == 0.0


def test_several_results_and_integer_inputs():
    x = np.random.default_rng(0).standard_normal((1, 2, 6))
    d = tuple(np.random.default_rng(k).standard_normal((1, 1, 2, 2)) for k in range(3))
    assert gradcheck(lambda x: split_qkv(x, n_heads=1), x, d=d) < 1e-9
    assert gradcheck(embedding, np.ones((3, 2)), np.array([2, 2, 0]), d=np.ones((3, 2))) < 1e-9


def test_an_input_without_influence_has_no_error():
    assert gradcheck(lambda x, y: x * 2.0, X, X, d=D) < 1e-9


def test_the_inputs_stay_as_they_were():
    x = X.copy()
    gradcheck(lambda x: x * x, x, d=D)
    assert x.tolist() == X.tolist()
