"""Formats that settings name, without NumPy: reading arguments and printing help load nothing heavy."""

from __future__ import annotations

from typing import Literal

Dtype = Literal["float32", "float64", "bfloat16"]  # what a step computes in
Multiplied = Literal["float32", "bfloat16"]  # the inputs of products, where a runtime compiles
Weights = Literal["float32", "bfloat16"]  # of the arrays that generation reads
Quantised = Literal["", "q8_0", "q4_0"]  # what a GGUF can be written in
NATIVE = ("float32", "float64")  # NumPy computes in them


def array_of(name: str) -> str:
    """Return the type of arrays whose numbers have this format: its own, or float32 for numbers that are rounded."""
    return name if name in NATIVE else "float32"
