"""Transformers' config.json and our ModelConfig: the mapping of keys and settings, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.config import ModelConfig
from byhand.errors import ConfigError, DataError
from byhand.interop.families import Family, plain
from byhand.interop.hugging_face.families import FAMILIES, LACKING
from byhand.interop.hugging_face.layers import keys_of_layers, layers_of, with_kinds, without_kinds
from byhand.interop.hugging_face.rotation import as_keys, with_rotation
from byhand.interop.settings import family_named, keys_of, quoted, require_usual, settings_of

SAME = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new", "swish": "silu"}  # other names for one function
OF_GEMMA = {"gelu": "gelu_pytorch_tanh"}  # its first files' name for the tanh form
OF_EVERY = {"is_causal": (True,), "per_layer_config": (None, {})}  # transformers writes them only if they differ
CAP = "final_logit_softcapping"
SWITCHES = ("use_cache", "use_sliding_window", "reorder_and_upcast_attn")  # must be booleans in every family


def as_config(found: Mapping[str, Any]) -> tuple[Family, ModelConfig]:
    """Return the family and the config of a config.json; DataError or ConfigError if we lack that model."""
    lacking = LACKING.get(str(found.get("model_type")))
    if lacking:
        name, known = found["model_type"], ", ".join(FAMILIES)
        raise DataError(
            f"its model_type is {name!r}, which needs {lacking}. byhand lacks that. Use a model of {known}."
        )
    family = family_named(found, "model_type", FAMILIES)
    require_usual(found, OF_EVERY | {key: values for key, values in family.only.items() if key not in family.keys})
    for key in SWITCHES:
        _flag(found, key)
    found = {key: value for key, value in found.items() if key not in family.older.values()}
    found |= {key: found[older] for older, key in family.older.items() if older in found}
    if found.get(CAP, 0) is None:
        found = {**found, CAP: 0.0}  # our value for none
    flat, scaling = with_rotation(without_kinds(found, family), family)
    if scaling and len(family.settings.get("rope_scaling", ())) < 2:
        raise DataError(f"its angles are scaled ({scaling['rope_scaling']}), which is known for no {family.name}.")
    settings = family.usual() | settings_of(flat, family.keys, family.missing) | scaling
    for twin, key in family.twins.items():
        if found.get(twin, settings[family.keys[key]]) != settings[family.keys[key]]:
            raise DataError(f"its {twin} and {key} differ. Keep one of them.")
    settings["activation"] = _activation(found, family)
    settings |= layers_of(found, family, settings)
    for key, name in family.flags.items():
        settings[name] = family.settings[name][_flag({key: family.missing.get(key, False), **found}, key)]
    config = plain(ModelConfig(**settings))
    if config.positions == "rotary" and found.get("head_dim") not in (None, config.head_width):  # sets the angles
        raise DataError(
            f"its head_dim is {quoted(found['head_dim'])}, but its heads have the width {config.head_width}."
        )
    return family, config


def as_json(family: Family, config: ModelConfig, ids: Mapping[str, Any], dtype: str = "float32") -> dict[str, Any]:
    """Return the config.json of a completed model; `ids` has its tokenizer's entries, dtype is the tensors'.

    It has every key of the family, since transformers' defaults may mean another model. Raises ConfigError for models
    that transformers itself refuses.
    """
    if family.divided and config.d_model % config.n_heads:
        raise ConfigError(
            f"transformers refuses a {family.name} whose {config.n_heads} heads do not divide its width "
            f"{config.d_model}. Train a model with another --n-heads, or with --qk-norm as qwen3."
        )
    found: dict[str, Any] = {
        "architectures": [family.model], "model_type": family.name, "dtype": dtype, "torch_dtype": dtype,
        **ids, family.activation: family.activations[config.activation],
        **{key: values[0] for key, values in family.only.items() if values[0] is not None},
        **keys_of(config, family.keys),
        **{key: getattr(config, name) == family.settings[name][True] for key, name in family.flags.items()},
        **keys_of_layers(config, family),
    }  # fmt: skip
    if CAP in family.keys and not found[CAP]:
        found[CAP] = None
    if config.positions == "rotary":
        found |= with_kinds(as_keys(config), config, family)
    return found | {copy: found[key] for copy, key in family.copies.items()}


def _activation(found: Mapping[str, Any], family: Family) -> str:
    usual = next(iter(family.activations.values()))
    named = found.get(family.activation, usual)
    if isinstance(named, str):
        named = OF_GEMMA.get(named, named) if family.name == "gemma" else named
        for ours, theirs in family.activations.items():
            if SAME.get(named, named) == SAME.get(theirs, theirs):
                return ours
    raise DataError(
        f"its activation is {quoted(named)}. Only {', '.join(family.activations.values())} can be computed."
    )


def _flag(found: Mapping[str, Any], key: str) -> bool:
    value = found.get(key, False)
    if not isinstance(value, bool):
        raise DataError(f"its {key} is {quoted(value)}, but must be true or false.")
    return value
