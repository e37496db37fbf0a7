"""Families of models in other programs, each defined by the settings that its models may have.

A family may have more parameters than a run: biases, gains. `completed` adds them as zeros and ones, which do not
change the logits. Any other difference is refused, with the setting to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.config_checks import is_idle
from byhand.errors import ConfigError, DataError
from byhand.interop.pairing import with_pairing
from byhand.interop.tensors import Arrays, Fact
from byhand.model import declared

OF_ALL = {
    "norm_position": ("pre",), "causal": (True,), "lm_head_bias": (False,), "logit_softcap": (0.0,),
    "norm_affine": (True,), "parallel_residual": (False,),
}  # fmt: skip
FREE = {
    "vocab_size",
    "tied_embeddings",
    "rope_pairing",
    "zero_init",
    "norm_bias",
}  # any value in every family: tensors tell it
SCALED = {"rope_factor", "rope_original_len", "rope_slow", "rope_fast", "rope_attention"}  # with any rope_scaling
GROWING = {  # settings that a family may raise: for each value, the values with all its parameters, fewest first
    "norm_affine": {False: (False, True), True: (True,)},
    "mlp_bias": {False: (False, True), True: (True,)},
    "attention_bias": {
        "none": ("none", "qkv", "out", "all"), "qkv": ("qkv", "all"), "out": ("out", "all"), "all": ("all",),
    },
}  # fmt: skip
FOLLOWS = {  # settings that follow from others if None, and the properties with their values
    "d_ff": "ff_width",
    "d_head": "head_width",
    "n_kv_heads": "kv_heads",
    "attention_window": "visible",
    "rope_fast": "fast_turns",
    "rope_attention": "turned_size",
    "rope_window_base": "window_base",
    "attention_divisor": "score_divisor",
}
FLAGS = {True: "with --{}", False: "with --no-{}", None: "without --{}"}


@dataclass(frozen=True)
class Family:
    """Models of another program that differ in size only.

    Our settings in neither `settings` nor `keys` have their default in all models of the family.

    settings     by name: the values that the family's models may have, the usual one first
    activations  ours: theirs, the usual one first
    keys         theirs: ours, for settings with any value
    missing      by key: the other program's default for a missing key
    only         keys that change the computation, with the values that we support, the usual one first
    tensors      ours, and the tensors of theirs that make it
    pairing      of rotated numbers
    layers       by letter of `layer_pattern`: the name of a kind of layer, if kinds may differ
    further      function of a config: other differences from the family, and what to change

    Only for transformers:

    head         name of the LM head's tensor
    model        class of the model with its LM head
    prefix       of the names of all tensors but the LM head's
    activation   key of the activation
    flags        boolean keys, and our setting: false is its first value, true its second; `missing` has the default
                 of an absent key, if not false
    window       keys of the attention window, each with transformers' default for a missing key
    windowed     whether a window is written; other families' is only read
    older        older names of keys, which transformers reads; it looks for the newer ones only in rope_parameters
    twins        other names of keys, which transformers also reads, and prefers
    copies       keys written for other programs: the key whose value they copy
    divided      whether transformers refuses a number of heads that does not divide the width
    """

    name: str
    settings: Mapping[str, tuple[Any, ...]]
    activations: Mapping[str, str]
    keys: Mapping[str, str]
    missing: Mapping[str, Any]
    only: Mapping[str, tuple[Any, ...]]
    tensors: tuple[Fact, ...]
    pairing: str = "halves"
    layers: Mapping[str, str] = field(default_factory=dict)
    further: Callable[[ModelConfig], list[tuple[str, str]]] = lambda config: []
    head: str = "lm_head.weight"
    model: str = ""
    prefix: str = "model."
    activation: str = "hidden_act"
    flags: Mapping[str, str] = field(default_factory=dict)
    window: Mapping[str, Any] = field(default_factory=dict)
    windowed: bool = False
    older: Mapping[str, str] = field(default_factory=dict)
    twins: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    divided: bool = False

    def may_vary(self, name: str) -> bool:
        """Return whether a setting may have any value."""
        scaled = name in SCALED and "rope_scaling" in self.settings
        windowed = name == "attention_window" and (self.windowed or "w" in self.layers)
        layered = name == "layer_pattern" and bool(self.layers)
        return name in FREE or name in self.keys.values() or scaled or windowed or layered

    def allowed(self) -> dict[str, tuple[Any, ...]]:
        """Return all restricted settings with the values that each may have."""
        bound = {name: values for name, values in OF_ALL.items() if name not in self.keys.values()}
        bound |= {**self.settings, "activation": tuple(self.activations)}
        others = [f for f in fields(ModelConfig) if f.name not in bound and not self.may_vary(f.name)]
        return {**bound, **{f.name: (f.default,) for f in others}}

    def usual(self) -> dict[str, Any]:
        """Return all restricted settings, each with its usual value."""
        return {name: values[0] for name, values in self.allowed().items()}

    def problems(self, config: ModelConfig) -> list[tuple[str, str]]:
        """Return why a model does not fit the family: each difference, and what to change."""
        found = []
        rotary, allowed = config.positions == "rotary", self.allowed()
        for name, values in allowed.items():
            value, usual, flag = getattr(config, name), values[0], name.replace("_", "-")
            raised = name in GROWING and _raised(name, value, values) is not None
            below = name in (*FOLLOWS, "rope_fraction", "layer_pattern") or is_idle(config, name)
            if value in values or raised or below:
                continue
            use = FLAGS[usual].format(flag) if usual is None or type(usual) is bool else f"with --{flag} {usual}"
            found.append((f"{name} is {_said(value)}, which {self.name} models lack", use))
        found += self.further(config)
        if "n_kv_heads" in allowed and config.kv_heads != config.n_heads:
            found.append((f"{self.name} models have as many heads of keys as of queries", "without --n-kv-heads"))
        if "d_head" in allowed and config.head_width * config.n_heads != config.d_model:
            found.append((f"the heads of {self.name} models divide the width", "without --d-head"))
        if "attention_window" in allowed and config.visible < config.seq_len:
            found.append((f"{self.name} models have no window of attention", "without --attention-window"))
        found += self._of_layers(config, allowed)
        if "rope_fraction" in allowed and rotary and config.rotary_width != config.head_width:
            change = "an even --d-head" if config.head_width % 2 else "--rope-fraction 1"
            found.append((f"{self.name} models rotate whole heads of an even width", f"with {change}"))
        return found

    def _of_layers(self, config: ModelConfig, allowed: Mapping[str, tuple[Any, ...]]) -> list[tuple[str, str]]:
        """Return the kinds of layers, and the scale of scores, that the family lacks."""
        found, letters = [], set(config.layer_letters)
        if strange := sorted(letters - set(self.layers or "gw")):
            found.append((f"{self.name} models have no layers {', '.join(strange)}", "with another --layer-pattern"))
        elif not self.layers and len(letters) > 1:
            found.append((f"the layers of {self.name} models are alike", "without --layer-pattern"))
        if "rope_window_base" in allowed and config.window_base != config.rope_base and "w" in letters:
            found.append((f"the layers of {self.name} models rotate alike", "without --rope-window-base"))
        elif "w" in letters and config.rope_window_base is None and config.rotary_scaling and self.layers:
            said = f"angles of layers w are not scaled in {self.name} models"
            found.append((said, f"with --rope-window-base {config.rope_base:g}"))
        if "attention_divisor" in allowed:
            (usual,) = allowed["attention_divisor"]
            if config.score_divisor != (due := usual or config.head_width):
                change = f"with --attention-divisor {due:g}" if usual else "without --attention-divisor"
                found.append((f"{self.name} models divide scores by the root of {due:g}", change))
        return found

    def completed(self, config: ModelConfig) -> ModelConfig:
        """Return the config with the family's additional parameters."""
        allowed = self.allowed()
        raised = {name: _raised(name, getattr(config, name), allowed[name]) for name in GROWING if name in allowed}
        return replace(config, **{name: value for name, value in raised.items() if value is not None})


