"""Models of the family drawn at random: every runtime makes NumPy's steps and writes NumPy's text."""

from dataclasses import replace

import numpy as np
import pytest

import byhand as bh
from byhand.config import OptimConfig
from byhand.errors import ConfigError
from byhand.model import TinyGPT
from byhand.optim import State
from byhand.runtimes.protocol import Request
from byhand.runtimes.sampling import Sampling
from model_cases import drawn_config, lacking_kernels
from runtimes.registered import OTHERS, REFERENCE, SUITED, able, new_session
from runtimes.steps import copied, made, put

CASES = [
    pytest.param(seed, name, marks=() if seed < (4 if name in SUITED else 1) else pytest.mark.slow)
    for seed in range(150) for name in OTHERS
]  # fmt: skip


def model_of(config, scale=4.0):
    """Return a model whose parts all matter: larger weights than initial ones, and no zeros."""
    model, rng = TinyGPT(config), np.random.default_rng(7)
    for name, p in model.parameters().items():
        mean = 1.0 if name.endswith("gain") else 0.0
        p.data = (mean + 0.02 * scale * rng.standard_normal(p.shape)).astype(np.float32)
    return model


def optim_of(seed):
    """Return AdamW or Muon, by turns."""
    return OptimConfig(optimizer=("adamw", "muon")[seed % 2], muon_lr=1e-3)


def steps(config, runtime, seed):
    """Make three steps, and return losses and the weights after them."""
    session = new_session(config, optim_of(seed), runtime=runtime)
    put(session, State({name: p.data for name, p in model_of(config).parameters().items()}, {}, {}), 0)
    session.optimizer.lr = 1e-3
    losses = [session.step(made(config, (3, config.seq_len), seed=step), 1.0).loss for step in range(3)]
    return np.array(losses), copied(session).parameters


def sloping(config, name):
    """Return the part of a parameter whose gradient is not zero by theory: all but a bias added to every key alike.

    Such a bias moves all scores of a query by one number, which softmax ignores; AdamW enlarges what rounding leaves.
    """
    if name.endswith("b_qkv") and config.positions != "rotary" and not config.qk_norm:
        part = config.kv_heads * config.head_width  # queries, then one part of keys and one of values
        return np.r_[: config.n_heads * config.head_width, -part:0]
    return ...


@pytest.mark.parametrize(("seed", "runtime"), CASES)
def test_steps_are_the_tapes(seed, runtime):
    config = drawn_config(seed)
    losses, arrays = steps(config, runtime, seed)
    expected, exact = steps(config, REFERENCE, seed)
    np.testing.assert_allclose(losses, expected, rtol=2e-5, err_msg=str(config))
    for name, array in exact.items():  # AdamW makes large steps of small gradients: most numbers must agree
        far = np.abs(arrays[name] - array)[sloping(config, name)] > 2e-4
        assert far.mean() <= 0.02, (name, config)


@pytest.mark.parametrize(("seed", "runtime"), CASES)
def test_greedy_text_is_the_tapes(seed, runtime):
    """Three windows long; where two logits lie close, rounding may decide, so the text is held while they do not."""
    config = replace(drawn_config(seed), causal=True)
    model = model_of(config, 20.0)
    prompt = [1, 2, 3]
    count = 3 * config.seq_len
    able(Request("generate", config, runtime))
    try:
        ours = list(bh.generate(model, prompt, count, Sampling(0.0), runtime=runtime))
    except ConfigError as error:
        if lacking_kernels(config):
            pytest.skip(str(error))
        raise
    tapes = list(bh.generate(model, prompt, count, Sampling(0.0), runtime=REFERENCE))
    if ours != tapes:
        same = next(i for i, (a, b) in enumerate(zip(ours, tapes, strict=True)) if a != b)
        assert _gap(model, prompt, tapes[:same]) < 1e-3, config


def _gap(model, prompt, text):
    """Return how far the two largest logits after a text lie apart, relative to the largest."""
    from byhand.runtimes.numpy.decoder import next_logits

    tokens = list(prompt)
    for logits, token in zip(next_logits(model, tokens, len(text) + 1), [*text, None], strict=True):
        if token is None:
            first, second = np.sort(logits)[:-3:-1]
            return (first - second) / max(1.0, abs(first))
        tokens.append(token)
    raise AssertionError
