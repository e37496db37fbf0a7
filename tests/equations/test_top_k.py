import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations import softmax, top_k
from byhand.errors import ShapeError
from equations.strategies import Case, distinct, integers, lengths, shapes

# softmax is finite where logits are -inf; a poisoned logit loses its rank, and with it its place
LAWS = {"then": softmax, "sources": False}


@st.composite
def cases(draw):
    return Case(draw(distinct(*draw(shapes(1)))), k=draw(st.integers(1, 5)))


def expected_kept(row, k):
    """Ids in order of falling logit, equal ones by id: the first k."""
    return set(sorted(range(len(row)), key=lambda i: (-row[i], i))[:k])


@st.composite
def ties(draw):
    return Case(draw(integers(draw(lengths), draw(st.integers(1, 9)), below=3)) - 1.0, k=draw(st.integers(1, 10)))


@given(cases() | ties())
def test_forward_keeps_exactly_k(case):
    (logits,), k = case.inputs, case.static["k"]
    z, _ = top_k.forward(logits, k=k)
    for place in np.ndindex(logits.shape[:-1]):
        kept = expected_kept(logits[place].tolist(), k)
        assert len(kept) == min(k, logits.shape[-1])
        assert z[place].tolist() == [v if i in kept else -np.inf for i, v in enumerate(logits[place].tolist())]


@given(cases() | ties())
def test_only_kept_logits_get_a_gradient(case):
    (logits,), k = case.inputs, case.static["k"]
    z, saved = top_k.forward(logits, k=k)
    d_z = np.arange(1.0, z.size + 1).reshape(z.shape)
    np.testing.assert_array_equal(top_k.vjp(saved, d_z, k=k)[0], np.where(np.isfinite(z), d_z, 0))


def test_ties_go_to_smaller_ids():
    assert top_k.forward(np.array([1.0, 2.0, 2.0, 2.0]), k=2)[0].tolist() == [-np.inf, 2, 2, -np.inf]


def test_k_must_be_positive():
    with pytest.raises(ShapeError, match="k must be at least 1, not 0"):
        top_k.forward(np.ones(3), k=0)