def _raised(name: str, value: Any, values: tuple[Any, ...]) -> Any:
    """Return the first of a family's values with all parameters of `value`, or None."""
    return next((v for v in GROWING[name][value] if v in values), None)


def _said(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def family_of(config: ModelConfig, known: Mapping[str, Family], goal: str) -> Family:
    """Return the family that fits a model with the fewest additional parameters.

    If there is none, ConfigError names every difference from the nearest one, and what to change.
    """
    problems = {name: family.problems(config) for name, family in known.items()}
    name = min(known, key=lambda name: (len(problems[name]), _growth(config, known[name])))
    if problems[name]:
        differences, changes = zip(*problems[name], strict=True)
        raise ConfigError(
            f"{goal} cannot store this model: {'; '.join(differences)}. Train a model {', '.join(changes)}."
        )
    return known[name]


def _growth(config: ModelConfig, family: Family) -> int:
    whole = family.completed(config)
    return sum(list(order).index(getattr(whole, name)) for name, order in GROWING.items())


def completed(arrays: Arrays, config: ModelConfig, family: Family) -> tuple[dict[str, np.ndarray], ModelConfig]:
    """Return a model's arrays and config in the family's form: with added zeros and ones, and its pairing."""
    whole = family.completed(config)
    added = {name: p for name, p in declared(whole).items() if name not in arrays}
    full = {**arrays, **{name: np.full(p.shape, p.mean, np.float32) for name, p in added.items()}}
    return with_pairing(full, whole, family.pairing)


def plain(config: ModelConfig) -> ModelConfig:
    """Return the config of an imported model, without the settings that follow from the others.

    Raises DataError if the rotated part of a head has an odd width, which no other program rotates.
    """
    rotated = int(config.head_width * config.rope_fraction)  # as transformers rounds
    if config.positions == "rotary" and rotated % 2:
        raise DataError(f"its heads have the odd width {rotated} to rotate, so their numbers make no pairs.")
    for name in FOLLOWS:
        if (name == "d_head" and config.d_model % config.n_heads) or (
            name == "attention_window" and config.layer_pattern
        ):
            continue
        without = replace(config, **{name: None})
        if all(getattr(config, size) == getattr(without, size) for size in (*FOLLOWS.values(), "layer_kinds")):
            config = without
    return config
