"""The learning rate of each update: warm-up, then cosine, linear or constant."""

from __future__ import annotations

import math

from byhand.config import OptimConfig


def learning_rate(config: OptimConfig, step: int, steps: int) -> float:
    r"""Return the learning rate of update `step` (from 0) of `steps`; all groups' rates scale alike.

    Equation    lr (step + 1) / warmup while step < warmup (at most half of the run), then
                floor + (lr - floor) (1 + cos(pi (step - warmup) / (steps - 1 - warmup))) / 2 for "cosine",
                floor + (lr - floor) min(1, (steps - 1 - step) / (steps - 1 - begin)) for "linear", where
                begin = max(warmup, steps - cooldown steps), or lr for "constant"
    Source      Loshchilov & Hutter 2017, arXiv:1608.03983; linear: Haegele et al. 2024, arXiv:2405.18392
    """
    warmup = min(config.warmup_steps, steps // 2)
    if step < warmup:
        return config.lr * (step + 1) / warmup
    if config.schedule == "constant":
        return config.lr
    if config.schedule == "linear":
        begin = max(warmup, steps - round(config.cooldown * steps))
        left = min(1.0, max(0.0, (steps - 1 - step) / max(1, steps - 1 - begin)))
        return config.floor_lr + (config.lr - config.floor_lr) * left
    progress = min(1.0, (step - warmup) / max(1, steps - 1 - warmup))
    return config.floor_lr + (config.lr - config.floor_lr) * (1 + math.cos(math.pi * progress)) / 2
