"""Families of models that other programs know, each as the settings that its models may have.

A family may have more parameters than a run: biases, gains. `completed` adds them as zeros and ones, which change no
number. Any other difference is refused, with the setting to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ConfigError, DataError
from byhand.interop.pairing import with_pairing
from byhand.model import declared

Arrays = Mapping[str, np.ndarray]
OF_ALL = {"norm_position": ("pre",), "causal": (True,), "lm_head_bias": (False,), "logit_softcap": (0.0,)}
GROWING = {  # settings that a family may raise: each value has the parameters of those before it, and more
    "norm_affine": (False, True),
    "mlp_bias": (False, True),
    "attention_bias": ("none", "qkv", "all"),
}
FOLLOWS = {  # settings that follow from the others where they are None, and the properties that hold their values
    "d_ff": "ff_width",
    "d_head": "head_width",
    "n_kv_heads": "kv_heads",
    "attention_window": "visible",
}
FLAGS = {True: "--{}", False: "--no-{}"}


@dataclass(frozen=True)
class Family:
    """Models that differ in sizes only.

    settings  by name: the values that the family's models may have, the usual one first
    grouped   whether K and D may differ from H and C / H
    windowed  whether a position may attend to so many at most
    """

    name: str
    settings: Mapping[str, tuple[Any, ...]]
    grouped: bool = True
    windowed: bool = False
    activations: Mapping[str, str] = field(default_factory=dict)  # ours: theirs

    def allowed(self) -> dict[str, tuple[Any, ...]]:
        """Return all settings that are bound, with the values that each may have."""
        return {**OF_ALL, "norm_affine": (True,), **self.settings, "activation": tuple(self.activations)}

    def usual(self) -> dict[str, Any]:
        """Return all settings that are bound, each with its usual value."""
        return {name: values[0] for name, values in self.allowed().items()}

    def problems(self, config: ModelConfig) -> list[str]:
        """Return why the family cannot have a model: a sentence for each difference, with what to change."""
        found = []
        for name, values in self.allowed().items():
            value = getattr(config, name)
            if value in values or (name in GROWING and _raised(name, value, values) is not None):
                continue
            flag = name.replace("_", "-")
            use = FLAGS[values[0]].format(flag) if type(values[0]) is bool else f"--{flag} {values[0]}"
            found.append(f"{name} is {_said(value)}, which {self.name} models lack. Train a model with {use}.")
        if not self.grouped and config.kv_heads != config.n_heads:
            found.append(f"{self.name} models have as many heads of keys as of queries. Train without --n-kv-heads.")
        if not self.grouped and config.head_width * config.n_heads != config.d_model:
            found.append(f"the heads of {self.name} models divide the width. Train without --d-head.")
        if not self.windowed and config.visible < config.seq_len:
            found.append(f"{self.name} models have no window of attention. Train without --attention-window.")
        if config.positions == "rotary" and config.rotary_width != config.head_width:
            change = "an even --d-head" if config.head_width % 2 else "--rope-fraction 1"
            found.append(f"{self.name} models rotate whole heads of an even width. Train with {change}.")
        return found

    def completed(self, config: ModelConfig) -> ModelConfig:
        """Return the config with the parameters that the family has on top."""
        allowed = self.allowed()
        raised = {name: _raised(name, getattr(config, name), allowed[name]) for name in GROWING if name in allowed}
        return replace(config, **{name: value for name, value in raised.items() if value is not None})


def _raised(name: str, value: Any, values: tuple[Any, ...]) -> Any:
    """Return the first of a family's values that has the parameters of `value`; None if none has."""
    order = GROWING[name]
    return next((v for v in order[order.index(value) :] if v in values), None)


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


LLAMA = {"positions": ("rotary",), "norm": ("rms",), "attention_bias": ("none",), "mlp_bias": (False,)}
SWIGLU = {"swiglu": "silu"}
FAMILIES = {
    family.name: family
    for family in (
        Family(
            "gpt2",
            {
                "positions": ("learned",),
                "norm": ("layer",),
                "qk_norm": (False,),
                "attention_bias": ("all",),
                "mlp_bias": (True,),
            },
            grouped=False,
            activations={
                "gelu": "gelu_new",
                "gelu_exact": "gelu",
                "relu": "relu",
                "relu_squared": "relu2",
                "silu": "silu",
            },
        ),
        Family(
            "llama",
            {**LLAMA, "qk_norm": (False,), "attention_bias": ("none", "all"), "mlp_bias": (False, True)},
            activations=SWIGLU,
        ),
        Family("mistral", {**LLAMA, "qk_norm": (False,)}, windowed=True, activations=SWIGLU),
        Family("qwen2", {**LLAMA, "qk_norm": (False,), "attention_bias": ("qkv",)}, activations=SWIGLU),
        Family("qwen3", {**LLAMA, "qk_norm": (True,), "attention_bias": ("none", "all")}, activations=SWIGLU),
    )
}


def family_of(config: ModelConfig, known: Mapping[str, Family], goal: str) -> Family:
    """Return the family that has a model with the fewest parameters on top; ConfigError says why there is none."""
    problems = {name: family.problems(config) for name, family in known.items()}
    name = min(known, key=lambda name: (len(problems[name]), _growth(config, known[name])))
    if problems[name]:
        raise ConfigError(f"this model has no form in {goal}: {problems[name][0]}")
    return known[name]


def _growth(config: ModelConfig, family: Family) -> int:
    whole = family.completed(config)
    return sum(GROWING[name].index(getattr(whole, name)) for name in GROWING)


def completed(
    arrays: Arrays, config: ModelConfig, family: Family, pairing: str
) -> tuple[dict[str, np.ndarray], ModelConfig]:
    """Return a model's arrays and config as the family has them: zeros, ones, and its pairing of rotated numbers."""
    whole = family.completed(config)
    added = {name: p for name, p in declared(whole).items() if name not in arrays}
    full = {**arrays, **{name: np.full(p.shape, p.mean, np.float32) for name, p in added.items()}}
    return with_pairing(full, whole, pairing)


def plain(config: ModelConfig) -> ModelConfig:
    """Return the config of a model that was read, without the settings that follow from the others.

    Raises DataError for heads of an odd width, which no other program rotates.
    """
    if config.positions == "rotary" and config.head_width % 2:
        raise DataError(f"its heads have the odd width {config.head_width}, so their numbers make no pairs.")
    for name in FOLLOWS:
        if name == "d_head" and config.d_model % config.n_heads:
            continue
        without = replace(config, **{name: None})
        if all(getattr(config, size) == getattr(without, size) for size in FOLLOWS.values()):
            config = without
    return config
