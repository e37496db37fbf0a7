"""Named starting points for `byhand train`; flags and a TOML file override them."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from byhand.config import DataConfig, ModelConfig, OptimConfig, TrainConfig
from byhand.errors import ConfigError

PRESETS = {
    "tiny": TrainConfig(model=ModelConfig(seq_len=64, d_model=64, n_layers=1, n_heads=1), batch_size=4, steps=2000),
    "nano": TrainConfig(model=ModelConfig(seq_len=64, d_model=128, n_layers=4, n_heads=4), batch_size=12, steps=2000),
    "small": TrainConfig(
        model=ModelConfig(seq_len=256, d_model=384, n_layers=6, n_heads=6),
        optim=OptimConfig(lr=1e-3),
        batch_size=8,
        steps=5000,
    ),
    # The seed program's own recipe: constant learning rate, everything decays, nothing is clipped.
    "seed": TrainConfig(
        model=ModelConfig(seq_len=64, d_model=64, n_layers=1, n_heads=1),
        optim=OptimConfig(
            lr=3e-4, schedule="constant", warmup_steps=0, beta2=0.999, weight_decay=0.01, decay="all", grad_clip=0.0
        ),
        batch_size=4,
        steps=200,
    ),
}
SECTIONS = {"model": ModelConfig, "data": DataConfig, "optim": OptimConfig}


def preset(name: str) -> TrainConfig:
    """Return the preset of this name."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {name!r}. Use one of {', '.join(PRESETS)}.")
    return PRESETS[name]


def with_toml(config: TrainConfig, path: Path) -> TrainConfig:
    """Return the config with the settings of a TOML file; keys stand flat or under [model], [data], [optim]."""
    values = _toml(path)
    home = {f.name: section for section, cls in SECTIONS.items() for f in fields(cls)}
    flat: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for key, value in values.items():
        key = key.replace("-", "_")
        if key in SECTIONS and isinstance(value, dict):
            nested[key].update({k.replace("-", "_"): v for k, v in value.items()})
        elif key in home:
            nested[home[key]][key] = value
        else:
            flat[key] = value
    known = {f.name for f in fields(TrainConfig)} - set(SECTIONS)
    strangers = [k for k in flat if k not in known]
    strangers += [k for s, part in nested.items() for k in part if home.get(k) != s]
    if strangers:
        raise ConfigError(f"--config {path} has an unknown key {strangers[0]!r}. `byhand train --help` lists them.")
    parts = {section: replace(getattr(config, section), **values) for section, values in nested.items()}
    return replace(config, **parts, **flat)


def named_in_toml(path: Path) -> set[str]:
    """Return the names of the settings that a TOML file gives."""
    values = _toml(path)
    flat = [key for key, value in values.items() if not isinstance(value, dict)]
    nested = [key for value in values.values() if isinstance(value, dict) for key in value]
    return {key.replace("-", "_") for key in (*flat, *nested)}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read --config {path}: {error.strerror}. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {path} is not TOML: {error}.") from None
