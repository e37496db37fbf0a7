"""What transformers was given when it computed the stored logits of exported models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from byhand.config import ModelConfig, TrainConfig
from byhand.interop import exchange
from byhand.interop.families import Family
from byhand.interop.hugging_face.families import FAMILIES
from byhand.runs.contents import Checkpoint
from interop.another_family import ANOTHER
from interop.run_cases import PARTIAL, WHOLE, parameters

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "exchange" / "exports.json"
TOKENS = [list(b"To be, or not to be")]
EVERY = 8  # of the logits: each eighth is stored
CASES: dict[str, tuple[Family | None, ModelConfig]] = {
    **{name: (None, config) for name, config in {**WHOLE, **PARTIAL}.items()},
    **ANOTHER,
}


def exported(name: str, place: Path, known: Any) -> Path:
    """Write a case as a folder of transformers; `known(FAMILIES, name, family)` adds a family that byhand has not."""
    family, config = CASES[name]
    if family is not None:
        known(FAMILIES, family.name, family)
    run = Checkpoint(TrainConfig(model=config), parameters(config, seed=3), {}, {"step": 0})
    exchange.write(run, "hf", place)
    return place


def contents(folder: Path) -> dict[str, Any]:
    """Return the settings of a folder, and each tensor's shape and a sum that depends on the order of its numbers."""
    tensors = load_file(folder / "model.safetensors")
    return {
        "config": json.loads((folder / "config.json").read_text(encoding="utf-8")),
        "tensors": {
            name: [list(x.shape), round(float(x.astype(float).ravel() @ np.cos(np.arange(x.size))), 4)]
            for name, x in sorted(tensors.items())
        },
    }
