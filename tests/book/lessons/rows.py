"""A calculator for printed arithmetic, by nothing but the text: what a reader types in."""

import math
import re

FUNCTIONS = {name: getattr(math, name) for name in ("exp", "sqrt", "tanh", "erf", "cos", "sin")}
FUNCTIONS |= {"ln": math.log, "max": max, "inf": math.inf, "math_exp": math.exp}
SIGNS = str.maketrans({"−": "-", "×": "*", "∞": "inf"})
SPELLED = re.compile(r"[\d\s.,()*/+-]|(?<=\d)e(?=-?\d)|inf|" + "|".join(FUNCTIONS))


def worked(expression):
    """The value of printed arithmetic; None for what is none, such as words, or a sum with its middle left out."""
    text = expression.translate(SIGNS).replace("²", "**2")
    text = re.sub(r"(?<=[\d)])√", "*√", text)
    text = re.sub(r"√(\d+(?:\.\d+)?(?:e-?\d+)?)", r"sqrt(\1)", text).replace("√", "sqrt")
    if SPELLED.sub("", text):
        return None
    try:
        return float(eval(text, {"__builtins__": {}}, FUNCTIONS))
    except ZeroDivisionError:
        return math.nan


def agrees(expression, shown, digits=6):
    """Whether arithmetic gives a printed number in its last digit; None if either cannot be worked out.

    A number has six digits, zeros at the end left out, if no other number is said; 0 is 0 to six decimals.
    """
    value, number = worked(expression), worked(shown)
    if value is None or number is None:
        return None
    if not (math.isfinite(value) and math.isfinite(number)):
        return value == number or math.isnan(value)
    if number == 0:
        return abs(value) <= 5e-7
    place = math.floor(math.log10(min(abs(value), abs(number)) or 1)) + 1 - digits  # 0.999999 is not 1
    return abs(value - number) <= 0.50001 * 10.0**place
