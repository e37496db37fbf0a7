"""What curves, bars and heat maps show is what the equations, the lessons and plain arithmetic give."""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

from book.pictures.drawn import texts
from byhand.book.entries import layer_norm as entry
from byhand.book.lessons.examples import make
from byhand.book.pictures import attention, curves, matrices, tokens
from byhand.book.pictures.canvas import ink, tint
from byhand.config import OptimConfig
from byhand.equations.gelu import gelu
from byhand.equations.gelu_exact import gelu_exact
from byhand.equations.relu import relu
from byhand.equations.silu import silu
from pictures import training

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "loss_curve.py"


def lesson_values(name):
    return [n.value for step in make(name).steps for n in step.numbers]


def test_probabilities_are_those_of_the_lesson():
    found = lesson_values("sampling")
    warm, (_, kept, _) = tokens.by_temperature()[2][1], [p for _, p in tokens.by_top_k()]
    for p in (tokens.by_temperature()[1][1], warm, kept):
        assert all(any(math.isclose(x, value) for value in found) for x in p if x)
    shown = texts("softmax-temperature")
    assert {"0.644", "0.237", "0.455", "0.102"} <= set(shown)
    assert texts("softmax-top-k").count("0") == 2 + 3 + 3  # dropped tokens, and the logit 0 of each panel


def test_bars_are_drawn_with_the_numbers_of_the_lesson():
    units, p = matrices.computed()
    worked = {n.label: n.value for step in make("classifier").steps[:4] for n in step.numbers}
    assert all(worked[f"h[{n},{j}]"] == units[n, j] for n in range(4) for j in range(2))
    assert [worked[f"loss[{n}]"] for n in range(4)] == pytest.approx(-np.log(p[range(4), [0, 0, 1, 1]]), abs=1e-6)
    shown = texts("bars-through-the-network")
    assert [shown.count(number) for number in ("0.889", "0.111", "0.8", "0.2", "3")] == [2] * 5


def test_top_p_keeps_the_fewest_that_reach_p():
    whole, *cut = (p for _, p in tokens.by_top_p())
    for p, threshold in zip(cut, (tokens.P, tokens.LOWER_P), strict=True):
        kept = int((p > 0).sum())
        assert whole[:kept].sum() >= threshold > whole[: kept - 1].sum()
        np.testing.assert_allclose(p[:kept], whole[:kept] / whole[:kept].sum())
    assert {"0.644", "0.881", "0.968", "1"} <= set(texts("softmax-top-p"))


def test_activations_and_slopes():
    xs = np.linspace(-3, 3, 13) + 0.01  # off the corner of ReLU
    for equation in (gelu, gelu_exact, silu, relu):
        up, down = (curves.values(equation, xs + h) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(curves.slopes(equation, xs), (up - down) / 2e-6, atol=1e-8)
    one = 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * 1.044715))
    assert f"GELU(1) = {one:.3f}" in texts("gelu-relu")
    assert "0.5" in texts("gelu-relu-slopes")
    assert f"SiLU(−1.3) = −{1.3 / (1 + math.exp(1.3)):.3f}" in texts("silu-gelu-relu")


def test_the_two_forms_of_gelu_differ_most_where_the_picture_says():
    xs = np.linspace(0, 4, 81)
    apart = [abs(gelu.forward(np.array([x]))[0][0] - x * math.erfc(-x / math.sqrt(2)) / 2) for x in xs]
    assert f"x = {xs[np.argmax(apart)]:g}: {max(apart):.2g}" in texts("gelu-forms")


def test_attention_is_that_of_the_lessons():
    one, two = attention.of_heads(1), attention.of_heads(2)
    compared = [two[h, 2, s] - one[0, 2, s] for h in range(2) for s in range(3)]
    np.testing.assert_allclose(compared, [n.value for n in make("multi-head").steps[-1].numbers], atol=2e-6)
    found = attention.of_paper_gpt()
    for weights in (*one, *two, found["weights"]):
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=2e-6)
        assert not weights[np.triu_indices(3, 1)].any()
    own = math.exp(found["scores"][1, 1] - found["scores"][1, 0])
    assert found["weights"][1, 1] == pytest.approx(own / (1 + own), abs=1e-5)
    assert "0.695" in texts("attention-one-head")


