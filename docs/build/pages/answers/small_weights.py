"""Answers about weights of fewer bits: a block as integers, what a token reads, what it costs in loss."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from byhand.book.words.tables import Table, table
from byhand.config import ModelConfig
from byhand.flops import block_weights
from byhand.formats.registry import FORMATS
from pages.answers.registry import ANSWERS, answer

DATA = Path(__file__).parents[1] / "data"  # small_weights.json: benchmarks/small_weights.py
W, X = (0.25, -127 / 128, 0.1, 0.6), (1.0, 127 / 64, -0.5, 0.25)  # scales that float16 has: 1/128, 127/1024, 1/64
SMALL = [FORMATS[name] for name in ("float32", "bfloat16", "q8_0", "q4_0")]
ANSWERS |= {"block_w": W, "block_x": X, "small_formats": SMALL, "q8_0": FORMATS["q8_0"]}
ANSWERS |= {"int8_max": np.iinfo(np.int8).max, "int32_max": np.iinfo(np.int32).max}


class ScaledBlock(NamedTuple):
    """The numbers that a block begins with; its others are 0.

    quotients  the numbers over the scale; `integers` are these rounded, `numbers` the integers times the scale
    """

    scale: float
    quotients: list[float]
    integers: list[int]
    numbers: list[float]


@answer
def block_of(name: str, numbers: tuple[float, ...]) -> ScaledBlock:
    """Return numbers, the first of a block, in a format whose blocks have a scale."""
    kind = FORMATS[name]
    assert kind.pack
    assert kind.unpack
    block = kind.pack(np.pad(np.array([numbers], np.float32), ((0, 0), (0, kind.block - len(numbers)))))
    scale, back = float(block[0, :2].copy().view("<f2")[0]), kind.unpack(block)[0, : len(numbers)].tolist()
    return ScaledBlock(scale, [x / scale for x in numbers], [round(number / scale) for number in back], back)


@answer
def block_product(w: tuple[float, ...], x: tuple[float, ...]) -> tuple[list[tuple[int, int]], int, float, float]:
    """Return the pairs of integers of two blocks, the sum of their products, it with both scales, the exact sum."""
    a, b = block_of("q8_0", w), block_of("q8_0", x)
    pairs = list(zip(a.integers, b.integers, strict=True))
    total = sum(math.prod(pair) for pair in pairs)
    return pairs, total, a.scale * b.scale * total, sum(map(math.prod, zip(w, x, strict=True)))


@answer
def weights_read(config: ModelConfig) -> int:
    """Return how many weights a token multiplies: those of the blocks, and the head."""
    return block_weights(config) + config.d_model * config.vocab_size


@answer
def small_weights_measured() -> Table:
    """Return what `benchmarks/small_weights.py` measured."""
    return table(DATA / "small_weights.json")
