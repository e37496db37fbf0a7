"""What the page asks: a block as integers, what a token reads, what it costs in loss."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from byhand.book.words.tables import Table, table
from byhand.config import ModelConfig
from byhand.flops import block_weights
from byhand.formats.registry import FORMATS

# their scales are numbers of float16: 1/128, 127/1024, 1/64
block_w, block_x = (0.25, -127 / 128, 0.1, 0.6), (1.0, 127 / 64, -0.5, 0.25)
small_formats, q8_0 = [FORMATS[name] for name in ("float32", "bfloat16", "q8_0", "q4_0")], FORMATS["q8_0"]
int8_max, int32_max = np.iinfo(np.int8).max, np.iinfo(np.int32).max


class ScaledBlock(NamedTuple):
    """The numbers that a block begins with; its others are 0.

    quotients  the numbers over the scale; `integers` are these rounded, `numbers` the integers times the scale
    """

    scale: float
    quotients: list[float]
    integers: list[int]
    numbers: list[float]


def block_of(name: str, numbers: tuple[float, ...]) -> ScaledBlock:
    """Return numbers, the first of a block, in a format whose blocks have a scale."""
    kind = FORMATS[name]
    assert kind.pack
    assert kind.unpack
    block = kind.pack(np.pad(np.array([numbers], np.float32), ((0, 0), (0, kind.block - len(numbers)))))
    scale, back = float(block[0, :2].copy().view("<f2")[0]), kind.unpack(block)[0, : len(numbers)].tolist()
    return ScaledBlock(scale, [x / scale for x in numbers], [round(number / scale) for number in back], back)


def block_product(w: tuple[float, ...], x: tuple[float, ...]) -> tuple[list[tuple[int, int]], int, float, float]:
    """Return the pairs of integers of two blocks, the sum of their products, it with both scales, the exact sum."""
    a, b = block_of("q8_0", w), block_of("q8_0", x)
    pairs = list(zip(a.integers, b.integers, strict=True))
    total = sum(math.prod(pair) for pair in pairs)
    return pairs, total, a.scale * b.scale * total, sum(map(math.prod, zip(w, x, strict=True)))


def weights_read(config: ModelConfig) -> int:
    """Return how many weights a token multiplies: those of the blocks, and the head."""
    return block_weights(config) + config.d_model * config.vocab_size


def small_weights_measured() -> Table:
    """Return what `benchmarks/small_weights.py` measured."""
    return table(Path(__file__).with_suffix(".json"))
