"""Flags that would change nothing are refused: whoever gives one expects it to act."""

from __future__ import annotations

from collections.abc import Collection

from byhand.config import TrainConfig
from byhand.errors import ConfigError


def require_effect(config: TrainConfig, written: Collection[str]) -> None:
    """Raise ConfigError for the first flag that the other settings leave without effect."""
    model, optim = config.model, config.optim
    acts = {
        "rope_base": (model.positions == "rotary", "--positions rotary"),
        "rope_fraction": (model.positions == "rotary", "--positions rotary"),
        "rope_pairing": (model.positions == "rotary", "--positions rotary"),
        "muon_lr": (optim.optimizer == "muon", "--optimizer muon"),
        "muon_momentum": (optim.optimizer == "muon", "--optimizer muon"),
        "head_lr": (not model.tied_embeddings, "--no-tied-embeddings"),
    }
    for name, (used, needs) in acts.items():
        if name in written and not used:
            flag = name.replace("_", "-")
            raise ConfigError(f"--{flag} changes nothing without {needs}. Leave it out, or add {needs}.")
