"""Training by plan: curves, moments, accumulation, clipping, repeatability, and what happens when it goes wrong."""

import importlib.util
import platform
from dataclasses import replace

import numpy as np
import pytest

import byhand as bh

if importlib.util.find_spec("numba") is None or importlib.util.find_spec("scipy") is None:
    pytest.skip("the loops runtime needs numba and scipy (extra `fast`)", allow_module_level=True)

from byhand.errors import ByhandError
from byhand.runtimes.loops.run.training import LoopsSession
from runtimes.loops.arrays import gradients_of

CONFIG = bh.ModelConfig(vocab_size=23, seq_len=16, d_model=16, n_layers=2, n_heads=2)


def batches(steps, micro=1, rows=4, seed=0):
    rng = np.random.default_rng(seed)
    text = np.cumsum(rng.integers(0, 3, 500)) % CONFIG.vocab_size  # something to learn
    for _ in range(steps):
        made = []
        for _ in range(micro):
            starts = rng.integers(0, len(text) - 17, rows)
            windows = np.stack([text[s : s + 17] for s in starts])
            made.append((windows[:, :-1].copy(), windows[:, 1:].copy()))
        yield made


def train_by_plan(steps, threads=2, micro=1, max_norm=1.0, rows=4, blas="auto", config=CONFIG, **optimizer):
    model, adamw = bh.TinyGPT(config, seed=5), bh.AdamW(**{"lr": 3e-3, "weight_decay": 0.1, **optimizer})
    runtime = LoopsSession(model, adamw, threads, blas)
    return model, adamw, [runtime.step(b, max_norm) for b in batches(steps, micro, rows)]


def train_by_tape(steps, micro=1, max_norm=1.0, rows=4, config=CONFIG, **optimizer):
    model, adamw = bh.TinyGPT(config, seed=5), bh.AdamW(**{"lr": 3e-3, "weight_decay": 0.1, **optimizer})
    curve = []
    for step in batches(steps, micro, rows):
        model.zero_grad()
        losses = [model.loss(*b) for b in step]
        for loss in losses:
            loss.backward(np.float32(1 / micro))
        norm = adamw.clipped_step(model.parameters(), max_norm)
        curve.append((sum(loss.item() for loss in losses) / micro, norm))
    return model, adamw, curve


@pytest.mark.parametrize(("decay", "blas"), [("all", "tiles"), ("matrices", "tiles"), ("matrices", "scipy")])
def test_a_hundred_steps_have_the_tapes_losses(decay, blas):
    *_, ours = train_by_plan(100, decay=decay, blas=blas)
    *_, theirs = train_by_tape(100, decay=decay)
    (losses, norms), (expected_losses, expected_norms) = (zip(*curve, strict=True) for curve in (ours, theirs))
    np.testing.assert_allclose(losses, expected_losses, atol=1e-4)
    np.testing.assert_allclose(norms, expected_norms, rtol=2e-3)
    assert ours[-1][0] < ours[0][0] - 0.5, "nothing was learned, so equality says little"


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"norm": "rms"},
        {"norm": "rms", "norm_position": "post"},
        {"activation": "relu_squared"},
        {"activation": "silu"},
        {"activation": "gelu_exact"},
        {"activation": "swiglu"},
        {"activation": "swiglu", "mlp_bias": False},
        {"mlp_bias": False},
        {"lm_head_bias": False, "attention_bias": "none"},
        {"attention_bias": "qkv"},
        {"logit_softcap": 1.5},
        {"zero_init": True},
        {
            "norm": "rms", "activation": "relu_squared", "mlp_bias": False, "lm_head_bias": False,
            "attention_bias": "none", "logit_softcap": 1.5, "tied_embeddings": True, "zero_init": True,
        },
    ],
    ids=str,
)  # fmt: skip
def test_steps_of_every_choice_have_the_tapes_losses(settings, affine):
    """From the initial weights, zeros among them: what is equal after some steps has equal gradients in each."""
    config = replace(CONFIG, **settings, norm_affine=affine)
    _, adamw, ours = train_by_plan(20, micro=2, config=config)
    _, expected, theirs = train_by_tape(20, micro=2, config=config)
    (losses, norms), (expected_losses, expected_norms) = (zip(*curve, strict=True) for curve in (ours, theirs))
    np.testing.assert_allclose(losses, expected_losses, atol=1e-4)
    np.testing.assert_allclose(norms, expected_norms, rtol=2e-3)
    assert losses[-1] < losses[0] - 0.1, "nothing was learned, so equality says little"
    assert adamw.moments["m"].keys() == expected.moments["m"].keys()


def test_moments_and_weights_go_by_the_same_names():
    ours, adamw, _ = train_by_plan(3)
    theirs, expected, _ = train_by_tape(3)
    assert adamw.t == expected.t == 3
    assert adamw.moments["m"].keys() == expected.moments["m"].keys()
    for name, p in theirs.parameters().items():
        np.testing.assert_allclose(ours.parameters()[name].data, p.data, atol=2e-3)
        np.testing.assert_allclose(adamw.moments["m"][name], expected.moments["m"][name], atol=1e-6)
        np.testing.assert_allclose(adamw.moments["v"][name], expected.moments["v"][name], atol=1e-7)


