import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from byhand.clipping import clip_gradients, gradient_norm
from byhand.config import ModelConfig, OptimConfig
from byhand.engine import Tensor
from byhand.errors import ConfigError, ShapeError
from byhand.layers.parameter import Parameter
from byhand.model import declared
from byhand.optim import AdamW, Muon, Optimizer, State, updated
from byhand.schedule import learning_rate
from interrupts import at_every_point
from runtimes.registered import new_session
from runtimes.steps import made
from traced import Traced, plain


def parameters(dtype=np.float64):
    rng = np.random.default_rng(0)
    tensors = {
        "w": Tensor(rng.standard_normal((2, 3)).astype(dtype)),
        "b": Tensor(rng.standard_normal(3).astype(dtype)),
    }
    return tensors


def by_loop(values, gradients, lrs, betas, eps, weight_decay):
    """One number at a time, one step at a time."""
    results = []
    for value, its_gradients in zip(values, gradients, strict=True):
        m = v = 0.0
        for t, (g, lr) in enumerate(zip(its_gradients, lrs, strict=True), start=1):
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g**2
            step = m / (1 - betas[0] ** t) / (math.sqrt(v / (1 - betas[1] ** t)) + eps)
            value = value - lr * weight_decay * value - lr * step
        results.append((value, m, v))
    return results


