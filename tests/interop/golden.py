"""Paths of the original program's own run and its text, beside the repository; tests skip without them."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
RUN = SHARED / "golden" / "llm-cpp" / "seed_a"
TEXT = SHARED / "data" / "tinyshakespeare.txt"
FLAGS = ["--batch", "4", "--seq", "32", "--dmodel", "48", "--layers", "2", "--lr", "0.001", "--seed", "7"]

golden = pytest.mark.skipif(
    not (RUN.with_suffix(".bin").exists() and TEXT.exists()),
    reason="the original program's run is not here (../shared/golden and ../shared/data)",
)
