"""`benchmarks/mesh.py`: for devices that are not here; JAX must know them when it starts."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")
SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "mesh.py"


def test_what_a_device_holds_computes_and_sends():
    command = [sys.executable, SCRIPT, "data=2,fsdp=8", "--shape", "16,16,32,2,4,64", "--machine", "h100"]
    said = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    assert said.startswith("mesh data=2,fsdp=8: 16 × h100, 8 a host\na step of 16 × 16 tokens, float32,")
    for word in ("holds", "computes", "within its host: all-gather", "between hosts: all-reduce", "ms to send"):
        assert word in said
