import cmath
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

WEIGHTS = ("w_qkv", "b_qkv", "w_proj", "b_proj", "q_gain", "k_gain")


@st.composite
def cases(draw):
    b, t, heads, head_width = draw(lengths), draw(lengths), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    c = heads * head_width
    shapes = ((b, t, c), (c, 3 * c), (3 * c,), (c, c), (c,))
    return Case(*(draw(arrays(*shape)) for shape in shapes), n_heads=heads, causal=draw(st.booleans()))


@st.composite
def variants(draw):
    """Grouped heads of any width, biases or none, norms of q and k, rotary positions, a window, in any mix."""
    b, t, kv, group, width, c = (draw(st.integers(1, most)) for most in (2, 4, 2, 2, 3, 4))
    heads = kv * group
    rotated = draw(st.integers(0, width // 2)) * 2
    shapes = {"w_qkv": (c, (heads + 2 * kv) * width), "w_proj": (heads * width, c)}
    biases = draw(st.sampled_from(((), ("b_qkv",), ("b_qkv", "b_proj"))))
    shapes |= {bias: shapes[bias.replace("b_", "w_")][1:] for bias in biases}
    static = {"n_heads": heads, "n_kv_heads": kv, "window": draw(st.sampled_from((None, 1, 2, 4)))}
    if draw(st.booleans()):
        static["qk_eps"] = 0.1
        gained, whole = draw(st.booleans()), draw(st.booleans())
        static |= {"qk_over": "heads"} if whole else {}
        if gained:
            shapes |= {"q_gain": (heads * width if whole else width,), "k_gain": (kv * width if whole else width,)}
    if draw(st.booleans()):
        static["divisor"] = 1.7
    if rotated:
        pairing = draw(st.sampled_from(("halves", "neighbours")))
        static["rotary_settings"] = {"base": 5.0, "width": rotated, "pairing": pairing}
    given = tuple(name for name in WEIGHTS if name in shapes)
    weights = [draw(arrays(*shapes[name])) for name in given]
    if rotated and (start := draw(st.sampled_from((None, np.array(0), np.array(3))))) is not None:
        given, weights = (*given, "start"), [*weights, start]
    return Case(draw(arrays(b, t, c)), *weights, given=given, **static)


def attend(h, *weights, given, **static):
    """Apply attention with the given weights, and None for the others."""
    there = dict(zip(given, weights, strict=True))
    return causal_self_attention(h, *(there.get(name) for name in (*WEIGHTS, "start")), **static)


attend.name = causal_self_attention.name


def by_loops(
    h, w_qkv, b_qkv, w_proj, b_proj, q_gain=None, k_gain=None, start=None, *, n_heads, n_kv_heads=None, causal=True,
    window=None, qk_eps=None, qk_over="head", rotary_settings=None, divisor=None,
):  # fmt: skip
    """One head, one query, one key at a time."""
    n_batch, n_tokens, _ = h.shape
    kv = n_kv_heads or n_heads
    width = w_proj.shape[0] // n_heads
    columns = (n_heads + 2 * kv) * width
    b_qkv, b_proj = (np.zeros(n) if b is None else b for b, n in ((b_qkv, columns), (b_proj, w_proj.shape[1])))

    def prepared(x, first, gain, t):
        """`first` is the column of the head among x, of all heads."""
        normed, x, of_gain = x, x[first : first + width], 0
        if qk_eps is not None:
            if qk_over == "head":
                normed = x
            else:
                of_gain = first
            root = math.sqrt(sum(v * v for v in normed) / len(normed) + qk_eps)
            x = [v / root * (1 if gain is None else gain[of_gain + i]) for i, v in enumerate(x)]
        return turned(list(x), t + int(start or 0), **rotary_settings) if rotary_settings else x

    mixed = np.zeros((n_batch, n_tokens, n_heads * width))
    for b in range(n_batch):
        rows = [[sum(x * w for x, w in zip(row, w_qkv.T[o], strict=True)) + b_qkv[o] for o in range(columns)]
                for row in h[b]]  # fmt: skip
        for head in range(n_heads):
            first, key = head * width, (n_heads + head // (n_heads // kv)) * width
            q_end, k_end = n_heads * width, (n_heads + kv) * width
            q = [prepared(row[:q_end], first, q_gain, t) for t, row in enumerate(rows)]
            k = [prepared(row[q_end:k_end], key - q_end, k_gain, t) for t, row in enumerate(rows)]
            for t in range(n_tokens):
                seen = range(max(0, t + 1 - (window or n_tokens)), t + 1) if causal else range(n_tokens)
                scores = {
                    s: sum(x * y for x, y in zip(q[t], k[s], strict=True)) / math.sqrt(divisor or width) for s in seen
                }
                total = sum(map(math.exp, scores.values()))
                for s in seen:
                    for d in range(width):
                        mixed[b, t, first + d] += math.exp(scores[s]) / total * rows[s][key + kv * width + d]
    return np.einsum("btc,co->bto", mixed, w_proj) + b_proj


def turned(x, position, base, width, pairing):
    """Turn pairs of numbers as complex ones."""
    for p in range(width // 2):
        i, j = (p, p + width // 2) if pairing == "halves" else (2 * p, 2 * p + 1)
        z = complex(x[i], x[j]) * cmath.exp(1j * position * base ** (-2 * p / width))
        x[i], x[j] = z.real, z.imag
    return x


@given(variants())
def test_gradient_of_variants(case):
    check_gradient(attend, case)


def test_gradient_of_all_variants_at_once():
    rng = np.random.default_rng(2)
    shapes = ((1, 5, 6), (6, 16), (16,), (8, 6), (6,), (2,), (2,))
    case = Case(
        *map(rng.standard_normal, shapes), np.array(2), n_heads=4, n_kv_heads=2, window=3, qk_eps=0.1,
        rotary_settings={"base": 5.0, "width": 2, "pairing": "neighbours"},
    )  # fmt: skip
    check_gradient(causal_self_attention, case)


def test_gradient_of_a_norm_over_all_heads():
    rng = np.random.default_rng(2)
    weights = dict(zip(("w_qkv", "w_proj"), map(rng.standard_normal, ((6, 16), (8, 6))), strict=True))
    static = {"n_heads": 4, "n_kv_heads": 2, "qk_eps": 0.1, "qk_over": "heads", "divisor": 3.0}
    case = Case(rng.standard_normal((1, 5, 6)), *weights.values(), given=tuple(weights), **static)
    check_gradient(attend, case)


@given(arrays(2, 2, 4), st.sampled_from(([0, 0], [1, 3], [2, 1], [4, 0])))
def test_gradient_with_a_cache(h, start):
    """Into the cache, and out of it: some rows are replaced, some places are empty."""
    rng = np.random.default_rng(0)
    shapes = ((4, 8), (8,), (4, 4), (4,), (2,), (2,))
    kept = rng.standard_normal((2, 2, 1, 3, 2))
    case = Case(h, *map(rng.standard_normal, shapes), np.array(start), *kept, n_heads=2, n_kv_heads=1, window=2)
    check_gradient(causal_self_attention, case)


@given(cases())
def test_forward_is_attention_head_by_head(case):
    with no_grad():
        a = causal_self_attention(*case.inputs, **case.static)
    close(a.data, by_loops(*case.inputs, **case.static), 1e-10)


@given(variants())
def test_forward_of_variants_is_attention_head_by_head(case):
    h, *weights = case.inputs
    static = dict(case.static)
    there = dict(zip(static.pop("given"), weights, strict=True))
    with no_grad():
        a = attend(*case.inputs, **case.static)
    close(a.data, by_loops(h, *(there.get(name) for name in (*WEIGHTS, "start")), **static), 1e-9)


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


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rotary_settings": {"base": 5.0, "width": 2}},
        {"n_kv_heads": 1, "window": 2, "qk_eps": 0.1, "rotary_settings": {"base": 5.0, "width": 2}},
    ],
)
def test_earlier_keys_and_values_go_in_front(settings):
    rng = np.random.default_rng(1)
    columns = 4 + 4 * settings.get("n_kv_heads", 2)
    h, *weights = (rng.standard_normal(s) for s in ((2, 5, 4), (4, columns), (columns,), (4, 4), (4,)))
    kv = settings.get("n_kv_heads", 2)
    kept = np.zeros((2, kv, 5, 2)), np.zeros((2, kv, 5, 2))

    def run(h, *cache):
        return causal_self_attention(h, *weights, *((None, None, *cache) if cache else ()), n_heads=2, **settings)

    with no_grad():
        first, *kept = run(h[:, :3], np.zeros(2, int), *kept)
        rest, *_ = run(h[:, 3:], np.full(2, 3), *kept)
    close(np.concatenate([first.data, rest.data], axis=1), run(h).data)


def test_streams_of_a_cache_have_lengths_of_their_own():
    """Each gets what it gets alone, also when the ring of a window has gone round."""
    rng, settings = (
        np.random.default_rng(2),
        {"n_heads": 2, "window": 3, "rotary_settings": {"base": 5.0, "width": 2}},
    )
    h, *weights = (rng.standard_normal(s) for s in ((2, 9, 4), (4, 12), (12,), (4, 4), (4,)))
    kept, lengths = np.zeros((2, 2, 2, 3, 2)), np.array([0, 4])
    with no_grad():
        whole = causal_self_attention(h, *weights, **settings).data
        for t in range(4):  # the second stream is four positions ahead
            _, k, v = causal_self_attention(
                h[1:, t : t + 1], *weights, None, None, np.array([t]), *kept[:, 1:], **settings
            )
            kept[0, 1:], kept[1, 1:] = k.data, v.data
        for _ in range(5):
            new = np.stack([h[b, lengths[b]] for b in (0, 1)])[:, None]
            out, k, v = causal_self_attention(new, *weights, None, None, lengths, *kept, **settings)
            close(out.data[:, 0], [whole[b, lengths[b]] for b in (0, 1)])
            kept, lengths = np.stack([k.data, v.data]), lengths + 1


def test_heads_must_divide_the_width():
    weights = [np.ones(s) for s in ((4, 12), (12,), (4, 4), (4,))]
    with pytest.raises(ShapeError, match="does not split into 3 x 3 heads"):
        causal_self_attention(np.ones((1, 2, 4)), *weights, n_heads=3)
