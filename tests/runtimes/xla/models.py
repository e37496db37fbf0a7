"""Small models for the XLA runtime, and what XLA compiles of them."""

from functools import cache

import pytest
import sharing

from byhand.config import ModelConfig
from byhand.runtimes.protocol import Request
from byhand.runtimes.xla.layout import Layout
from byhand.runtimes.xla.mesh import mesh_of
from model_cases import MIXED as MIXED_LAYERS
from runtimes.registered import new_session
from runtimes.steps import curve

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
MIXED = ModelConfig(**SHAPE | MIXED_LAYERS, n_kv_heads=2)
FAMILY = {
    "plain": PLAIN, "other": OTHER, "grouped": GROUPED, "normed": NORMED, "blind": BLIND, "mixed": MIXED,
}  # fmt: skip


def laid_out(model, mesh=""):
    """Return the layout of a model, and its arrays on the devices."""
    layout = Layout(model.layers, model.config, mesh_of(mesh))
    return layout, layout.placed({name: p.data for name, p in model.parameters().items()})


@cache
def steps_of_one_device(name, count):
    """Return a session of one device after `count` steps of eight rows, and their losses."""
    session = new_session(FAMILY[name], runtime="xla")
    return session, curve(session, count, rows=(8,))


COMPILED = cache(sharing._compiled)


@cache
def share(mesh, rows=8, per_host=8, **asked):
    """Return what XLA counts for each device of a mesh; programs are compiled once."""
    request = Request("train", COUNTED, "xla", mesh=mesh, **asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "_compiled", COMPILED)
        return sharing.device_share(request, (rows, COUNTED.seq_len), per_host)