def test_what_is_left_of_a_gradient_by_layer_norm():
    parts = curves.parts()
    np.testing.assert_allclose(parts["h"] - parts["mean"] - parts["along"], parts["left"])
    normalised = (curves.X - 8) / 5
    np.testing.assert_allclose(np.outer(parts["along"], normalised), np.outer(normalised, parts["along"]), atol=1e-12)
    assert parts["left"].sum() == pytest.approx(0)
    assert parts["left"] @ normalised[0] == pytest.approx(0)
    gain = entry.entry.inputs["gain"][0]  # of the entry, whose gradient has it as a factor
    np.testing.assert_allclose(parts["d_x"] * gain, [13 / 125, -16 / 125, -9 / 125, 12 / 125])


def test_what_a_probability_costs():
    for p in (0.9, *curves.MARKED):
        assert curves.loss(p) == pytest.approx(-math.log(p))
    shown = " ".join(texts("cross-entropy-curve"))
    assert all(number in shown for number in ("0.357", "4.605"))


def test_dot_products_spread_with_the_root_of_d():
    for d in attention.WIDTHS:
        bare, scaled = attention.scores(d)
        np.testing.assert_allclose(bare, scaled * math.sqrt(d), atol=1e-4)
        assert attention.spread(d) == pytest.approx(math.sqrt(d), rel=0.15)
        unscaled, even = attention.weights(d)
        assert unscaled.max() > even.max()
        assert unscaled.sum() == pytest.approx(1)


def test_the_learning_rate_of_a_run():
    first, peak, half, last = training.rates().values()
    config = OptimConfig()
    assert first == pytest.approx(config.lr / config.warmup_steps)
    assert peak == config.lr
    assert half == pytest.approx((config.lr + config.floor_lr) / 2, rel=1e-2)
    assert last == pytest.approx(config.floor_lr)


def test_two_steps_of_adamw_are_those_of_the_lesson():
    found = lesson_values("adamw")
    path = curves.paths()["AdamW"]
    assert all(any(math.isclose(x, value, rel_tol=1e-9) for value in found) for x in path[1:].ravel())
    np.testing.assert_allclose(curves.paths()["plain"], [[1, -2], [0.8, -1.95], [0.7, -2]])
    assert {"0.89", "−1.88", "0.8", "−1.95"} <= set(texts("adamw-steps"))


def test_clipping_keeps_the_direction():
    before, after, (x, y) = training.clipped()
    assert (before, after) == (5, pytest.approx(1))
    assert y / x == pytest.approx(4 / 3)


def test_matrices():
    a, b, y = matrices.multiplied().values.values()
    np.testing.assert_array_equal(y, np.einsum("ik,kj->ij", a, b))
    found = matrices.rows()
    np.testing.assert_array_equal(found["E"], found["table"][[2, 1, 2]])
    np.testing.assert_array_equal(found["X"], found["E"] + found["P"])
    for beside, factor in ((False, 0.1), (True, 1.1)):
        np.testing.assert_allclose(matrices.left_of_a_gradient(beside), [factor**n for n in range(5)])


def test_the_recorded_run():
    run = json.loads(training.RUN.read_text(encoding="utf-8"))
    spec = importlib.util.spec_from_file_location("benchmarks_loss_curve", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert list(map(int, run["samples"])) == list(script.STAGES)
    assert run["prompt"] == script.PROMPT
    assert {int(step) for step in run["losses"]} == {n for n in range(script.STAGES[-1] + 1) if script.is_measured(n)}
    stages = [run["losses"][step] for step in run["samples"]]
    assert stages == sorted(stages, reverse=True)
    assert all(text.isprintable() and len(text) == script.LENGTH for text in run["samples"].values())
    shown = " ".join(texts("loss-curve"))
    assert f"≈ a guess among {math.exp(stages[-1]):.1f} bytes" in shown
    assert json.loads(training.RUN.read_text(encoding="utf-8"))["versions"]["python"]


@pytest.mark.parametrize("part", np.linspace(-1, 1, 41))
def test_numbers_can_be_read_on_every_colour(part):
    fill = tint(part)
    light, dark = sorted((luminance(fill), luminance(ink(fill))))
    assert (dark + 0.05) / (light + 0.05) >= 4.5


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return sum(w * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
               for w, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True))  # fmt: skip
