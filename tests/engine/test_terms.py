import math

import numpy as np

from byhand.engine.terms import element, function, largest, number, product, ratio, total


def test_values_are_worked_from_the_parts():
    two, three = number(2, "two"), number(3)
    assert total((two, three)).value == 5
    assert product((two, three, three)).value == 18
    assert ratio(two, three).value == 2 / 3
    assert largest((two, three)).value == 3
    assert total(()).value == 0
    assert product(()).value == 1


def test_functions():
    expected = {
        "exp": math.e**0.25,
        "log": math.log(0.25),
        "sqrt": 0.5,
        "tanh": math.tanh(0.25),
        "square": 0.0625,
        "positive": 0.25,
        "negative": -0.25,
    }
    for name, value in expected.items():
        term = function(name, number(0.25))
        assert math.isclose(term.value, value, rel_tol=1e-15)
        assert (term.op, term.parts) == (name, (number(0.25),))
    assert function("positive", number(-1)).value == 0


def test_nothing_over_nothing_is_nothing():
    assert ratio(number(0), number(0)).value == 0


def test_an_element_says_where_it_was_read():
    term = element((np.array([[1.0, 2.0]]),), 0, (0, 1), "x")
    assert (term.label, term.value, term.source) == ("x[0,1]", 2.0, (0, (0, 1)))


def test_sums_lose_nothing():
    assert total(map(number, (1e16, 1.0, -1e16))).value == 1