@pytest.mark.parametrize("decay", ["all", "matrices"])
def test_five_steps_against_a_loop(decay):
    rng = np.random.default_rng(1)
    p = parameters()
    start = {name: t.data.copy() for name, t in p.items()}
    gradients = [{name: rng.standard_normal(t.shape) for name, t in p.items()} for _ in range(5)]
    lrs = [0.1, 0.05, 0.1, 0.01, 0.2]
    optimizer = AdamW(betas=(0.8, 0.9), eps=1e-3, weight_decay=0.3, decay=decay)
    for lr, step in zip(lrs, gradients, strict=True):
        optimizer.lr = lr
        for name, g in step.items():
            p[name].grad = g
        optimizer.step(p)
    assert optimizer.t == 5
    for name, t in p.items():
        weight_decay = 0.3 if decay == "all" or t.ndim >= 2 else 0.0
        flat = np.stack([g[name].ravel() for g in gradients], axis=1)
        expected = by_loop(start[name].ravel(), flat, lrs, (0.8, 0.9), 1e-3, weight_decay)
        actual = np.stack(
            [t.data.ravel(), optimizer.moments["m"][name].ravel(), optimizer.moments["v"][name].ravel()], axis=1
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_arrays_are_replaced_not_written_into():
    p = parameters()
    before, copies = {n: t.data for n, t in p.items()}, {n: t.data.copy() for n, t in p.items()}
    for t in p.values():
        t.grad = np.ones(t.shape)
    AdamW().step(p)
    for name, t in p.items():
        assert t.data is not before[name]
        np.testing.assert_array_equal(before[name], copies[name])
        np.testing.assert_array_equal(t.grad, 1)


def test_a_parameter_without_gradient_stays():
    p = parameters()
    p["w"].grad = np.ones((2, 3))
    before = p["b"].data.copy()
    optimizer = AdamW(weight_decay=0.5)
    optimizer.step(p)
    np.testing.assert_array_equal(p["b"].data, before)
    assert set(optimizer.moments["m"]) == set(optimizer.moments["v"]) == {"w"}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_keeps_the_parameters_precision(dtype):
    p, optimizer = parameters(dtype), AdamW()
    for _ in range(2):
        for t in p.values():
            t.grad = np.ones(t.shape, dtype)
        optimizer.step(p)
    arrays = [*(t.data for t in p.values()), *optimizer.moments["m"].values(), *optimizer.moments["v"].values()]
    assert {a.dtype for a in arrays} == {np.dtype(dtype)}


@pytest.mark.parametrize("gradient", [np.ones((3, 2)), np.ones((2, 3), np.float32)])
def test_a_gradient_of_another_shape_or_type(gradient):
    p = parameters()
    p["w"].grad = gradient
    with pytest.raises(ShapeError, match=r"the gradient of w is .* not \(2, 3\) float64"):
        AdamW().step(p)


class TestSchedule:
    config = OptimConfig(lr=1.0, min_lr=0.2, warmup_steps=4)

    def test_warm_up_is_a_line_that_starts_above_zero(self):
        assert [learning_rate(self.config, step, 13) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]

    def test_a_cosine_falls_from_lr_to_min_lr_at_the_last_step(self):
        rates = [learning_rate(self.config, step, 13) for step in range(4, 13)]
        assert rates == pytest.approx([0.6 + 0.4 * math.cos(math.pi * k / 8) for k in range(9)], rel=1e-15)
        assert (rates[0], rates[-1]) == (1.0, pytest.approx(0.2, rel=1e-15))

    def test_it_stays_there_afterwards(self):
        assert learning_rate(self.config, 99, 13) == pytest.approx(0.2, rel=1e-15)

    def test_without_warm_up_the_first_step_has_lr(self):
        assert learning_rate(OptimConfig(lr=0.5, warmup_steps=0), 0, 10) == 0.5

    def test_two_steps_are_the_two_ends(self):
        config = OptimConfig(lr=1.0, min_lr=0.2, warmup_steps=0)
        assert [learning_rate(config, step, 2) for step in range(2)] == pytest.approx([1.0, 0.2], rel=1e-15)

    def test_min_lr_is_a_tenth_by_default(self):
        assert learning_rate(OptimConfig(lr=0.5, warmup_steps=0), 9, 10) == pytest.approx(0.05)

    @pytest.mark.parametrize("steps", [1, 2, 4, 5])
    def test_runs_shorter_than_the_warm_up_have_a_rate_too(self, steps):
        rates = [learning_rate(self.config, step, steps) for step in range(steps)]
        assert all(0 < rate <= 1 for rate in rates)


class TestClipping:
    def gradients(self, scale=1.0):
        p = parameters()
        p["w"].grad = np.full((2, 3), 2.0 * scale)
        p["b"].grad = np.array([3.0, 0.0, -4.0]) * scale
        return {name: t.grad for name, t in p.items()}  # 6 * 4 + 9 + 16 = 49

    def test_norm(self):
        assert gradient_norm(self.gradients()) == 7.0
        assert gradient_norm({}) == 0.0

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_the_norm_of_a_gradient_that_is_no_number(self, bad):
        p = self.gradients()
        p["b"] = np.array([1.0, bad, 1.0])
        assert gradient_norm(p) == math.inf

    def test_long_gradients_are_scaled_to_the_limit(self):
        p = self.gradients()
        p = clip_gradients(p, gradient_norm(p), 3.5)
        np.testing.assert_allclose(p["w"], 1.0)
        np.testing.assert_allclose(p["b"], [1.5, 0, -2])
        assert gradient_norm(p) == pytest.approx(3.5)

    @pytest.mark.parametrize("limit", [0.0, 7.0, 100.0])
    def test_short_ones_stay_and_zero_switches_off(self, limit):
        p = self.gradients()
        same = clip_gradients(p, gradient_norm(p), limit)
        assert gradient_norm(same) == 7.0
        assert all(same[name].tobytes() == g.tobytes() for name, g in p.items())

    def test_parameters_without_gradient_are_passed_over(self):
        p = parameters()
        p["w"].grad = np.full((2, 3), 2.0)
        assert AdamW().clipped_step(p, 1.0) == pytest.approx(math.sqrt(24))
        assert p["b"].grad is None
        np.testing.assert_array_equal(p["w"].grad, 2.0)  # clipping makes new arrays


@pytest.mark.parametrize(
    "setting", [{"lr": -1.0}, {"lr": math.nan}, {"betas": (1.0, 0.9)}, {"eps": -1.0}, {"decay": "some"}]
)
def test_settings_that_cannot_work_are_refused(setting):
    with pytest.raises(ConfigError):
        AdamW(**setting)


def test_a_refused_step_counts_for_nothing():
    p = Tensor(np.ones(3), requires_grad=True)
    p.grad = np.ones(2)
    optimizer = AdamW()
    with pytest.raises(ShapeError):
        optimizer.step({"p": p})
    assert (optimizer.t, optimizer.moments["m"]) == (0, {})


def test_a_warm_up_takes_at_most_half_of_a_run():
    config = OptimConfig(lr=1.0, warmup_steps=100)
    assert [learning_rate(config, s, 4) for s in range(4)] == [0.5, 1.0, 1.0, pytest.approx(0.1)]


def test_a_constant_schedule_stays_at_lr_after_the_warm_up():
    config = OptimConfig(lr=1.0, warmup_steps=2, schedule="constant")
    assert [learning_rate(config, s, 6) for s in range(6)] == [0.5, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("event", "every"), [("line", 1), ("opcode", 7), pytest.param("opcode", 1, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("clipped", [True, False])
def test_an_interrupt_anywhere_changes_all_or_nothing(clipped, event, every):
    def everything(p, optimizer):
        arrays = [*(t.data for t in p.values()), *optimizer.moments["m"].values(), *optimizer.moments["v"].values()]
        return b"".join(a.tobytes() for a in arrays)

    p, optimizer = None, None

    def made(steps):
        nonlocal p, optimizer
        p, optimizer = parameters(), AdamW(lr=0.1)
        for t in p.values():
            t.grad = np.ones(t.shape)
        for _ in range(steps):
            optimizer.step(p)
        return everything(p, optimizer)

    outcomes, counted = [made(n) for n in range(3)], set()

    def step():
        assert optimizer.clipped_step(p, 0.0) > 0 if clipped else optimizer.step(p) is None

    for before in (0, 1):
        for point in at_every_point(
            step, "byhand/optim.py", "equations/adamw.py", event=event, every=every, begin=lambda n=before: made(n)
        ):
            assert everything(p, optimizer) == outcomes[optimizer.t], point
            assert len(optimizer.moments["m"]) == (len(p) if optimizer.t else 0), point
            counted.add((before, optimizer.t))
    committed = clipped or event == "opcode"  # else the step's last line makes the update
    assert counted == {(0, 0), (1, 1)} | ({(0, 1), (1, 2)} if committed else set())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e3])
def test_the_update_reads_no_value_and_is_what_a_step_does(max_norm, dtype):
    """So it can be traced: also with the step's number and the learning rate as arrays."""
    optimizer, p = AdamW(lr=0.1, betas=(0.8, 0.9), weight_decay=0.3, decay="matrices"), parameters(dtype)
    rng = np.random.default_rng(4)
    arrays = {name: Traced(t.data) for name, t in p.items()}
    state = State(arrays, {"m": {}, "v": {}}, {})
    rules = {name: optimizer.rule(name, tensor) for name, tensor in p.items()}
    for t in (1, 2, 3):
        for tensor in p.values():
            tensor.grad = rng.standard_normal(tensor.shape).astype(dtype)
        gradients = {name: Traced(tensor.grad) for name, tensor in p.items()}
        state, norm = updated(state, gradients, Traced(t), Traced(0.1), rules, max_norm)
        assert optimizer.clipped_step(p, max_norm) == plain(norm)
        expected = State({name: tensor.data for name, tensor in p.items()}, optimizer.moments, {})
        for part, others in zip(state.dictionaries(), expected.dictionaries(), strict=True):
            assert part.keys() == others.keys()
            for name, other in others.items():
                assert plain(part[name]).dtype == other.dtype
                np.testing.assert_array_equal(plain(part[name]), other)
    with pytest.raises(TypeError, match="a value was read"):
        math.isfinite(norm)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_step_whose_norm_is_not_finite_changes_nothing(bad):
    p, optimizer = parameters(), AdamW()
    before = {name: t.data for name, t in p.items()}
    for t in p.values():
        t.grad = np.ones(t.shape)
    p["b"].grad[1] = bad
    with np.errstate(all="ignore"):
        assert optimizer.clipped_step(p, 1.0) == math.inf
    assert (optimizer.t, optimizer.moments["m"]) == (0, {})
    assert all(t.data is before[name] for name, t in p.items())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_norm_is_the_correctly_rounded_sum_of_squares(dtype):
    """In any order of the parameters, also where one is larger than another by more than a number's digits."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        gradients = {str(i): (rng.standard_normal(3) * 10.0 ** rng.integers(-9, 9)).astype(dtype) for i in range(30)}
        expected = math.sqrt(math.fsum(float(np.sum(g * g)) for g in gradients.values()))
        assert gradient_norm(gradients) == expected
        assert gradient_norm(dict(reversed(gradients.items()))) == expected


@pytest.mark.parametrize("cooldown", [1.0, 0.6, 0.25])
def test_a_linear_schedule_holds_lr_and_falls_over_the_last_part(cooldown):
    config = OptimConfig(lr=2.0, min_lr=0.0, warmup_steps=10, schedule="linear", cooldown=cooldown)
    rates = [learning_rate(config, step, 100) for step in range(100)]
    begin = max(10, 100 - round(100 * cooldown))
    assert rates[:10] == pytest.approx([2.0 * (step + 1) / 10 for step in range(10)])
    assert set(rates[10 : begin + 1]) == {2.0}
    falls = [a - b for a, b in itertools.pairwise(rates[begin:])]
    assert falls == pytest.approx([2.0 / (99 - begin)] * len(falls))
    assert rates[-1] == 0.0


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_linear_schedule_of_few_steps_stays_within_its_bounds(steps):
    config = OptimConfig(lr=1.0, min_lr=0.1, warmup_steps=1, schedule="linear", cooldown=0.5)
    assert all(0.1 <= learning_rate(config, step, steps) <= 1.0 for step in range(steps))


def test_every_group_has_its_rate_and_weights_are_averaged():
    p = parameters()
    declared = {name: Parameter(t.shape, group="head" if name == "b" else "vectors") for name, t in p.items()}
    optimizer = Optimizer(OptimConfig(lr=0.1, head_lr=0.3, weight_decay=0.0, ema=0.5), declared)
    before = {name: t.data for name, t in p.items()}
    for t in p.values():
        t.grad = np.ones(t.shape)
    optimizer.step(p)
    for name, t in p.items():  # AdamW's first step is the rate
        np.testing.assert_allclose(before[name] - t.data, 0.3 if name == "b" else 0.1, rtol=1e-6)
        kept = 2 / 11  # (1 + t) / (10 + t), below the decay
        np.testing.assert_allclose(optimizer.averages[name], kept * before[name] + (1 - kept) * t.data, rtol=1e-12)


def test_muon_keeps_no_squares_and_a_step_in_which_nothing_is_finite_changes_nothing():
    p = {"w": Tensor(np.eye(3), requires_grad=True), "b": Tensor(np.ones(3), requires_grad=True)}
    optimizer = Muon({"w": 1}, lr=0.1, scales={"w": 2.0}, weight_decay=0.0)
    p["w"].grad, p["b"].grad = 5.0 * np.eye(3), np.ones(3)
    optimizer.step(p)
    assert (set(optimizer.moments["m"]), set(optimizer.moments["v"])) == ({"w", "b"}, {"b"})
    moved = np.eye(3) - p["w"].data
    np.testing.assert_allclose(moved, moved[0, 0] * np.eye(3), atol=1e-12)
    assert 0.2 * 0.6 < moved[0, 0] < 0.2 * 1.25
    before = p["w"].data
    p["w"].grad = np.full((3, 3), np.nan)
    optimizer.clipped_step(p, 1.0)
    assert p["w"].data is before
    assert optimizer.t == 1


MODEL = ModelConfig(vocab_size=11, seq_len=7, d_model=24, n_layers=2, n_heads=2)
MUON = OptimConfig(lr=1e-2, optimizer="muon", muon_lr=0.03, embedding_lr=2e-2, head_lr=5e-3, vector_lr=4e-3, ema=0.9)


def test_each_parameter_is_in_its_group():
    groups = {name: parameter.group for name, parameter in declared(MODEL).items()}
    assert {groups[n] for n in ("wte", "wpe")} == {"embeddings"}
    assert groups["lm_head.w"] == "head"
    blocks = {name: group for name, group in groups.items() if name.startswith("blocks.")}
    assert all((group == "matrices") == (".w_" in name) for name, group in blocks.items())
    assert groups["lm_head.b"] == "vectors"
    made = Optimizer(MUON, declared(MODEL))
    rules = {n: made.rule(n, np.empty(p.shape)) for n, p in declared(MODEL).items()}
    packed = {n: rule.static["packed"] for n, rule in rules.items() if rule.equation.name == "muon"}
    assert packed == {n: 3 if n.endswith("w_qkv") else 1 for n, group in groups.items() if group == "matrices"}
    rates = {"embeddings": 2e-2, "head": 5e-3, "matrices": 0.03, "vectors": 4e-3}
    assert {n: 1e-2 * rule.scale for n, rule in rules.items()} == pytest.approx(
        {n: rates[g] for n, g in groups.items()}
    )


def test_packed_projections_are_orthogonalised_apart():
    """With a first step, no momentum and no decay, each of q, k and v moves by a nearly orthogonal matrix."""
    session = new_session(MODEL, replace(MUON, weight_decay=0.0))
    before = np.array(session.state().parameters["blocks.0.attn.w_qkv"])
    session.optimizer.lr = 1e-2
    session.step(made(MODEL, (4, 7)), 0.0)
    moved = (session.state().parameters["blocks.0.attn.w_qkv"] - before) / 0.03
    for part in np.split(moved, 3, axis=1):
        values = np.linalg.svd(part, compute_uv=False)
        assert 0.6 < values[: MODEL.d_model // 2].min() <= values.max() < 1.25
