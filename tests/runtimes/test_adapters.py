"""Training of adapters in every runtime: the reference's numbers, and a base without a changed bit."""

import math
from dataclasses import replace

import numpy as np
import pytest

from byhand.config import ModelConfig, OptimConfig
from byhand.model import declared
from runtimes.registered import OTHERS, REFERENCE, SUITED, new_session, ways
from runtimes.steps import batches, bits, copied, curve, expect_close, put

CONFIG = ModelConfig(vocab_size=12, seq_len=8, d_model=24, n_layers=2, n_heads=4, norm_affine=True, lora=4)
MODELS = {
    "all of the blocks": CONFIG,
    "gates, groups, rotary": replace(CONFIG, activation="swiglu", n_kv_heads=2, positions="rotary", norm="rms"),
    "head alone": replace(CONFIG, lora_on="lm_head.w", logit_softcap=2.0),
    "tied, post-norm": replace(CONFIG, tied_embeddings=True, norm_position="post", lora_on="mlp.*"),
}
ADAMW = OptimConfig(lr=1e-2, weight_decay=0.1, eps=1e-5)
MUON = OptimConfig(lr=3e-3, optimizer="muon", muon_lr=0.03, eps=1e-5)


def due(config):
    return {name for name, parameter in declared(config).items() if parameter.trained}


@pytest.mark.parametrize(
    ("way", "model", "optim"),
    [pytest.param(way.values[0], model, optim, id=f"{way.id}-{model}-{optim.optimizer}",
                  marks=[] if way.values[0]["runtime"] in SUITED else pytest.mark.slow)
     for way in ways({"threads": 2}, names=OTHERS) + ways({}, names=OTHERS) for model in MODELS
     for optim in (ADAMW, MUON) if "threads" in way.values[0] or way.values[0]["runtime"] not in SUITED],
)  # fmt: skip
def test_steps_are_the_references_and_the_base_keeps_its_bits(way, model, optim):
    config = MODELS[model]
    session, reference = new_session(config, optim, **way), new_session(config, optim)
    before, (tokens, targets) = bits(session), batches(config, 0)[0]
    begun = session.loss(tokens, targets)
    found, expected = curve(session, 6), curve(reference, 6)
    np.testing.assert_allclose(found, expected, rtol=2e-4)
    expect_close(session.state(), reference.state(), 1e-3, m=1e-5, v=1e-6)
    after, (_, *moments) = bits(session), session.state().dictionaries()
    assert {name for (part, name), held in before.items() if part == 0 and after[0, name] != held} == due(config)
    assert set().union(*moments) == due(config), "a frozen array has moments"
    ended = session.loss(tokens, targets)
    assert ended == pytest.approx(reference.loss(tokens, targets), rel=1e-4)
    assert ended < begun - 0.005, "nothing was learned, so equality says little"


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", ways({"mesh": "fsdp=2"}, {"mesh": "tensor=2"}, {"mesh": "data=2"}, {"dtype": "bfloat16"})
)
def test_devices_that_share_the_arrays(way):
    found, expected = curve(new_session(CONFIG, ADAMW, **way), 4), curve(new_session(CONFIG, ADAMW), 4)
    np.testing.assert_allclose(found, expected, rtol=0.02 if "dtype" in way else 1e-4)


@pytest.mark.parametrize("way", ways({}, names=(REFERENCE, *(name for name in OTHERS if name in SUITED))))
def test_taken_up_it_has_the_bits_of_an_uninterrupted_run(way):
    whole, other = (new_session(CONFIG, ADAMW, **way) for _ in range(2))
    curve(whole, 2)
    state, expected = copied(whole), curve(whole, 2, first=2).tolist()
    put(other, state, 2)
    assert curve(other, 2, first=2).tolist() == expected
    assert bits(other) == bits(whole)


def test_an_update_without_a_kernel_leaves_the_base(monkeypatch):
    if "loops" not in SUITED:
        pytest.skip("the loops runtime is not for this machine")
    from byhand.runtimes.loops.lower import update
    from byhand.runtimes.loops.run import training

    for module in (update, training):
        monkeypatch.setattr(module, "by_kernels", lambda regions: False)
    session, reference = (new_session(CONFIG, ADAMW, runtime=name) for name in ("loops", REFERENCE))
    before = bits(session)
    np.testing.assert_allclose(curve(session, 3), curve(reference, 3), rtol=1e-4)
    after = bits(session)
    assert {name for part, name in before if part == 0 and after[0, name] != before[0, name]} == due(CONFIG)


def test_the_loops_keep_gradients_and_moments_of_adapters_alone():
    if "loops" not in SUITED:
        pytest.skip("the loops runtime is not for this machine")
    numbers = {n: math.prod(p.shape) for n, p in declared(CONFIG).items()}
    trained = sum(-(-numbers[n] // 16) * 16 for n in due(CONFIG))  # each begins on a cache line
    regions = new_session(CONFIG, ADAMW, runtime="loops", threads=2).arena.regions
    assert regions.size == trained
    assert regions.workspace == sum(-(-n // 16) * 16 for n in numbers.values()) + (2 + 2) * trained
    labels = {call.kernel for call in new_session(CONFIG, ADAMW, runtime="loops").plan("train", (2, 8)).calls}
    assert "reference" not in labels
    assert not {"embed_back", "positions_back"} & labels, "gradients of frozen tables are computed"
