import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.book.entries.repeat_heads import entry
from byhand.book.practice.edits import Asked, mistakes
from byhand.engine import no_grad
from byhand.engine.terms import number, total
from byhand.equations.causal_self_attention import causal_self_attention
from byhand.equations.repeat_heads import repeat_heads
from byhand.errors import ShapeError
from equations.checks import close, same, wrong_numbers
from equations.strategies import Case, arrays, lengths


@st.composite
def cases(draw):
    return Case(draw(arrays(*(draw(lengths) for _ in range(4)))), times=draw(lengths))


@given(cases())
def test_forward_gives_each_group_its_head(case):
    (x,), times = case.inputs, case.static["times"]
    y, _ = repeat_heads.forward(x, times=times)
    assert y.shape == (x.shape[0], x.shape[1] * times, *x.shape[2:])
    for h in range(y.shape[1]):
        np.testing.assert_array_equal(y[:, h], x[:, h // times])


def test_one_for_each_changes_no_bit():
    x = np.linspace(-1, 1, 24).reshape(1, 3, 4, 2)
    y, saved = repeat_heads.forward(x, times=1)
    same((y, *repeat_heads.vjp(saved, np.cos(x), times=1)), (x, np.cos(x)))
    assert repeat_heads.flops(x.shape, times=1) == (0, 0)


@pytest.mark.parametrize("n_kv_heads", [1, 2])
def test_attention_is_full_attention_whose_key_and_value_columns_are_copied(n_kv_heads):
    """With K = 1, multi-query attention: all query heads read one head."""
    rng, heads, width = np.random.default_rng(8), 4, 3
    c, kv = heads * width, n_kv_heads * width
    h, w_proj, b_proj = (rng.standard_normal(s) for s in ((2, 5, c), (c, c), (c,)))
    w_qkv, b_qkv = rng.standard_normal((c, c + 2 * kv)), rng.standard_normal(c + 2 * kv)

    def copied(columns):
        """Repeat the columns of each head of keys, and of values, for every query head of its group."""
        q, *others = np.split(columns, [c, c + kv], axis=-1)
        parts = [np.split(x, n_kv_heads, axis=-1) for x in others]
        return np.concatenate([q, *(part[i * n_kv_heads // heads] for part in parts for i in range(heads))], axis=-1)

    with no_grad():
        grouped = causal_self_attention(h, w_qkv, b_qkv, w_proj, b_proj, n_heads=heads, n_kv_heads=n_kv_heads)
        full = causal_self_attention(h, copied(w_qkv), copied(b_qkv), w_proj, b_proj, n_heads=heads)
        other = causal_self_attention(
            h, np.roll(copied(w_qkv), width, -1), copied(b_qkv), w_proj, b_proj, n_heads=heads
        )
    close(grouped.data, full.data)
    assert np.abs(grouped.data - other.data).max() > 0.01


def test_needs_four_axes():
    with pytest.raises(ShapeError, match=r"must be \(B, K, S, D\)"):
        repeat_heads.forward(np.ones((2, 3, 4)), times=2)


def test_typical_mistakes():
    x = np.arange(4.0).reshape(1, 2, 1, 2)
    wrong = {h: wrong_numbers(repeat_heads, Case(x, times=2), (0, h, 0, 0)) for h in range(4)}
    assert [list(found.values()) for found in wrong.values()] == [[0.0], [2.0], [0.0], [2.0]]  # right: 0, 0, 2, 2
    term = total([number(1), number(2)])
    back = mistakes(entry.gradient_mistakes, term, Asked((0, 0, 0, 0), (x,), {"times": 2}))
    assert {mistake.en: mistake.value for mistake in back} == {
        "took the derivative of one query head alone": 1.0,
        "averaged over the group instead of summing": 1.5,
    }


def witnesses(torch):
    """What PyTorch computes."""
    x = np.random.default_rng(9).standard_normal((2, 3, 4, 5))
    return [(lambda x: torch.repeat_interleave(x, 2, dim=1), (x,), {"times": 2})]
