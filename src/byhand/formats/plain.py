"""Formats of single numbers: IEEE 754's, bfloat16, and types in files that are not real numbers.

bfloat16 is float32 without the last 16 bits: the same range, 8 bits of precision.
"""

from __future__ import annotations

import numpy as np

from byhand.formats.format import Blocks, ErrorBound, Format, register

HALF = 65504.0  # the largest float16


def _bits_of_bfloat16(x: np.ndarray) -> np.ndarray:
    """Round to the nearest, ties to even; NaN stays NaN."""
    bits = x.view(np.uint32)
    even = bits >> np.uint32(16) & np.uint32(1)
    near = (bits + np.uint32(0x7FFF) + even) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint32(0x7FC0), near).astype("<u2").view(np.uint8)


def _from_bfloat16(blocks: np.ndarray) -> np.ndarray:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _unpacked(dtype: str) -> Blocks:
    kind = np.dtype(dtype)
    return lambda blocks: blocks.view(kind).astype(np.float32, copy=False)


def _packed(dtype: str) -> Blocks:
    kind = np.dtype(dtype)
    return lambda x: x.astype(kind, copy=False).view(np.uint8)


FLOAT32 = register(
    Format(
        name="float32", symbol="F32", size=4, unpack=_unpacked("<f4"), pack=_packed("<f4"),
        codes={"safetensors": "F32", "gguf": 0, "gguf file": 0, "torch": "Float", "llm.c": 3},
    )
)  # fmt: skip
register(
    Format(
        name="float16", symbol="F16", size=2, unpack=_unpacked("<f2"), pack=_packed("<f2"), largest=HALF,
        error=ErrorBound(relative=2.0**-11, absolute=2.0**-25),
        codes={"safetensors": "F16", "gguf": 1, "gguf file": 1, "torch": "Half"},
    )
)  # fmt: skip
register(
    Format(
        name="bfloat16", symbol="BF16", size=2, unpack=_from_bfloat16, pack=_bits_of_bfloat16,
        largest=3.3895313892515355e38, error=ErrorBound(relative=2.0**-8, absolute=2.0**-134),
        codes={"safetensors": "BF16", "gguf": 30, "gguf file": 32, "torch": "BFloat16", "llm.c": 5},
    )
)  # fmt: skip
register(
    Format(
        name="float64", symbol="F64", size=8, unpack=_unpacked("<f8"), pack=_packed("<f8"),
        codes={"safetensors": "F64", "gguf": 28, "torch": "Double"},
    )
)  # fmt: skip
OTHERS = {"F8_E4M3": "float8_e4m3", "F8_E5M2": "float8_e5m2", "BOOL": "bool"}
OTHERS |= {
    f"{sign}{bits}": f"{kind}{bits}" for sign, kind in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)
}
for _symbol, _name in OTHERS.items():
    _bits = int(_symbol[1:]) if _symbol[1:].isdigit() else 8
    register(Format(name=_name, symbol=_symbol, size=_bits // 8, codes={"safetensors": _symbol}))
