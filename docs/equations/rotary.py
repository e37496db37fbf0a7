"""What the page asks: pairs of columns, and how each is slowed."""

from byhand.config import ModelConfig
from byhand.equations.rotary import SCALINGS, frequencies, pair_of, slowed


def columns_of_pair(p: int, width: int, pairing: str) -> list[int]:
    """Return the columns of a head that rotary embedding turns together."""
    return [c for c in range(width) if (pair_of(c, width, pairing) or (None,))[0] == p]


def slowed_pairs(width: int, length: int, factor: float) -> list[tuple[float, ...]]:
    """Return by how much each way of scaling slows each pair of a head, for `factor` times `length` positions."""
    ways = [ModelConfig(positions="rotary", rope_scaling=kind, rope_factor=factor, rope_original_len=length)
            for kind in SCALINGS]  # fmt: skip
    return list(zip(*(slowed(way.rope_base, width, way.rotary_scaling) for way in ways), strict=True))
