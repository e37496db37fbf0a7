"""Number formats: how many bits a number takes, in memory and in files; packing, unpacking, and what that loses.

`FORMATS` has them by name, `called` by what a kind of file calls them.
"""

from typing import Literal

from byhand.formats import blocks, plain  # they register their formats
from byhand.formats.format import FORMATS, Format, Loss, called
from byhand.formats.plain import FLOAT32

__all__ = ["FLOAT32", "FORMATS", "Dtype", "Format", "Loss", "Quantised", "Weights", "blocks", "called", "plain"]
Dtype = Literal["float32", "float64", "bfloat16"]  # what a step computes in
Weights = Literal["float32", "bfloat16"]  # of the arrays that generation reads
Quantised = Literal["", "q8_0", "q4_0"]  # what a GGUF can be written in
