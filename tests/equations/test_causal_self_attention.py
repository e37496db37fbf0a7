import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.engine import Tensor, no_grad
from byhand.equations import causal_self_attention
from byhand.errors import ShapeError
from equations.checks import check_gradient, close
from equations.strategies import Case, arrays, lengths


@st.composite
def cases(draw):
    b, t, heads, head_width = draw(lengths), draw(lengths), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    c = heads * head_width
    shapes = ((b, t, c), (c, 3 * c), (3 * c,), (c, c), (c,))
    return Case(*(draw(arrays(*shape)) for shape in shapes), n_heads=heads, causal=draw(st.booleans()))


def by_loops(h, w_qkv, b_qkv, w_proj, b_proj, n_heads, causal):
    """One head, one query, one key at a time."""
    n_batch, n_tokens, width = h.shape
    head_width = width // n_heads
    mixed = np.zeros(h.shape)
    for b in range(n_batch):
        rows = [[sum(x * w for x, w in zip(row, w_qkv.T[o], strict=True)) + b_qkv[o] for o in range(3 * width)]
                for row in h[b]]  # fmt: skip
        for head in range(n_heads):
            first = head * head_width
            for t in range(n_tokens):
                seen = range(t + 1 if causal else n_tokens)
                scores = [
                    sum(rows[t][first + d] * rows[s][width + first + d] for d in range(head_width))
                    / math.sqrt(head_width)
                    for s in seen
                ]
                total = sum(math.exp(x) for x in scores)
                for s in seen:
                    for d in range(head_width):
                        mixed[b, t, first + d] += math.exp(scores[s]) / total * rows[s][2 * width + first + d]
    return np.einsum("btc,co->bto", mixed, w_proj) + b_proj


@given(cases())
def test_gradient(case):
    check_gradient(causal_self_attention, case)


@given(cases())
def test_forward_is_attention_head_by_head(case):
    with no_grad():
        a = causal_self_attention(*case.inputs, **case.static)
    close(a.data, by_loops(*case.inputs, **case.static), 1e-10)


@given(cases())
def test_float32_stays_float32_and_inputs_stay(case):
    case = case.cast(np.float32)
    before = [x.copy() for x in case.inputs]
    tensors = [Tensor(x, requires_grad=True) for x in case.inputs]
    a = causal_self_attention(*tensors, **case.static)
    a.backward(np.ones(a.shape, np.float32))
    assert a.dtype == np.float32
    assert all(t.grad.dtype == np.float32 and t.grad.shape == t.shape for t in tensors)
    assert all((x == y).all() for x, y in zip(case.inputs, before, strict=True))


def test_the_future_changes_nothing():
    rng = np.random.default_rng(0)
    h, *weights = (rng.standard_normal(s) for s in ((1, 4, 4), (4, 12), (12,), (4, 4), (4,)))
    changed = h.copy()
    changed[:, 2:] = 99.0
    with no_grad():
        a, b = (causal_self_attention(x, *weights, n_heads=2).data for x in (h, changed))
    np.testing.assert_array_equal(a[:, :2], b[:, :2])
    assert (a[:, 2:] != b[:, 2:]).any()


def test_earlier_keys_and_values_go_in_front():
    rng = np.random.default_rng(1)
    h, *weights = (rng.standard_normal(s) for s in ((2, 5, 4), (4, 12), (12,), (4, 4), (4,)))
    kept = []

    def remember(k, v):
        kept.append((k, v))
        return k, v

    def extend(k, v):
        (old_k, old_v), = kept  # fmt: skip
        return tuple(Tensor(np.concatenate([o.data, n.data], axis=2)) for o, n in ((old_k, k), (old_v, v)))

    with no_grad():
        whole = causal_self_attention(h, *weights, n_heads=2).data
        first = causal_self_attention(h[:, :3], *weights, n_heads=2, extend=remember).data
        last = causal_self_attention(h[:, 3:], *weights, n_heads=2, extend=extend).data
    close(np.concatenate([first, last], axis=1), whole)


def test_heads_must_divide_the_width():
    weights = [np.ones(s) for s in ((4, 12), (12,), (4, 4), (4,))]
    with pytest.raises(ShapeError, match="does not split into 3 x 3 heads"):
        causal_self_attention(np.ones((1, 2, 4)), *weights, n_heads=3)
