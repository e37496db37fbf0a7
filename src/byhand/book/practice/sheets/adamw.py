"""Two steps of AdamW on two parameters from zero moments, without eps, with gradients that are powers of two."""

from byhand.book.lessons.forward_steps import update_step
from byhand.book.numbers.closed_form import array
from byhand.book.practice.sheets import Drawn, Picker

SIZES = ("1/2", 1, 2, 4, "-1/2", -1, -2, -4)


def draw(picker: Picker) -> Drawn:
    """Draw parameters and gradients; the second gradient of the first parameter repeats the first."""
    theta = [picker.one((-3, -2, 2, 3)), picker.one((-2, -1, 1, 2))]
    first = [picker.one(SIZES), picker.one(SIZES)]
    second = [first[0], picker.one(SIZES)]
    settings = {"beta1": 0.9, "beta2": 0.99, "eps": 0.0, "weight_decay": picker.one((0.0, 0.1))}
    rate = picker.one((0.1, 0.01))
    zero = array([0, 0])
    one, (new, m, v) = update_step("θ", array(theta), array(first), zero, zero, rate, 1, "g_1", **settings)
    two, _ = update_step("θ'", new, array(second), m, v, rate, 2, "g_2", **settings)
    given = (
        ("θ", theta),
        ("g_1", first),
        ("g_2", second),
        ("lr", rate),
        *((name, value) for name, value in settings.items()),
    )
    return given, (one, two)
