"""Generated tables of adapters: how many numbers they have, and what training and checkpoints keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from byhand.book.pages.blocks.family import PUBLISHED
from byhand.book.pages.blocks.markdown import Rows, table_block
from byhand.book.words.language import Words
from byhand.config import OptimConfig, TrainConfig
from byhand.files.run_folder import MODEL
from byhand.layers.adapter import DOWN, UP
from byhand.model import declared
from byhand.runs.contents import BASE, OPTIMIZER, due
from byhand.update_rules import state_size

RANK = 8
FULL, ADAPTED = TrainConfig(model=PUBLISHED), TrainConfig(model=replace(PUBLISHED, lora=RANK))


@table_block(
    f"Matrix of GPT-2|I × O|numbers of W|of A and B, R = {RANK}",
    f"GPT-2 的矩阵|I × O|W 的个数|A 与 B 的个数，R = {RANK}",
)
def adapter_numbers() -> Rows:
    """The numbers of each matrix of a block, and those of its adapter."""
    found = declared(ADAPTED.model)
    for name in (n for n in found if n.startswith("blocks.0.") and n + DOWN in found):
        (rows, columns), thin = found[name].shape, (math.prod(found[name + end].shape) for end in (DOWN, UP))
        yield (
            f"`{name.removeprefix('blocks.0.')}`",
            f"{rows:,} × {columns:,}",
            f"{rows * columns:,}",
            f"{sum(thin):,}",
        )


@table_block(f"GPT-2 in float32|all weights|`--lora {RANK}`", f"float32 的 GPT-2|全部权重|`--lora {RANK}`")
def adapter_sizes() -> Rows:
    """What is trained and kept, of all weights and of adapters."""
    kinds: dict[Words, Callable[[TrainConfig], str]] = {
        Words("parameters trained", "训练的参数"): lambda c: f"{_trained(c):,}",
        Words("their gradients and moments", "它们的梯度与矩估计"): lambda c: _megabytes(
            _trained(c) + state_size(OptimConfig(), declared(c.model))
        ),
        Words("a checkpoint", "一个检查点"): lambda c: _megabytes(_stored(c, MODEL) + _stored(c, OPTIMIZER)),
        Words("once for all checkpoints", "全部检查点共用"): lambda c: _megabytes(_stored(c, BASE)),
    }
    for words, said in kinds.items():
        yield words, said(FULL), said(ADAPTED)


def _trained(config: TrainConfig) -> int:
    return sum(math.prod(p.shape) for p in declared(config.model).values() if p.trained)


def _stored(config: TrainConfig, file: str) -> int:
    return sum(map(math.prod, due(config).get(file, {}).values()))


def _megabytes(numbers: int) -> str:
    return f"{4 * numbers / 1e6:,.0f} MB"
