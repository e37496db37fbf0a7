"""Small models and batches for the XLA runtime, and what the tape says of them."""

import numpy as np

from byhand.config import ModelConfig, OptimConfig
from byhand.model import TinyGPT, declared
from byhand.optim import Optimizer
from byhand.runtimes.protocol import Request
from byhand.runtimes.tape.session import TapeSession
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
BLIND = ModelConfig(**SHAPE, positions="none", qk_norm=True, attention_window=5)
FAMILY = {"plain": PLAIN, "other": OTHER, "grouped": GROUPED, "normed": NORMED, "blind": BLIND}


def batches(count, rows=4, config=PLAIN, seed=0):
    rng = np.random.default_rng(seed)
    return [tuple(rng.integers(0, config.vocab_size, (rows, config.seq_len)) for _ in range(2)) for _ in range(count)]


def laid_out(model, mesh=""):
    """Return the layout of a model, and its arrays on the devices."""
    layout = Layout(model.layers, model.config, mesh_of(mesh))
    return layout, layout.placed({name: p.data for name, p in model.parameters().items()})


def session(config=PLAIN, runtime="xla", seed=1, optim=None, **asked):
    model, optimizer = TinyGPT(config, seed), Optimizer(optim or OptimConfig(), declared(config))
    if runtime == "numpy":
        return TapeSession(model, optimizer)
    return XlaSession(model, optimizer, Request("train", config, "xla", **asked))


def losses(session, steps, per_step=1, rows=4):
    """Make steps, and return their losses and norms."""
    found = []
    for i in range(steps):
        session.optimizer.lr = 3e-3
        outcome = session.step(batches(per_step, rows, session.model.config, i), 1.0)
        found.append((outcome.loss, outcome.norm))
    return np.array(found)
