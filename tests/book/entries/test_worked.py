"""The entry of every equation has the numbers that the equation and its derivative compute."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import byhand.book.entries
import byhand.equations  # noqa: F401 - fills the registry
from book.entries.computed import compute
from byhand.book.entries.contract import ENTRIES
from byhand.book.numbers.closed_form import array, latex, matrix, several, value
from byhand.engine import registry
from byhand.errors import ByhandError
from every import every
from hostile.outcome import soon

ROOT = Path(__file__).resolve().parents[3]
STEMS = sorted(registry)
TOLERANCE = 1e-13  # of the largest number: closed forms are exact, so only float64 rounding is left


def same(computed, written):
    expected = array(written)
    assert computed.shape == expected.shape
    finite = np.isfinite(expected)
    assert np.array_equal(computed[~finite], expected[~finite])
    scale = max(1.0, float(np.max(np.abs(expected[finite]), initial=0.0)))
    assert np.all(np.abs(computed[finite] - expected[finite]) <= TOLERANCE * scale)


@every(STEMS)
def test_numbers(stem):
    worked = ENTRIES[stem]
    computed = compute(worked)
    for result, written in zip(computed.results, several(worked.result), strict=True):
        same(result, written)
    assert set(computed.gradients) == set(worked.gradients)
    for name, written in worked.gradients.items():
        same(computed.gradients[name], written)


@every(STEMS)
def test_a_wrong_number_is_caught(stem):
    """The check above must be able to fail: move one expected number a little."""
    worked = ENTRIES[stem]
    computed = compute(worked)
    wrong = computed.results[0].copy()
    wrong.flat[0] += 1e-9
    with pytest.raises(AssertionError):
        same(wrong, several(worked.result)[0])


@every(STEMS)
def test_inputs_are_the_equations_symbols(stem):
    worked = ENTRIES[stem]
    symbols = registry[stem].inputs
    assert list(worked.inputs) == [s.name for s in symbols[: len(worked.inputs)]]
    left_out = symbols[len(worked.inputs) :]
    assert all(s.meaning.endswith("optional") for s in left_out)
    assert re.search(r"[\u4e00-\u9fff]", worked.note_zh)
    assert not re.search(r"[\u4e00-\u9fff]", worked.note)


def test_no_worked_file_is_left_over():
    files = {p.stem for p in (ROOT / "src/byhand/book/entries").glob("*.py")} - {"__init__", "contract"}
    assert files <= set(STEMS)


@pytest.mark.parametrize(
    ("written", "number", "tex"),
    [
        ("3/4", 0.75, r"\frac{3}{4}"),
        (-2, -2.0, "-2"),
        ("1/(1+exp(-1))", 1 / (1 + math.exp(-1)), r"\frac{1}{1 + e^{-1}}"),
        ("-(1-sqrt(2))/2", (math.sqrt(2) - 1) / 2, r"-\frac{1 - \sqrt{2}}{2}"),
        ("log(8/5)", math.log(1.6), r"\ln\left(\frac{8}{5}\right)"),
        ("2*(1+3)**2", 32.0, r"2 \cdot \left(1 + 3\right)^{2}"),
        ("-inf", -math.inf, r"-\infty"),
    ],
)
def test_closed_forms(written, number, tex):
    assert value(written) == pytest.approx(number, rel=1e-15)
    assert latex(written) == tex


@pytest.mark.parametrize(
    "written", ["", "1/0", "__import__('os')", "x", "9**9**9", "log(0)", "1 +", "True", "(-1)**0.5"]
)
def test_what_is_no_number_is_refused(written):
    with pytest.raises(ByhandError):
        value(written)


@pytest.mark.parametrize(
    "written",
    [
        "*".join(["10**100"] * 20),
        "((((9**100)**100)**100)**100)**100",
        "+".join(["1"] * 20_000),
        "(" * 5000 + "1" + ")" * 5000,
        "-" * 5000 + "1",
        "-" * 150 + "1",
        "(" * 99 + "1" + ")" * 99,
        "9" * 5000,
        "1e99999",
        "1" + "0" * 190 + "*1e300",
        "2**2**2**2**2**2**2",
        "inf-inf",
        "0*inf",
        "1_000",
        "0x10",
        "1j",
        "1if 1else 2",
        "'a'",
        '"\\d"',
        "[1]",
        "1,2",
        "sqrt",
        "sqrt(1, 2)",
        "sqrt(x=1)",
        "²",
        "١",
        "\udcff",
        "\0",
        "1\n+1",
    ],
    ids=lambda written: f"{written[:12]!r}",
)
def test_a_hostile_number_is_refused_at_once(written):
    with soon(written), pytest.raises(ByhandError) as refused:
        value(written)
    assert len(str(refused.value)) < 400


def test_fractions_that_grow_long_go_on_as_floats():
    assert value("*".join(["(1+1/3)"] * 25)) == pytest.approx((4 / 3) ** 25, rel=1e-14)
    assert value("1.0000000000001**100") == pytest.approx(1 + 1e-11, rel=1e-14)
    assert value("(((1.0000001**100)**100)**100)**100") == pytest.approx(math.exp(1e8 * math.log1p(1e-7)), rel=1e-6)
    assert value("(1/3)**100/(1/3)**99") == pytest.approx(1 / 3, rel=1e-14)
    assert value("(((1/3)**20)**10/((1/3)**20)**9)") == pytest.approx(3.0**-20, rel=1e-14)


def test_matrices_in_latex():
    assert matrix([[["1/2", 1]]]) == r"\begin{bmatrix}\frac{1}{2} & 1\end{bmatrix}"
    assert matrix("log(2)") == r"\ln 2"
