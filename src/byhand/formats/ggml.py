"""Types of GGUF tensors that `blocks.py` lacks: the library gguf unpacks them, if installed.

Numbers and names are ggml's, including removed types, so that messages can name a type without the library. Only the
library knows a block's size and numbers.

Source      https://github.com/ggml-org/ggml/blob/master/include/ggml.h
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from functools import cache

import numpy as np

from byhand.errors import DataError, install
from byhand.formats.format import Format
from byhand.formats.registry import called

BY_LIBRARY = {  # types that the library unpacks
    3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 10: "Q2_K", 11: "Q3_K", 13: "Q5_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS",
    19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0",
    39: "MXFP4", 40: "NVFP4",
}  # fmt: skip
UNREADABLE = {  # types that hold no weights, or that programs no longer write or unpack
    4: "Q4_2", 5: "Q4_3", 9: "Q8_1", 15: "Q8_K", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 31: "Q4_0_4_4",
    32: "Q4_0_4_8", 33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8", 41: "Q1_0",
}  # fmt: skip


@cache
def format_of(code: int) -> Format:
    """Return the format of a tensor's type. DataError if it is unreadable; the message continues a tensor's name."""
    ours = called("gguf")
    if code in ours:
        return ours[code]
    name = (BY_LIBRARY | UNREADABLE).get(code, f"the unknown type {code}")
    if code not in BY_LIBRARY:
        known = ", ".join([kind.symbol for kind in ours.values()] + list(BY_LIBRARY.values()))
        raise DataError(f"is {name}, which cannot be read here. Use a file in {known}.")
    try:
        import gguf
    except ImportError:
        raise DataError(f"is {name}, which the library gguf unpacks. Use {install('gguf')}.") from None
    try:
        kind = gguf.GGMLQuantizationType(code)
        block, size = gguf.GGML_QUANT_SIZES[kind]
        gguf.dequantize(np.zeros((1, size), np.uint8), kind)
    except (ValueError, KeyError, NotImplementedError):  # a release that lacks it
        raise DataError(f"is {name}, which needs a newer gguf. Use {install('gguf')} --upgrade.") from None
    return Format(
        name=name.lower(), symbol=name, size=size, block=block, codes={"gguf": code},
        # As one row: of rows with a block each it would take 16 at a time.
        unpack=lambda blocks: gguf.dequantize(blocks.reshape(1, -1), kind).reshape(-1, block),
    )  # fmt: skip
