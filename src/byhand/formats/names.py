"""Formats that settings name, without NumPy: reading arguments and printing help load nothing heavy."""

from __future__ import annotations

from typing import Literal

Dtype = Literal["float32", "float64", "bfloat16"]  # what a step computes in
Multiplied = Literal["float32", "bfloat16"]  # the inputs of products, where a runtime compiles
Weights = Literal["float32", "bfloat16", "q8_0", "q4_0"]  # of the arrays that generation reads
Exported = Literal["float32", "float16", "bfloat16", "q8_0", "q4_0"]  # of the weights that other programs get
SPELLED = {
    "f32": "float32", "f16": "float16", "fp16": "float16", "bf16": "bfloat16", "f64": "float64",
    "int8": "q8_0", "int4": "q4_0",
}  # fmt: skip
NATIVE = ("float32", "float64")  # NumPy computes in them


def array_of(name: str) -> str:
    """Return the type of arrays whose numbers have this format: its own, or float32 for numbers that are rounded."""
    return name if name in NATIVE else "float32"
