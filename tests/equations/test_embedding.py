import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import embedding
from byhand.errors import ShapeError
from equations.checks import close
from equations.strategies import Case, arrays, integers, lengths, shapes


@st.composite
def cases(draw):
    rows = draw(lengths)
    scale = draw(st.sampled_from(({}, {}, {"scale": 2.5})))
    return Case(draw(arrays(rows, draw(lengths))), draw(integers(*draw(shapes()), below=rows)), **scale)


@given(cases())
def test_forward_picks_rows(case):
    table, tokens = case.inputs
    e, _ = embedding.forward(table, tokens, **case.static)
    assert e.shape == (*tokens.shape, table.shape[1])
    for *place, c in np.ndindex(e.shape):
        assert e[(*place, c)] == table[tokens[tuple(place)], c] * case.static.get("scale", 1)


def test_repeated_tokens_add_up():
    tokens = np.array([[2, 0, 2], [2, 3, 0]])
    _, saved = embedding.forward(np.zeros((5, 2)), tokens)
    d_table, none = embedding.vjp(saved, np.arange(12.0).reshape(2, 3, 2))
    close(d_table, [[2 + 10, 3 + 11], [0, 0], [0 + 4 + 6, 1 + 5 + 7], [8, 9], [0, 0]])
    assert none is None


def test_no_tokens_no_gradient():
    _, saved = embedding.forward(np.ones((3, 2)), np.zeros((0, 4), dtype=int))
    close(embedding.vjp(saved, np.ones((0, 4, 2)))[0], np.zeros((3, 2)))


def test_wrong_inputs():
    with pytest.raises(ShapeError, match="tokens must be integers, not float64"):
        embedding.forward(np.ones((3, 2)), np.ones(2))
    with pytest.raises(ShapeError, match=r"table must be \(V, C\), not \(3,\)"):
        embedding.forward(np.ones(3), np.zeros(2, dtype=int))
