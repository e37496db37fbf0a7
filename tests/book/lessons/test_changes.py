"""Changes of an example's given numbers: their effects, and one-line refusals."""

import math

import pytest

from byhand.book.lessons.changes import before_and_after, with_changes
from byhand.book.lessons.examples import make
from byhand.book.words.language import say
from byhand.errors import ByhandError

GIVEN = {"A": [[1, 0], ["1/2", 2]], "B": [[0, 1], [1, 0]], "y": [0], "rate": "1/10"}
CHOICES = {"y": (0, 1)}


def value(name, label, *changes, exact=False):
    """The last number with this label."""
    steps = make(name, exact, changes).steps
    return [n.value for s in steps for n in s.numbers if say(n.label, "en") == label][-1]


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        (("A=B",), {"A": GIVEN["B"]}),
        (("A[0]=A[1]",), {"A": [["1/2", 2], ["1/2", 2]]}),
        (("A[0]=A[1]", "A[1]=A[0]"), {"A": [["1/2", 2], [1, 0]]}),
        (("A[1,0]=−√2",), {"A": [[1, 0], ["-sqrt(2)", 2]]}),
        ((" rate ＝ 1/5 ",), {"rate": "1/5"}),
        (("rate=A[1,1]",), {"rate": 2}),
        (("B=[[1/3, 0.5],[-1,2]]",), {"B": [["1/3", "0.5"], ["-1", "2"]]}),
        (("y=1",), {"y": ["1"]}),
    ],
)
def test_a_change_changes_what_it_names(changes, changed):
    before = {name: str(numbers) for name, numbers in GIVEN.items()}
    assert with_changes(GIVEN, changes, CHOICES) == GIVEN | changed
    assert {name: str(numbers) for name, numbers in GIVEN.items()} == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("A", "is not a change. Write it like"), ("", "is not a change"), ("A[]=1", "is not a change"),
        ("C=A", "names 'C', which the example does not have. Use one of A, B, y, rate"),
        ("A=[[1,2,3],[4,5,6]]", "puts 2 rows of 3 where A has 2 rows of 2"), ("A[0]=1", "puts one number where"),
        ("A=[[1,2],[3]]", "puts 2 rows of 1 and 2"), ("A[0,2]=1", "does not exist"), ("A[0,0,0]=1", "does not exist"),
        ("y=2", "y takes 0 or 1"), ("rate=fast", "is not a number"), ("rate=inf", "too large"),
        ("rate=1e7", "too large"),
        ("A=[1", "is not an array"), ("A=" + "[" * 90, "is not an array"), ("A=" + "1" * 2000, "is not a change"),
    ],
)  # fmt: skip
def test_what_cannot_be_changed_is_said_in_one_line(change, said):
    with pytest.raises(ByhandError) as error:
        with_changes(GIVEN, [change], CHOICES)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_exchanged_tokens_exchange_the_rows_of_the_output():
    exchanged = ("X[0]=X[1]", "X[1]=X[0]")
    for column in range(2):
        for row in range(2):
            assert value("matrix-core", f"O[{row},{column}]", *exchanged) == pytest.approx(
                value("matrix-core", f"O[{1 - row},{column}]")
            )


def test_a_causal_mask_leaves_queries_and_keys_nothing_to_learn():
    assert value("matrix-core", "L", "causal=1") == pytest.approx(math.log(2))
    for name in ("W_Q", "W_K"):
        assert all(value("matrix-core", f"∂{name}[{i},{j}]", "causal=1") == 0 for i in range(2) for j in range(2))
    assert value("matrix-core", "∂W_V[0,1]", "causal=1") != 0


def test_a_nudged_weight_moves_the_loss_by_its_gradient():
    up, down = (value("matrix-core", "L", f"W_Q[0,0]={w}") for w in ("1.001", "0.999"))
    assert (up - down) / 0.002 == pytest.approx(value("matrix-core", "∂W_Q[0,0]"), abs=1e-6)


@pytest.mark.parametrize("name", ["matrix-core", "matrix-core-rows", "multi-head", "sampling"])
def test_an_example_with_nothing_changed_is_the_example(name):
    own = {"matrix-core": "X=X", "matrix-core-rows": "y=y", "multi-head": "H=H", "sampling": "z=z"}[name]
    plain, same = make(name), make(name, changes=(own,))
    assert plain.steps == same.steps
    assert plain.given == same.given
    assert all(before == now for before, now in before_and_after(same, plain))


def test_nudges_agree_with_the_rules():
    steps = make("nudges").steps
    back, nudged = ({say(n.label, "en"): n.value for n in steps[k].numbers} for k in (6, 7))
    assert nudged == pytest.approx(back)
    change = value("nudges", "L(W[0,1] = 6.01)") - steps[10].numbers[0].value
    assert change / 0.01 == pytest.approx(value("nudges", "∂W[0,1]"))
