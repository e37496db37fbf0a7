"""Some steps of every runtime: the reference's numbers; what is taken over, taken up and averaged."""

from functools import cache

import numpy as np
import pytest

import byhand as bh
from byhand.config import ModelConfig, OptimConfig
from byhand.engine.equation import with_role
from byhand.optim import averaged
from interrupts import at_every_point
from model_cases import each_choice, every_setting, setting_name
from runtimes.registered import NAMES, OTHERS, REFERENCE, SUITED, new_session, slow, ways
from runtimes.steps import ROWS, batches, bits, copied, curve, expect_close, put

CONFIG = ModelConfig(vocab_size=12, seq_len=8, d_model=24, n_layers=3, n_heads=4, norm_affine=True)
SINGLE = ways({}, {"threads": 1}, {"threads": 3}, {"threads": 2, "blas": "scipy"})
SHARDED = ways({"mesh": "fsdp=2"})
WAYS = [*SINGLE, *slow(SHARDED)]
EVERY_WAY = [*WAYS, *ways({}, names=(REFERENCE,))]
MESHES = ways({"mesh": "tensor=2"}, {"mesh": "data=2,fsdp=2,tensor=2"})
LONG = ways({"mesh": "data=2"}, {"mesh": "sequence=2"})  # which divide no parameter
ADAMW = OptimConfig(lr=3e-3, weight_decay=0.1, eps=1e-5)  # else a gradient of rounding alone makes a step of its own
UPDATES = {
    "adamw": ADAMW,
    "matrices decay": OptimConfig(lr=3e-3, weight_decay=0.5, decay="matrices", eps=1e-5),
    "muon": OptimConfig(
        lr=3e-3, optimizer="muon", muon_lr=0.03, embedding_lr=6e-3, head_lr=2e-3, vector_lr=1e-3, ema=0.9
    ),
}


@cache
def of_the_reference(config, optim, steps, rows=ROWS):
    session = new_session(config, optim)
    return curve(session, steps, rows=rows), copied(session)


