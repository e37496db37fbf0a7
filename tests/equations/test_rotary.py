import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.equations.attention_scores import attention_scores
from byhand.equations.rotary import PAIRINGS, Scaling, magnitude, rotary, slowed
from byhand.errors import ShapeError
from equations.checks import close, same, wrong_numbers
from equations.strategies import Case, arrays, integers, lengths, shapes

bases = st.sampled_from((2.0, 100.0, 10000.0))
pairings = st.sampled_from(PAIRINGS)
scalings = st.sampled_from((
    Scaling("linear", 3.0), Scaling("llama3", 8.0, 20, 1.0, 4.0), Scaling("yarn", 4.0, 30, 1.0, 3.0, 1.25),
))  # fmt: skip


@st.composite
def cases(draw):
    half, spare, start = draw(st.integers(1, 3)), draw(st.integers(0, 3)), draw(st.integers(0, 5))
    x = draw(arrays(*draw(shapes(most=2)), draw(lengths), 2 * half + spare))
    given_start = [np.array(start)] if start or draw(st.booleans()) else []
    if x.ndim > 2 and draw(st.booleans()):
        given_start = [draw(integers(len(x), below=9))]
    scaled = {"scaling": draw(scalings)} if draw(st.booleans()) else {}
    return Case(x, *given_start, base=draw(bases), width=2 * half, pairing=draw(pairings), **scaled)


def columns(case):
    """The columns (i, j) of every pair, as the docstring lists them."""
    half = case.static["width"] // 2
    return [(p, p + half) if case.static["pairing"] == "halves" else (2 * p, 2 * p + 1) for p in range(half)]