@pytest.mark.parametrize("micro", [2, 3])
def test_micro_batches_are_averaged(micro):
    *_, ours = train_by_plan(5, micro=micro)
    *_, theirs = train_by_tape(5, micro=micro)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_the_same_threads_give_the_same_bits_and_others_the_same_numbers():
    first, second = train_by_plan(20, threads=2), train_by_plan(20, threads=2)
    assert first[2] == second[2]
    for name, p in first[0].parameters().items():
        np.testing.assert_array_equal(p.data, second[0].parameters()[name].data)
    for threads in (1, 3):
        *_, other = train_by_plan(20, threads=threads)
        np.testing.assert_allclose(other, first[2], rtol=1e-4)


def test_batches_that_do_not_divide_among_the_threads():
    *_, ours = train_by_plan(5, threads=3, rows=5)
    *_, theirs = train_by_tape(5, rows=5)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_a_loss_that_explodes_updates_nothing():
    model, adamw = bh.TinyGPT(CONFIG), bh.AdamW(lr=1.0)
    runtime = LoopsSession(model, adamw, threads=2)
    (step,) = next(batches(1))
    runtime.step([step])
    model.parameters()["lm_head.w"].data[0, 0] = np.inf
    before = {name: p.data.copy() for name, p in model.parameters().items()}
    loss, norm = runtime.step([step])
    assert not np.isfinite(loss)
    assert not np.isfinite(norm)
    assert adamw.t == 1
    for name, p in model.parameters().items():
        np.testing.assert_array_equal(p.data, before[name])


def test_arrays_exchanged_from_outside_are_taken_over():
    """As loading a checkpoint does: new arrays under the old names, between two steps."""
    steps = list(batches(4))
    model, adamw = bh.TinyGPT(CONFIG, seed=5), bh.AdamW(lr=3e-3)
    runtime = LoopsSession(model, adamw, threads=2)
    for step in steps[:2]:
        runtime.step(step)
    kept = {name: p.data.copy() for name, p in model.parameters().items()}
    moments = {kind: {k: x.copy() for k, x in arrays.items()} for kind, arrays in adamw.moments.items()}
    expected = [runtime.step(step) for step in steps[2:]]
    for name, p in model.parameters().items():
        p.data = kept[name]
    adamw.restore(moments, {})
    adamw.t = 2
    assert [runtime.step(step) for step in steps[2:]] == expected


def test_a_second_shape_does_not_disturb_the_first():
    """The workspace grows for a larger batch and moves; weights, moments and the old plan go with it."""
    model, adamw = bh.TinyGPT(CONFIG, seed=5), bh.AdamW(lr=3e-3, weight_decay=0.1)
    runtime = LoopsSession(model, adamw, threads=2)
    curve = []
    for step in batches(6):
        curve.append(runtime.step(step, 1.0))
        (large,) = next(batches(1, rows=9))
        assert runtime.loss(*large) == pytest.approx(model.loss(*large).item(), rel=1e-5)
    *_, expected = train_by_plan(6)
    assert curve == expected


@pytest.mark.parametrize(
    ("tokens", "targets", "words"),
    [
        ([[23, 0]], [[0, 0]], "tokens hold the id 23"),
        ([[0, 0]], [[0, -1]], "targets hold the id -1"),
        ([[0, 0]], [[0]], "do not match"),
        ([[0] * 17], [[0] * 17], "seq_len is 16"),
    ],
)
def test_tokens_that_would_read_past_the_tables_are_refused(tokens, targets, words):
    runtime = LoopsSession(bh.TinyGPT(CONFIG), bh.AdamW())
    with pytest.raises(ByhandError, match=words):
        runtime.step([(np.array(tokens), np.array(targets))])
    assert runtime.optimizer.t == 0
    with pytest.raises(ByhandError, match=words):
        runtime.loss(np.array(tokens), np.array(targets))


def test_probabilities_too_small_for_float32_cost_nothing():
    """Denormal numbers are many times slower; the caller's own arithmetic keeps them."""
    tiny = np.full(4, 1e-30, np.float32)
    model = bh.TinyGPT(CONFIG, seed=5)
    bias = model.parameters()["lm_head.b"].data
    bias[12:] = np.linspace(-80, -100, 11)
    runtime = LoopsSession(model, bh.AdamW(), threads=2)
    rng = np.random.default_rng(0)
    tokens, targets = (rng.integers(0, 12, (4, 16)) for _ in range(2))
    runtime.step([(tokens, targets)])
    small = np.finfo(np.float32).smallest_normal
    head = gradients_of(runtime)["lm_head.w"]
    assert not ((head != 0) & (np.abs(head) < small)).any()
    assert (head[:, 12:] == 0).any()
    if platform.machine().lower() in ("x86_64", "amd64"):
        assert (tiny * np.float32(1e-10) > 0).all(), "the thread's mode was not restored"