@pytest.mark.parametrize("way", SINGLE)
def test_a_hundred_steps_are_the_references(way):
    found = curve(new_session(CONFIG, ADAMW, **way), 100)
    expected, _ = of_the_reference(CONFIG, ADAMW, 100)
    np.testing.assert_allclose(found[:, 0], expected[:, 0], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(found[:, 1], expected[:, 1], rtol=2e-3)
    assert found[-1, 0] < found[0, 0] - 0.5, "nothing was learned, so equality says little"


WIDER = {"vocab_size": 23, "seq_len": 16, "d_model": 16, "n_layers": 2, "n_heads": 2}
QUICK = [  # the gradients of all are held against the tape's in `loops/test_plan.py`
    *each_choice(),
    *({"mlp_bias": False, "activation": name} for name in with_role("gate")),
    {"norm": "rms", "norm_position": "post"}, {"lm_head_bias": False, "attention_bias": "none"},
    {"logit_softcap": 1.5},
    {"norm": "rms", "activation": "relu_squared", "mlp_bias": False, "lm_head_bias": False, "attention_bias": "none",
     "logit_softcap": 1.5, "tied_embeddings": True, "zero_init": True},
]  # fmt: skip
CHOICES = [*QUICK, *each_choice(norm_affine=True)]
CASES = [
    *(pytest.param(name, ModelConfig(**WIDER, **chosen), id=f"{name}-{chosen}",
                   marks=[] if name in SUITED and chosen in QUICK else pytest.mark.slow)
      for name in OTHERS for chosen in CHOICES),
    *(pytest.param(name, config, id=f"{name}-{setting_name(config)}", marks=pytest.mark.slow)
      for name in OTHERS for config in every_setting()),
]  # fmt: skip


@pytest.mark.parametrize(("runtime", "config"), CASES)
def test_steps_of_every_choice_are_the_references(runtime, config):
    """From the initial weights, zeros among them: what is equal after some steps has equal gradients in each."""
    session = new_session(config, ADAMW, runtime=runtime, threads=2)
    found, (expected, state) = curve(session, 10, rows=(4, 4)), of_the_reference(config, ADAMW, 10, (4, 4))
    np.testing.assert_allclose(found[:, 0], expected[:, 0], atol=1e-4)
    np.testing.assert_allclose(found[:, 1], expected[:, 1], rtol=2e-3)
    assert found[-1, 0] < found[0, 0] - 0.01, "nothing was learned, so equality says little"
    assert session.state().moments["m"].keys() == state.moments["m"].keys()


@pytest.mark.parametrize(
    ("way", "update"),
    [pytest.param(*way.values, update, id=f"{way.id}-{update}",
                  marks=[pytest.mark.slow] * (some in (LONG, MESHES) or (update != "muon" and some is SHARDED)
                                              or (update != "adamw" and way.id == "xla")))
     for some, updates in ((SINGLE, UPDATES), (SHARDED, ("adamw", "muon")), (MESHES, ("muon",)), (LONG, ("muon",)))
     for way in some for update in updates],
)  # fmt: skip
def test_a_few_steps_leave_the_references_arrays(way, update):
    """Moments and averages too, and the losses of both."""
    session = new_session(CONFIG, UPDATES[update], **way)
    found, (expected, state) = curve(session, 4), of_the_reference(CONFIG, UPDATES[update], 4)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    near = {"muon": 2e-3}.get(update, 1e-5)
    expect_close(session.state(), state, near, m=1e-6, v=1e-7)
    assert session.optimizer.t == 4
    reference, (batch, _) = new_session(CONFIG, UPDATES[update]), batches(CONFIG, 9)
    put(reference, state, 4)
    for average in (False, True):
        assert session.loss(*batch, average=average) == pytest.approx(
            reference.loss(*batch, average=average), rel=1e-4
        )


@pytest.mark.parametrize("way", ways({"threads": 3}) + slow(ways({"mesh": "data=2"}, {"mesh": "sequence=3"})))
def test_rows_that_threads_or_devices_cannot_share(way):
    found = curve(new_session(CONFIG, ADAMW, **way), 5, rows=(5, 3))
    np.testing.assert_allclose(found, of_the_reference(CONFIG, ADAMW, 5, (5, 3))[0], rtol=1e-5)


@pytest.mark.parametrize("update", ["adamw", "muon"])
@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_run_that_is_taken_up_has_the_bits_of_an_uninterrupted_one(way, update):
    """By another session, or by the same one, in which the arrays were exchanged."""
    whole, other = (new_session(CONFIG, UPDATES[update], **way) for _ in range(2))
    curve(whole, 3)
    state, expected = copied(whole), curve(whole, 3, first=3).tolist()
    after = bits(whole)
    for session in (other, whole):
        put(session, state, 3)
        assert curve(session, 3, first=3).tolist() == expected
        assert bits(session) == after
        assert session.optimizer.t == 6


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_one_array_that_was_exchanged_between_steps_is_taken_over(way, asked):
    """Whether or not the state was asked for before."""
    sessions = [new_session(CONFIG, ADAMW, **each) for each in (way, {})]
    for session in sessions:
        curve(session, 2)
        _ = asked and session.state()
        session.model.parameters()["wte"].data = np.full((12, 24), 0.01, np.float32)
    ours, theirs = (curve(session, 2, first=2) for session in sessions)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    expect_close(*(session.state() for session in sessions), 1e-4)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_what_else_a_session_computes_changes_no_later_step(way):
    """A loss of more rows: a larger workspace moves, and weights, moments and older plans go with it."""
    session = new_session(CONFIG, ADAMW, **way)
    found = []
    for step in range(6):
        found += curve(session, 1, first=step).tolist()
        (large,) = batches(CONFIG, step, (9,))
        session.state()
        with bh.no_grad():
            assert session.loss(*large) == pytest.approx(session.model.loss(*large).item(), rel=1e-5)
    assert found == curve(new_session(CONFIG, ADAMW, **way), 6).tolist()


@pytest.mark.parametrize("way", EVERY_WAY)
def test_the_average_follows_its_equation_and_its_loss_is_that_of_its_arrays(way):
    session = new_session(CONFIG, UPDATES["muon"], **way)
    expected, (batch, _) = copied(session).parameters, batches(CONFIG, 9)
    for step in range(3):
        curve(session, 1, first=step)
        theta, _, averages = session.state()
        expected = {n: averaged(a, theta[n], step + 1, 0.9) for n, a in expected.items()}
        for name, array in averages.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
    last, average = (session.loss(*batch, average=which) for which in (False, True))
    for name, parameter in session.model.parameters().items():
        parameter.data = np.array(averages[name])
    assert session.loss(*batch) == pytest.approx(average, rel=1e-6)
    assert average != last


@pytest.mark.parametrize("way", WAYS)
def test_another_runtime_goes_on_with_what_one_kept(way):
    first, second = (new_session(CONFIG, UPDATES["muon"], **each) for each in ({}, way))
    curve(first, 2)
    put(second, copied(first), 2)
    for session in (first, second):
        curve(session, 1, first=2)
    expect_close(second.state(), first.state(), 1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_state_is_what_model_and_optimizer_hold(name):
    session = new_session(CONFIG, ADAMW, runtime=name)
    before = copied(session).parameters
    assert not any(session.state().moments["m"].get(n, np.zeros(1)).any() for n in before)
    curve(session, 1)
    state = session.state()
    for n, tensor in session.model.parameters().items():
        assert np.shares_memory(tensor.data, state.parameters[n])
        assert not np.array_equal(tensor.data, before[n])
    assert session.optimizer.moments["m"].keys() == session.optimizer.moments["v"].keys() == before.keys()
    assert [set(part) for part in state.dictionaries()] == [*[set(before)] * 3, set()]
    for array in (array for part in state.dictionaries() for array in part.values()):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


FILES = (
    "numpy/session.py", "xla/session.py", "run/training.py", "run/runner.py", "run/thread_team.py", "byhand/optim.py"
)  # fmt: skip


@pytest.mark.parametrize("way", [*ways({}, {"threads": 3}), *ways({}, names=(REFERENCE,))])
def test_an_interrupt_anywhere_in_a_step_changes_all_or_nothing_and_t_says_which(way):
    session, counted = new_session(CONFIG, ADAMW, **way), set()
    curve(session, 1)
    state, before = copied(session), bits(session)
    expected = curve(session, 1, first=1).tolist()
    after, step = bits(session), batches(CONFIG, 1)

    def begin():
        put(session, state, 1)
        session.optimizer.lr = ADAMW.lr * (1 - 1 / 200)
        session.loss(*step[0])  # takes the arrays over

    every = {REFERENCE: 97, "xla": 5}.get(way["runtime"], 1)
    for point in at_every_point(lambda: session.step(step, 1.0), *FILES, every=every, begin=begin):
        assert bits(session) == (before, after)[session.optimizer.t - 1], point
        counted.add(session.optimizer.t)
        if point.endswith("0"):
            begin()
            assert curve(session, 1, first=1).tolist() == expected, point
    assert counted == {1, 2} if way["runtime"] != REFERENCE else 1 in counted  # all of its points: `test_optim.py`


@pytest.mark.parametrize(("update", "max_norm"), [("adamw", 0.0), ("adamw", 1.0), ("muon", 1.0)])
@pytest.mark.parametrize("way", [*ways({}, {"threads": 3}), *slow(SHARDED), *ways({}, names=(REFERENCE,))])
def test_a_step_that_is_not_finite_changes_nothing(way, update, max_norm):
    """The bias of one id is -inf: where it is the target, in whichever row, only the loss is infinite."""
    session = new_session(CONFIG, UPDATES[update], **way)
    parameters = session.model.parameters()
    for i, (row, name, bad) in enumerate([*((row, "lm_head.b", -np.inf) for row in range(4)), (0, "wpe", 1e38)]):
        first, *others = ((tokens % 10, targets % 10) for tokens, targets in batches(CONFIG, i))
        assert np.isfinite(curve(session, 1, first=i, max_norm=max_norm)).all()
        session.state()
        kept = np.array(parameters[name].data)
        parameters[name].data = np.full_like(kept, bad) if name == "wpe" else np.where(np.arange(12) == 10, bad, kept)
        parameters[name].data = parameters[name].data.astype(np.float32)
        first[1][row, 3] = 10
        before = bits(session)
        with np.errstate(all="ignore"):
            outcome = session.step([first, *others], max_norm)
            if i % 2:  # else the state is asked for before anybody has read the numbers
                assert not np.isfinite(outcome.loss)
            assert bits(session) == before
        assert session.optimizer.t == i + 1
        assert not np.isfinite(outcome.loss)
        if way["runtime"] == "loops":  # else this would say nothing about looking at the loss
            assert np.isfinite(outcome.norm) == (name != "wpe")
        parameters[name].data = kept


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counted", [None, 1, 5])
def test_the_last_targets_alone_are_counted(name, counted):
    session, (batch, _) = new_session(CONFIG, ADAMW, runtime=name), batches(CONFIG, 0)
    z = session.model.forward_logits(batch[0]).data.astype(float)
    p = np.take_along_axis(z, batch[1][..., None], -1)[..., 0] - np.log(np.exp(z).sum(-1))
    assert session.loss(*batch, counted) == pytest.approx(-p[:, -(counted or CONFIG.seq_len) :].mean(), rel=1e-6)
