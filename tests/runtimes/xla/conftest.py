"""A processor that stands for eight devices; without JAX, nothing here runs."""

import os

import pytest

# Compiling takes longer than all that is computed here.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
jax = pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")
jax.config.update("jax_num_cpu_devices", 8)
