"""Names of formats in settings, without NumPy, so that arguments and help load nothing heavy."""

from __future__ import annotations

from typing import Literal

Dtype = Literal["float32", "float64", "bfloat16"]  # of a training step
Multiplied = Literal["float32", "bfloat16"]  # of matmul inputs in compiling runtimes
Weights = Literal["float32", "bfloat16", "q8_0", "q4_0"]  # of weights in generation
Exported = Literal["float32", "float16", "bfloat16", "q8_0", "q4_0"]  # of exported weights
SPELLED = {
    "f32": "float32", "f16": "float16", "fp16": "float16", "bf16": "bfloat16", "f64": "float64",
    "int8": "q8_0", "int4": "q4_0",
}  # fmt: skip
NATIVE = ("float32", "float64")  # NumPy can compute in them


def array_of(name: str) -> str:
    """Return the array type for numbers of this format: the same if native, else float32 with rounded numbers."""
    return name if name in NATIVE else "float32"
