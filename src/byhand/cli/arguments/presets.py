"""Named starting points for `byhand train`; flags and a TOML file override them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from byhand.architectures import GPT2, LLAMA, MICROGPT, MODERN, QWEN3
from byhand.budget import recipe
from byhand.cli.arguments.settings import AUTO, overridden
from byhand.cli.terminal.shown import quoted, shown
from byhand.config import DataConfig, ModelConfig, OptimConfig, TrainConfig
from byhand.errors import ConfigError, reason
from byhand.files.reading import parse_toml, read_regular
from byhand.runtimes.registry import offered


@dataclass(frozen=True)
class Settings(TrainConfig):
    """All settings of one training run: everything that affects its numbers, and when it saves."""

    # Commands offer the registered runtimes; a checkpoint may name one that is not registered here.
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)


PRESETS = {
    "tiny": Settings(model=ModelConfig(seq_len=64, d_model=64, n_layers=1, n_heads=1), batch_size=4, steps=2000),
    "nano": Settings(model=ModelConfig(seq_len=64, d_model=128, n_layers=4, n_heads=4), batch_size=12, steps=2000),
    "small": Settings(
        model=ModelConfig(seq_len=256, d_model=384, n_layers=6, n_heads=6),
        optim=OptimConfig(lr=1e-3),
        batch_size=8,
        steps=5000,
    ),
    # The original program's recipe: constant learning rate, weight decay on everything, no clipping.
    "seed": Settings(
        model=ModelConfig(seq_len=64, d_model=64, n_layers=1, n_heads=1),
        optim=OptimConfig(
            lr=3e-4, schedule="constant", warmup_steps=0, beta2=0.999, weight_decay=0.01, decay="all", grad_clip=0.0
        ),
        batch_size=4,
        steps=200,
    ),
    # The size of the smallest published model; --minutes chooses another. The tokenizer sets the vocabulary.
    "gpt2": Settings(
        model=GPT2, optim=OptimConfig(lr=6e-4, warmup_steps=700, beta2=0.95), batch_size=8, steps=20_000
    ),
    "llama": Settings(
        model=LLAMA, optim=OptimConfig(lr=1e-3, warmup_steps=700, beta2=0.95), batch_size=4, steps=20_000
    ),
    "qwen3": Settings(
        model=QWEN3, optim=OptimConfig(lr=6e-4, warmup_steps=700, beta2=0.95), batch_size=2, steps=20_000
    ),
    "modern": Settings(
        model=MODERN,
        optim=OptimConfig(optimizer="muon", lr=5e-3, schedule="linear", cooldown=0.6, min_lr=0.0),
        batch_size=12,
        steps=2000,
    ),
    # Of step s of 1000 the rate is lr (1 - s / 1000).
    "microgpt": Settings(
        model=MICROGPT,
        optim=OptimConfig(
            lr=0.01,
            min_lr=1e-5,
            schedule="linear",
            warmup_steps=0,
            beta1=0.85,
            beta2=0.99,
            weight_decay=0.0,
            grad_clip=0.0,
        ),
        batch_size=1,
        steps=1000,
    ),
}
RECIPE = Settings(model=recipe.MODEL, optim=recipe.OPTIM)  # for --minutes without a preset, which chooses sizes
PUBLISHED = {"gpt2", "llama", "qwen3"}
SHAPE = {"seq_len", "d_model", "n_layers", "n_heads", "n_kv_heads", "d_head", "d_ff"}
SIZES = SHAPE | {"batch_size", "lr", "warmup_steps"}  # chosen to fit each other
OF_A_LENGTH = {"steps", "eval_interval", "save_interval"}  # a preset's values fit its own number of steps
LARGEST = 1 << 16  # bytes of a TOML file; one with every setting has about a thousand
LISTS = {"data", "val_data"}  # settings that may be lists
SECTIONS = {"model": ModelConfig, "data": DataConfig, "optim": OptimConfig}


def preset(name: str) -> Settings:
    """Return the preset of this name."""
    if name not in PRESETS:
        raise ConfigError(f"there is no preset {quoted(name)}. Use one of {', '.join(PRESETS)}.")
    return PRESETS[name]


def fixed_by(name: str) -> set[str]:
    """Return the settings of a preset that --minutes keeps: not its length, nor the size of a published model."""
    names = {f.name for cls in (ModelConfig, OptimConfig, TrainConfig) for f in fields(cls)}
    return names - OF_A_LENGTH - (SIZES if name in PUBLISHED else set())


def with_toml(config: Settings, path: Path) -> tuple[Settings, dict[str, Any]]:
    """Return the config updated from a TOML file, and the file's settings; `batch_size = auto` leaves the config's.

    Keys may be flat or under [model], [data], [optim].
    """
    named = f"--config {shown(path, 200)}"
    try:
        content = read_regular(path, LARGEST)
    except OSError as error:
        raise ConfigError(f"cannot read {named}: {reason(error)}. Check the path.") from None
    try:
        settings = _settings(content)
        numbers = {name: v for name, v in settings.items() if (name, v) != ("batch_size", AUTO)}
        return overridden(config, numbers), settings
    except ConfigError as error:
        raise ConfigError(f"{named}: {error}") from None


def _settings(content: bytes) -> dict[str, Any]:
    """Parse settings from TOML; each must be known, a single value, and set once."""
    try:
        values = parse_toml(content)
    except (ValueError, RecursionError) as error:
        why = error or "nested too deep"
        raise ConfigError(f"it is not TOML: {why}. Write lines such as steps = 1000.") from None
    home = {f.name: section for section, cls in SECTIONS.items() for f in fields(cls)}
    known = {*home, *({f.name for f in fields(Settings)} - set(SECTIONS))}
    settings: dict[str, Any] = {}
    written: dict[str, str] = {}  # as the file spells them
    strangers: list[str] = []
    for key, value in values.items():
        section = key if key in SECTIONS and isinstance(value, dict) else None
        for spelt, single in value.items() if section else [(key, value)]:
            _require_single(spelt, single)
            name, place = spelt.replace("-", "_"), f"{spelt} in [{section}]" if section else spelt
            if name in settings:
                raise ConfigError(
                    f"it sets {shown(name, 80)} twice: {shown(written[name], 80)} and {shown(place, 80)}. "
                    "Leave out one of them."
                )
            settings[name], written[name] = single, place
            if name not in known or (section and home.get(name) != section):
                strangers.append(name)
    if strangers:
        raise ConfigError(f"it has an unknown key {quoted(strangers[0])}. `byhand train --help` lists them.")
    return settings


def _require_single(key: str, value: Any) -> None:
    """Raise ConfigError for a nested table, a list of anything but names, or an integer of more than 64 bits."""
    if isinstance(value, list) and key.replace("-", "_") in LISTS:
        return
    if isinstance(value, (dict, list)):
        kind = "a table" if isinstance(value, dict) else "a list"
        raise ConfigError(f"{quoted(key)} is {kind}, but must be a value. The tables are {', '.join(SECTIONS)}.")
    if isinstance(value, int) and abs(value) >= 1 << 63:
        raise ConfigError(f"{quoted(key)} is an integer of more than 64 bits. Use a smaller one.")
