"""The choice is a function of numbers: what it may never do, on machines and texts of every size."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from byhand.budget.choice import AS_GOOD, BESIDES, FEWEST, MARGIN, choose, predicted
from byhand.budget.expectation import most_passes
from byhand.budget.probe import Cost
from byhand.budget.recipe import HIGHEST_DECAY, LR_OF_MATRICES, MODEL, OPTIM, candidates
from byhand.config import DataConfig, ModelConfig, OptimConfig, TrainConfig
from byhand.flops import block_weights, step_flops, update_flops
from byhand.interop.hugging_face.alike import QWEN3
from byhand.model import parameter_shapes

RUNS = candidates(TrainConfig(model=MODEL, optim=OPTIM), (), 1 << 20)
LONG = 10**12  # bytes: no run here passes over them once


def magnitudes(low, high):
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def machine(rate, fixed=3e-4):
    """The cost of runs on a machine with these FLOP/s and a fixed time per step."""

    def cost(config):
        step = fixed + flops(config) / rate
        return Cost(step, 4 * step, 0.05)

    return cost


def flops(config):
    update = update_flops(config.model, config.optim)
    return step_flops(config.model, config.batch_size * config.grad_accum) + update


def parameters(config):
    return sum(math.prod(shape) for shape in parameter_shapes(config.model).values())


@given(seconds=magnitudes(5, 1e5), rate=magnitudes(1e10, 1e13), more=st.floats(1.5, 50), faster=st.booleans())
@settings(deadline=None)
def test_more_time_or_a_faster_machine_trains_more_and_expects_less_loss(seconds, rate, more, faster):
    before = choose(RUNS, machine(rate), seconds, LONG)
    after = choose(RUNS, machine(rate * (more if faster else 1)), seconds * (1 if faster else more), LONG)
    assert after.loss <= before.loss + AS_GOOD
    if not faster:  # the fixed time of a step stays what it was
        assert after.config.steps * flops(after.config) >= before.config.steps * flops(before.config)
    assert flops(after.config) >= flops(before.config)


@given(seconds=magnitudes(1, 1e5), rate=magnitudes(1e9, 1e13), text_bytes=magnitudes(100, 1e9))
@example(seconds=math.exp(6.25), rate=math.exp(29.5), text_bytes=math.exp(14.75))  # text and time end together
@settings(deadline=None)
def test_the_choice_fits_the_time_and_the_text(seconds, rate, text_bytes):
    """The text ends a run exactly if a further step would fit into the time, but not into the text."""
    choice = choose(RUNS, machine(rate), seconds, int(text_bytes))
    if choice is None:
        assert machine(rate)(RUNS[0]).step * 5 + 0.1 > seconds * 0.9
        return
    assert choice.seconds <= seconds
    each = choice.config.tokens_per_step
    tokens = choice.config.steps * each
    most = most_passes(block_weights(choice.config.model), int(text_bytes), choice.config.optim.by_matrix)
    fewest = FEWEST * each if choice.candidate is RUNS[0] else 0  # however short the text
    limit = max(most * int(text_bytes), fewest)
    assert tokens <= limit
    assert choice.passes == pytest.approx(tokens / int(text_bytes))
    one_more = choice.seconds + machine(rate)(choice.config).step + BESIDES
    if choice.text_ends:
        assert tokens + each > limit
        assert one_more <= seconds * (1 - MARGIN) * (1 + 1e-12)
    else:
        assert one_more > seconds * (1 - MARGIN) * (1 - 1e-12)


def test_a_text_that_is_learnt_by_heart_ends_the_run_early():
    choice = choose(RUNS, machine(1e11), 3600, 20_000)
    assert choice.text_ends
    assert choice.seconds < 1800
    assert parameters(choice.config) < parameters(choose(RUNS, machine(1e11), 3600, LONG).config)


def test_nothing_fits_into_no_time():
    assert choose(RUNS, machine(1e10), 0.05, LONG) is None
    assert choose(RUNS, machine(1e10), -3.0, LONG) is None


@pytest.mark.parametrize("seconds", [3, 75, 3600, 40_000])
def test_evaluations_and_saves_take_a_small_part(seconds):
    config = choose(RUNS, machine(2e11), seconds, LONG).config
    evaluations = 1 + (config.steps - 1) // config.eval_interval if config.eval_interval else 1
    assert evaluations <= 10
    assert evaluations * 4 * machine(2e11)(config).step <= max(0.04 * seconds, 8 * machine(2e11)(config).step)
    saves = 1 + (config.steps - 1) // config.save_interval if config.save_interval else 1
    assert saves == pytest.approx(1 + seconds // 600, rel=0.05, abs=1)


def test_given_intervals_stay_and_their_cost_is_counted():
    free = choose(RUNS[:1], machine(1e11), 60, LONG)
    often = replace(RUNS[0], eval_interval=1)
    kept = choose([often], machine(1e11), 60, LONG, {"eval_interval"})
    assert kept.config.eval_interval == 1
    assert kept.config.steps < 0.3 * free.config.steps
    assert kept.seconds <= 60


def test_warm_up_is_a_share_of_the_steps_unless_it_is_given():
    short, long = (choose(RUNS[:1], machine(1e11), s, LONG).config for s in (10, 100))
    assert long.optim.warmup_steps == pytest.approx(10 * short.optim.warmup_steps, rel=0.1)
    mine = [replace(RUNS[0], optim=replace(RUNS[0].optim, warmup_steps=7))]
    assert choose(mine, machine(1e11), 10, LONG, {"warmup_steps"}).config.optim.warmup_steps == 7


def test_costs_are_those_measured_and_otherwise_on_a_line():
    cost = machine(1e11, fixed=2e-3)
    known = {run: cost(run) for run in (RUNS[0], RUNS[4])}
    guess = predicted(known)
    assert guess(RUNS[0]) == known[RUNS[0]]
    for run in RUNS:
        assert guess(run).step == pytest.approx(cost(run).step, rel=1e-6)
    alone = predicted({RUNS[1]: cost(RUNS[1])})
    assert alone(RUNS[5]).step == pytest.approx(cost(RUNS[1]).step * flops(RUNS[5]) / flops(RUNS[1]))


def test_measurements_that_no_machine_can_give_still_predict_positive_costs():
    """A pause in the probe may make the smaller shape the slower one."""
    guess = predicted({RUNS[0]: Cost(1.0, 1, 1), RUNS[3]: Cost(0.001, 1, 1)})
    assert all(guess(run).step > 0 for run in RUNS)


KEPT = {
    "d_model": 60,
    "n_heads": 5,
    "n_layers": 2,
    "seq_len": 48,
    "batch_size": 3,
    "lr": 7e-4,
    "grad_accum": 2,
    "warmup_steps": 11,
    "beta2": 0.95,
}


@given(names=st.sets(st.sampled_from(sorted(KEPT))), seconds=magnitudes(5, 1e4))
@settings(deadline=None)
def test_what_is_given_is_kept_whatever_it_is(names, seconds):
    values = {name: KEPT[name] for name in names}

    def those_of(cls):
        return {n: v for n, v in values.items() if n in cls.__dataclass_fields__}

    heads = {} if "d_model" in names else {"d_model": 60}  # a base config must be whole
    model = ModelConfig(**{**heads, **those_of(ModelConfig)})
    base = TrainConfig(model=model, optim=OptimConfig(**those_of(OptimConfig)), **those_of(TrainConfig))
    runs = candidates(base, names, 1 << 20)
    config = choose(runs, machine(1e11), seconds, LONG, names).config
    for part in (config, config.model, config.optim):
        for name, value in those_of(type(part)).items():
            assert getattr(part, name) == value
    assert config.model.d_model % config.model.n_heads == 0
    if {"d_model", "n_heads", "n_layers", "seq_len", "batch_size", "lr"} <= names:
        assert len(runs) == 1


def test_other_programs_load_every_model_of_the_ladder():
    """Also with weights of int8 and int4, whose blocks are 32 wide."""
    for run in candidates(TrainConfig(model=MODEL, optim=OPTIM), (), 1 << 20):
        assert not QWEN3.problems(run.model)
        parameters = parameter_shapes(run.model)
        assert all(size % 32 == 0 for shape in parameters.values() for size in shape)


def test_weights_decay_more_the_nearer_a_run_comes_to_knowing_its_text_by_heart():
    runs = [choose(RUNS[2:3], machine(1e11), 60, text) for text in (10**4, 2 * 10**5, 10**8)]
    decays = [run.config.optim.weight_decay for run in runs]
    assert runs[0].text_ends
    assert decays[0] == HIGHEST_DECAY > decays[1] > decays[2] == OptimConfig.weight_decay
    mine = [replace(RUNS[2], optim=replace(RUNS[2].optim, weight_decay=0.3))]
    assert choose(mine, machine(1e11), 60, 10**4, {"weight_decay"}).config.optim.weight_decay == 0.3


def test_matrices_have_a_rate_of_their_own_with_muon_alone():
    muon, adamw = (
        candidates(TrainConfig(optim=OptimConfig(optimizer=name)), (), 1 << 20) for name in ("muon", "adamw")
    )
    assert {run.optim.muon_lr for run in muon} == {LR_OF_MATRICES}
    assert {run.optim.muon_lr for run in adamw} == {OptimConfig.muon_lr}
    assert len({run.optim.lr for run in adamw}) > 5


def test_the_text_and_the_seed_pass_through():
    base = TrainConfig(data=DataConfig(data="here", val_fraction=0.2), seed=9, dtype="float64", runtime="numpy")
    for run in candidates(base, (), 64):
        assert (run.data, run.seed, run.dtype, run.runtime) == (base.data, 9, "float64", "numpy")
        assert run.model.seq_len <= 64


@given(longest=st.integers(0, 8).map(lambda n: 2**n))
def test_contexts_fit_short_texts(longest):
    assert all(run.model.seq_len <= longest for run in candidates(TrainConfig(), (), longest))