@given(cases())
def test_forward_multiplies_pairs_as_complex_numbers(case):
    """x_i + x_j sqrt(-1), times e to the angle: each pair in turn, its columns found by the docstring's rule."""
    x, *start = case.inputs
    y, _ = rotary.forward(*case.inputs, **case.static)
    base, width, scaling = case.static["base"], case.static["width"], case.static.get("scaling")
    share = slowed(base, width, scaling) if scaling else [1] * (width // 2)
    for t in range(x.shape[-2]):
        for p, (i, j) in enumerate(columns(case)):
            before = start[0].reshape((-1, *(1,) * (x.ndim - 3))) if start and start[0].ndim else sum(map(int, start))
            angle = (t + before) * base ** (-2 * p / width) * share[p]
            turned = (x[..., t, i] + 1j * x[..., t, j]) * np.exp(1j * angle) * magnitude(scaling)
            close(y[..., t, i], turned.real)
            close(y[..., t, j], turned.imag)
    rest = case.static["width"]
    np.testing.assert_array_equal(y[..., rest:], x[..., rest:])


@pytest.mark.parametrize(
    ("scaling", "shares"),
    [
        (Scaling("linear", 2.0), [0.5, 0.5]),
        (Scaling("llama3", 2.0, 4 * math.pi, 1.0, 3.0), [0.75, 0.5]),  # 2 turns of 1 to 3, and 1
        (Scaling("llama3", 2.0, 4 * math.pi, 0.4, 0.9), [1, 1]),
        (Scaling("llama3", 2.0, 4 * math.pi, 2.5, 9.0), [0.5, 0.5]),
        (Scaling("yarn", 2.0, 4 * math.pi, 0.6, 1.9), [1, 0.75]),  # from pair 0.07, so 0, to pair 1.74, so 2
        (Scaling("yarn", 2.0, 4 * math.pi, 1.1, 1.9), [1, 0.5]),  # from pair 0 to pair 0.86, so 1
    ],
)
def test_pairs_are_slowed_by_their_turns_in_the_old_length(scaling, shares):
    """With base 4 and width 4, pair 0 makes 2 turns in 4 pi positions, pair 1 one, pair p 2 / 2 ** p."""
    assert slowed(4.0, 4, scaling) == pytest.approx(shares)


@given(cases())
def test_gradient_terms_are_the_derivative(case):
    x, *start = case.inputs
    _, saved = rotary.forward(*case.inputs, **case.static)
    d = np.cos(np.arange(x.size)).reshape(x.shape)
    d_x, *none = rotary.vjp(saved, d, **case.static)
    assert none == [None] * len(start)
    for index in np.ndindex(x.shape):
        close(rotary.gradient_terms(saved, (d,), 0, index, **case.static).value, d_x[index])


@given(cases())
def test_lengths_stay(case):
    x = case.inputs[0]
    y, _ = rotary.forward(*case.inputs, **case.static)
    for i, j in columns(case):
        m = magnitude(case.static.get("scaling"))
        close(np.hypot(y[..., i], y[..., j]), m * np.hypot(x[..., i], x[..., j]))


def scores(q, k, t, s, **static):
    """The score of a query at position t for a key at position s."""
    turned = (rotary.forward(x, np.array(n), **static)[0] for x, n in ((q, t), (k, s)))
    return attention_scores.forward(*turned)[0][0, 0, 0, 0]


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_a_score_depends_on_the_distance_alone(pairing):
    rng, static = np.random.default_rng(3), {"base": 100.0, "width": 6, "pairing": pairing}
    q, k = rng.standard_normal((2, 1, 1, 1, 8))
    found = {d: [scores(q, k, s + d, s, **static) for s in (0, 1, 7, 400)] for d in (-2, 0, 1, 5)}
    for same_distance in found.values():
        close(same_distance, [same_distance[0]] * 4, 1e-10)
    assert len({round(values[0], 6) for values in found.values()}) == 4
    close(found[0][0], attention_scores.forward(q, k)[0][0, 0, 0, 0])


@given(cases())
def test_neighbours_are_halves_with_the_columns_in_another_order(case):
    """Even columns first, then odd ones: what converting weights between the two conventions does."""
    width = case.static["width"]
    order = [*range(0, width, 2), *range(1, width, 2), *range(width, case.inputs[0].shape[-1])]
    x, *start = case.inputs
    neighbours, _ = rotary.forward(x, *start, **(case.static | {"pairing": "neighbours"}))
    halves, _ = rotary.forward(x[..., order], *start, **(case.static | {"pairing": "halves"}))
    same((halves,), (neighbours[..., order],))


def test_the_pairing_changes_scores_and_a_common_order_of_columns_does_not():
    rng, static = np.random.default_rng(4), {"base": 10.0, "width": 4}
    q, k = rng.standard_normal((2, 1, 1, 1, 4))
    halves, neighbours = (scores(q, k, 3, 1, **static, pairing=pairing) for pairing in PAIRINGS)
    assert abs(halves - neighbours) > 0.1
    order = [0, 2, 1, 3]
    close(scores(q[..., order], k[..., order], 3, 1, **static, pairing="halves"), neighbours)


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_a_start_is_as_many_rows_left_out(pairing):
    x, static = np.linspace(-1, 1, 24).reshape(1, 6, 4), {"base": 10000.0, "width": 4, "pairing": pairing}
    whole, _ = rotary.forward(x, **static)
    last, _ = rotary.forward(x[:, 4:], np.array(4), **static)
    same((last,), (whole[:, 4:],))


def test_position_zero_changes_no_bit():
    x = np.linspace(-2, 3, 5)[None, :]
    same((rotary.forward(x, base=10000.0, width=4)[0],), (x,))


def test_float32_keeps_angles_of_far_positions():
    """An angle of 100,000 radians, rounded to float32 before the cosine, would be off by up to 0.004."""
    x = np.array([[1.0, 0.0]], dtype=np.float32)
    y, _ = rotary.forward(x, np.array(100_001), base=10000.0, width=2)
    close(y[0], [math.cos(100_001), math.sin(100_001)], 1e-7)


def test_wrong_shapes_and_settings():
    x = np.ones((2, 4))
    for width in (3, 6, 0):
        with pytest.raises(ShapeError, match=f"width {width} must be even and at most"):
            rotary.forward(x, base=10.0, width=width)
    with pytest.raises(ShapeError, match="'thirds' is not one of halves, neighbours"):
        rotary.forward(x, base=10.0, width=4, pairing="thirds")
    with pytest.raises(ShapeError, match=r"must be \(..., T, D\)"):
        rotary.forward(np.ones(4), base=10.0, width=4)


def test_typical_mistakes():
    x = np.array([[3.0, 0.0, 4.0, 1.0, 9.0]])
    case = Case(x, np.array(2), base=4.0, width=4)
    degrees = 2 * math.pi / 180
    assert wrong_numbers(rotary, case, (0, 0)) == pytest.approx(
        {
            "turned the other way: the sign of the sine": 3 * math.cos(2) + 4 * math.sin(2),
            "paired the wrong columns: those of the other pairing": 3 * math.cos(2) - 0 * math.sin(2),
            "took the position one too large: positions count from 0": 3 * math.cos(3) - 4 * math.sin(3),
            "took the angle in degrees instead of radians": 3 * math.cos(degrees) - 4 * math.sin(degrees),
        }
    )
    assert wrong_numbers(rotary, case, (0, 4)) == {"took the angle in degrees instead of radians": 9.0}
    (back,) = wrong_numbers(rotary, case, (0, 0), np.array([[1.0, 0.0, 2.0, 0.0, 0.0]])).values()
    assert back == pytest.approx(math.cos(2) - 2 * math.sin(2))


def witnesses(torch):
    """What PyTorch computes: the pairs as complex numbers, and the code of most Llama models for halves."""
    x = np.random.default_rng(6).standard_normal((2, 3, 5, 8))

    def angles(base):
        return torch.outer(
            torch.arange(5.0, dtype=torch.float64), base ** (-torch.arange(0, 8, 2, dtype=torch.float64) / 8.0)
        )

    def complex_pairs(x):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], 4, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones(5, 4, dtype=torch.float64), angles(10.0))).flatten(
            -2
        )

    def rotated_halves(x):
        both = torch.cat([angles(50.0)] * 2, dim=-1)
        return x * both.cos() + torch.cat([-x[..., 4:], x[..., :4]], dim=-1) * both.sin()

    return [
        (complex_pairs, (x,), {"base": 10.0, "width": 8, "pairing": "neighbours"}),
        (rotated_halves, (x,), {"base": 50.0, "width": 8}),
    ]
