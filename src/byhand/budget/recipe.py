"""The recipe: a ladder of shapes, and how each is trained. Found by search on two cores (docs/benchmarks.md)."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any

from byhand.architectures import MODERN
from byhand.config import ModelConfig, OptimConfig, TrainConfig

MODEL = replace(MODERN, activation="swiglu")
"""The model's choices: those of Qwen3, a family that other programs load."""
OPTIM = OptimConfig(optimizer="muon", schedule="linear", cooldown=0.6, min_lr=0.0)


@dataclass(frozen=True)
class Rung:
    """One shape of the ladder, and the batch that it is trained with."""

    n_layers: int
    d_model: int
    seq_len: int
    batch_size: int


LADDER = (  # from two blocks on: a single one stops learning too early
    Rung(2, 32, 64, 12),
    Rung(2, 64, 128, 8),
    Rung(3, 64, 128, 8),
    Rung(3, 96, 128, 16),
    Rung(4, 128, 128, 16),
    Rung(4, 192, 128, 16),
    Rung(6, 256, 256, 16),
    Rung(6, 384, 256, 32),
    Rung(8, 512, 256, 32),
)
HEAD_WIDTH = 32
BLOCK = 32  # d_ff of gated MLPs is a multiple: 8/3 of the width, rounded up to whole blocks of q8_0 and q4_0 weights
LR, LR_OF_MATRICES = 5e-3, 1e-2
WIDTH_TIMES_LR = 0.5  # without an update of matrices lr falls with width: 5.2e-3 at 96, 3.9e-3 at 128, 1.3e-3 at 384
HIGHEST_LR = 1e-2
WARMUP = 0.02  # of the steps
LOWEST_DECAY, HIGHEST_DECAY = 0.1, 0.6


def candidates(base: TrainConfig, given: Collection[str], longest: int) -> list[TrainConfig]:
    """Return the runs to choose from, smallest first, all but their steps.

    base     the settings that the user gave, among defaults
    given    names of the settings in `base` that stay
    longest  the longest context that the text allows; longer ones of the ladder are cut to it
    """
    made = [_candidate(rung, base, given, longest) for rung in LADDER]
    return list(dict.fromkeys(made))


def smallest(base: TrainConfig, longest: int) -> TrainConfig:
    """Return the smallest run of the ladder with the choices of `base`, whatever size is given."""
    return _candidate(LADDER[0], base, (), longest)


def finished(candidate: TrainConfig, given: Collection[str], most: int, **settings: int) -> TrainConfig:
    """Return the candidate with its steps and intervals, and the warm-up and weight decay that belong to them.

    most  steps after which it would have memorised the text: weight decay grows as a run approaches them
    """
    made = replace(candidate, **settings)
    chosen: dict[str, Any] = {"warmup_steps": max(1, round(WARMUP * made.steps))}
    if made.optim.by_matrix:
        chosen["weight_decay"] = max(LOWEST_DECAY, round(HIGHEST_DECAY * made.steps / most, 3))
    return replace(made, optim=replace(made.optim, **{n: v for n, v in chosen.items() if n not in given}))


def _candidate(rung: Rung, base: TrainConfig, given: Collection[str], longest: int) -> TrainConfig:
    width = base.model.d_model if "d_model" in given else rung.d_model
    if "n_heads" in given and "d_model" not in given:
        width = -(-width // base.model.n_heads) * base.model.n_heads  # the next width that the heads divide
    n_heads = base.model.n_heads if "n_heads" in given else heads(width)
    chosen: dict[str, Any] = {
        "d_model": width,
        "n_heads": n_heads,
        "n_kv_heads": kv_heads(n_heads, base.model),
        "d_head": None,
        "d_ff": -(-width // (3 * BLOCK // 8)) * BLOCK if base.model.gated else None,
        "n_layers": rung.n_layers,
        "seq_len": min(rung.seq_len, longest),
        "batch_size": rung.batch_size,
        **rates(width, base.optim),
    }
    chosen = {name: value for name, value in chosen.items() if name not in given}
    return replace(
        base,
        model=replace(base.model, **_of(ModelConfig, chosen)),
        optim=replace(base.optim, **_of(OptimConfig, chosen)),
        **_of(TrainConfig, chosen),
    )


def rates(width: int, optim: OptimConfig) -> dict[str, float]:
    """Return the learning rates at a width; those of matrices are named after their update."""
    if optim.by_matrix:
        return {"lr": LR, f"{optim.optimizer}_lr": LR_OF_MATRICES}
    return {"lr": min(HIGHEST_LR, WIDTH_TIMES_LR / width)}


def heads(width: int) -> int:
    """Return the number of heads that divides the width and makes them nearest to 32 wide."""
    divisors = (h for h in range(1, width + 1) if width % h == 0)
    return min(divisors, key=lambda h: abs(width / h - HEAD_WIDTH))


def kv_heads(n_heads: int, base: ModelConfig) -> int | None:
    """Return the number of key-value heads for `n_heads`: groups as large as in `base`, if they divide."""
    if base.n_kv_heads is None:
        return None
    return n_heads // math.gcd(n_heads, base.n_heads // base.kv_heads)


def _of(cls: type[Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return those of the settings that are fields of this config."""
    return {f.name: settings[f.name] for f in fields(cls) if f.name in settings}
