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
        "erf": math.erf(0.25),
        "square": 0.0625,
        "positive": 0.25,
        "negative": -0.25,
    }
    for name, value in expected.items():
        term = function(name, number(0.25))
        assert math.isclose(term.value, value, rel_tol=1e-15)
        assert (term.op, term.parts) == (name, (number(0.25),))
    assert function("positive", number(-1)).value == 0
    assert function("exp", number(1000)).value == math.inf


def test_no_operation_hides_that_0_over_0_is_no_number():
    undefined = ratio(number(0), number(0))
    assert math.isnan(undefined.value)
    assert math.isnan(function("positive", undefined).value)


def test_an_element_says_where_it_was_read():
    term = element((np.array([[1.0, 2.0]]),), 0, (0, 1), "x")
    assert (term.label, term.value, term.source) == ("x[0,1]", 2.0, (0, (0, 1)))


def test_sums_lose_nothing():
    assert total(map(number, (1e16, 1.0, -1e16))).value == 1


def test_a_tree_for_json_names_what_it_read():
    x = np.array([[1.0, 2.0]])
    half = ratio(element((x, x), 1, (0, 1), "y"), number(4), "h")
    said = product((number(3, "k"), half)).as_json([{"name": "a"}, {"name": "b", "gradient": True}])
    assert said == {
        "label": "",
        "value": 1.5,
        "op": "product",
        "parts": [
            {"label": "k", "value": 3.0},
            {
                "label": "h",
                "value": 0.5,
                "op": "ratio",
                "parts": [
                    {
                        "label": "y[0,1]",
                        "value": 2.0,
                        "source": {"name": "b", "gradient": True, "index": [0, 1]},
                    },
                    {"label": "", "value": 4.0},
                ],
            },
        ],
    }


def test_a_part_in_several_places_is_written_out_once():
    mean = ratio(total(map(number, range(4))), number(4), "mean")
    squares = total(function("square", total((number(n), function("negative", mean)))) for n in range(4))
    first, *others = (part["parts"][0]["parts"][1]["parts"][0] for part in squares.as_json(())["parts"])
    assert (first["id"], first["op"], first["value"]) == (1, "ratio", 1.5)
    assert others == [{"ref": 1, "label": "mean", "value": 1.5}] * 3


def test_nothing_at_all_as_json():
    assert total(()).as_json(()) == {"label": "", "value": 0.0, "op": "sum", "parts": []}
