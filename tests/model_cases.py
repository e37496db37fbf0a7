"""Models of every setting, with parameters and tokens by formula: the same numbers on every machine."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.engine.equation import with_role
from byhand.model import TinyGPT, parameter_shapes
from byhand.tracing.trace import Trace

VOCAB_SIZE, SEQ_LEN, WIDTH, LAYERS = 7, 5, 4, 2
STEPS = 10
WITHOUT_KERNEL: frozenset[str] = frozenset()
"""Equations that a choice of the config applies and that the loops compute by their reference halves."""
ADAMW: dict[str, Any] = {"lr": 0.02, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0.1}


def each_choice(**settings: Any) -> list[dict[str, Any]]:
    """Return the settings with each choice that the config offers in place of a default, one at a time."""
    found = []
    for name, hint in get_type_hints(ModelConfig).items():
        options = get_args(hint) if get_origin(hint) is Literal else (False, True) if hint is bool else ()
        found += [{**settings, name: option} for option in options if option != getattr(ModelConfig(), name)]
    return found


def lacking_kernels(config: ModelConfig) -> set[str]:
    """Return the equations of WITHOUT_KERNEL that this model applies."""
    tokens = np.zeros((1, config.seq_len), np.int64)
    trace = Trace.of(lambda: TinyGPT(config).loss(tokens, tokens))
    return {application.equation.name for application in trace.applications} & WITHOUT_KERNEL


@cache
def every_setting() -> tuple[ModelConfig, ...]:
    """Return one small model for each combination of settings."""
    choices = itertools.product(
        ("pre", "post"), (False, True), ("gelu", "relu"), (True, False), (True, False), (False, True), (1, 2)
    )
    return tuple(
        ModelConfig(
            vocab_size=VOCAB_SIZE,
            seq_len=SEQ_LEN,
            d_model=WIDTH,
            n_layers=LAYERS,
            norm_position=position,
            norm_affine=affine,
            activation=activation,
            causal=causal,
            lm_head_bias=bias,
            tied_embeddings=tied,
            n_heads=heads,
        )
        for position, affine, activation, causal, bias, tied, heads in choices
    )


def swept() -> list[Any]:
    """Return the models of `every_setting` as parameters of a test: one of nine quickly, all in the slow sweep."""
    return [
        pytest.param(config, id=setting_name(config), marks=pytest.mark.slow if i % 9 else [])
        for i, config in enumerate(every_setting())
    ]


SIZES: dict[str, tuple[Any, ...]] = {  # settings of a drawn model that are not choices among names
    "n_heads": (1, 2, 4), "n_kv_heads": (None, 1, 2, 4), "d_head": (None, 4, 6), "d_ff": (None, 7),
    "rope_base": (10000.0, 100.0), "rope_fraction": (1.0, 0.5), "attention_window": (None, 1, 3, 20),
    "logit_softcap": (0.0, 2.0), "rope_original_len": (8192, 20), "norm_eps": (1e-5, 1e-6), "seq_len": (5, 8, 9),
}  # fmt: skip


def drawn_config(seed: int) -> ModelConfig:
    """Return a small model with every setting drawn at random, each from its own name: a new one moves no other."""
    chosen: dict[str, Any] = {}
    for name, hint in get_type_hints(ModelConfig).items():
        options = get_args(hint) if get_origin(hint) is Literal else (False, True) if hint is bool else ()
        if options := SIZES.get(name, options):
            draw = np.random.default_rng([seed, *name.encode()])
            chosen[name] = options[draw.integers(len(options))]
    if chosen["n_heads"] % (chosen["n_kv_heads"] or 1):
        chosen["n_kv_heads"] = None
    if not chosen["causal"]:
        chosen["attention_window"] = None
    return ModelConfig(vocab_size=13, d_model=16, n_layers=2, **chosen)


def setting_name(config: ModelConfig) -> str:
    """Return a short name of the settings, such as `pre-plain-gelu-causal-bias-untied-h1`."""
    return "-".join(
        (
            config.norm_position,
            "affine" if config.norm_affine else "plain",
            config.activation,
            "causal" if config.causal else "open",
            "bias" if config.lm_head_bias else "nobias",
            "tied" if config.tied_embeddings else "untied",
            f"h{config.n_heads}",
        )
    )


def parameters(config: ModelConfig, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    """Return every parameter as half the sine of running numbers; gains lie around 1, nothing is 0."""
    arrays, first = {}, 1
    for name, shape in parameter_shapes(config).items():
        size = math.prod(shape)
        values = [0.5 * math.sin(1.3 * n + 0.001 * n * n) for n in range(first, first + size)]
        arrays[name] = np.array(values, dtype).reshape(shape) + dtype(name.endswith(".gain"))
        first += size
    return arrays


def batch(config: ModelConfig, rows: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return tokens and targets (B, T), each the token after; some repeat, and one never comes."""
    n = np.arange(rows * (config.seq_len + 1)).reshape(rows, -1)
    text = (n * n + n // 3) % (config.vocab_size - 1)
    return text[:, :-1], text[:, 1:]


def stored_settings() -> list[ModelConfig]:
    """Return the settings whose numbers are stored in `fixtures`: the seeds', document 004's, GPT-2's, and others."""
    names = {
        "pre-plain-gelu-causal-bias-untied-h1",
        "pre-plain-gelu-causal-bias-untied-h2",
        "pre-affine-gelu-causal-nobias-tied-h2",
        "pre-affine-relu-open-bias-tied-h1",
        "post-plain-relu-open-bias-untied-h2",
        "post-affine-gelu-causal-nobias-untied-h2",
    }
    return [config for config in every_setting() if setting_name(config) in names]


BIASLESS = {
    "norm": "rms", "norm_affine": True, "activation": "relu_squared", "logit_softcap": 2.0, "attention_bias": "none",
    "mlp_bias": False, "lm_head_bias": False,
}  # fmt: skip
MIXED = {  # layers with a window, without rotary positions, and of all positions; norms before and behind
    "positions": "rotary", "n_layers": 3, "layer_pattern": "wgn", "attention_window": 3, "rope_base": 500.0,
    "rope_window_base": 50.0, "rope_scaling": "linear", "norm": "rms", "norm_affine": True, "norm_position": "both",
    "qk_norm": True, "qk_norm_over": "heads", "attention_divisor": 3.0, "scaled_embeddings": True,
    "activation": "geglu", "attention_bias": "out", "mlp_bias": False, "lm_head_bias": False, "tied_embeddings": True,
}  # fmt: skip
LOCAL = {
    "n_layers": 3,
    "layer_pattern": "gw",
    "attention_window": 2,
    "attention_divisor": 1.0,
    "attention_bias": "out",
}
FAMILY = {
    "default": {},
    "one head": {"n_heads": 1},
    "post-norm, affine, relu": {"norm_position": "post", "norm_affine": True, "activation": "relu"},
    "tied, no head bias": {"tied_embeddings": True, "lm_head_bias": False},
    "not causal, narrow": {"causal": False, "d_ff": 5},
    "capped": {"logit_softcap": 2.0},
    "capped and tied, no head bias": {"logit_softcap": 2.0, "tied_embeddings": True, "lm_head_bias": False},
    "no bias anywhere, RMSNorm with gain, squared ReLU, capped": BIASLESS,
    **{f"no bias in the MLP, {name}": {"mlp_bias": False, "activation": name} for name in with_role("activation")},
    **{f"no bias in the MLP, {name}, tied": {"mlp_bias": False, "activation": name, "tied_embeddings": True}
       for name in with_role("gate")},
    **{f"narrow {name}": {"activation": name, "d_ff": 5, "norm_position": "post"} for name in with_role("gate")},
    "layers of three kinds": MIXED,
    "layers with and without a window": LOCAL,
    "norms of outputs": {"norm_position": "output", "norm": "rms", "qk_norm": True, "qk_norm_over": "heads"},
    "RMSNorm behind the sum": {"norm": "rms", "norm_position": "post", "norm_eps": 0.01},
    **{str(chosen): chosen for chosen in (*each_choice(), *each_choice(norm_affine=True))},
}  # fmt: skip
