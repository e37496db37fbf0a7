"""Small models and batches for the XLA runtime, and what NumPy says of them.

Sessions of one request share their compiled programs, which hold no numbers: compiling is what these tests cost.
"""

from functools import cache

import numpy as np
import pytest

from byhand.config import ModelConfig, OptimConfig
from byhand.model import TinyGPT, declared
from byhand.optim import Optimizer
from byhand.runtimes.numpy.session import NumpySession
from byhand.runtimes.protocol import Request
from byhand.runtimes.xla import sharing
from byhand.runtimes.xla.layout import Layout
from byhand.runtimes.xla.mesh import mesh_of
from byhand.runtimes.xla.session import XlaSession

SHAPE = {"vocab_size": 12, "seq_len": 8, "d_model": 16, "n_layers": 3, "n_heads": 4}
PLAIN = ModelConfig(**SHAPE)
OTHER = ModelConfig(
    **SHAPE, norm_position="post", norm_affine=True, activation="relu", lm_head_bias=False, tied_embeddings=True
)
OPEN = ModelConfig(**SHAPE, norm_affine=True, causal=False)
GROUPED = ModelConfig(  # as llama: two query heads for each head of keys and values
    **SHAPE, positions="rotary", n_kv_heads=2, norm="rms", norm_affine=True, attention_bias="none", mlp_bias=False,
    lm_head_bias=False,
)  # fmt: skip
NORMED = ModelConfig(  # as qwen3, and with a window
    **SHAPE, positions="rotary", rope_pairing="neighbours", rope_fraction=0.5, n_kv_heads=1, d_head=6, qk_norm=True,
    norm="rms", norm_affine=True, attention_bias="qkv", attention_window=3, logit_softcap=2.0, tied_embeddings=True,
)  # fmt: skip
COUNTED = ModelConfig(vocab_size=64, seq_len=16, d_model=32, n_layers=3, n_heads=4)
BLIND = ModelConfig(**SHAPE, positions="none", qk_norm=True, attention_window=5)
FAMILY = {"plain": PLAIN, "other": OTHER, "grouped": GROUPED, "normed": NORMED, "blind": BLIND}


def batches(count, rows=4, config=PLAIN, seed=0):
    rng = np.random.default_rng(seed)
    return [tuple(rng.integers(0, config.vocab_size, (rows, config.seq_len)) for _ in range(2)) for _ in range(count)]


def laid_out(model, mesh=""):
    """Return the layout of a model, and its arrays on the devices."""
    layout = Layout(model.layers, model.config, mesh_of(mesh))
    return layout, layout.placed({name: p.data for name, p in model.parameters().items()})


PROGRAMS = {}


def session(config=PLAIN, runtime="xla", seed=1, optim=None, **asked):
    settings = optim or OptimConfig()
    model, optimizer = TinyGPT(config, seed), Optimizer(settings, declared(config))
    if runtime == "numpy":
        return NumpySession(model, optimizer)
    request = Request("train", config, "xla", **asked)
    made = XlaSession(model, optimizer, request)
    made._made = PROGRAMS.setdefault((request, settings), {})
    return made


@cache
def steps_of_one_device(name, count):
    """Return a session of one device after `count` steps of eight rows, and their losses."""
    made = session(FAMILY[name])
    return made, losses(made, count, rows=8)


COMPILED = cache(sharing._compiled)


@cache
def share(mesh, rows=8, per_host=8, **asked):
    """Return what XLA counts for each device of a mesh; programs are compiled once."""
    request = Request("train", COUNTED, "xla", mesh=mesh, **asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "_compiled", COMPILED)
        return sharing.device_share(request, (rows, COUNTED.seq_len), per_host)


def losses(session, steps, per_step=1, rows=4):
    """Make steps, and return their losses and norms."""
    found = []
    for i in range(steps):
        session.optimizer.lr = 3e-3
        outcome = session.step(batches(per_step, rows, session.model.config, i), 1.0)
        found.append((outcome.loss, outcome.norm))
    return np.array(found)
