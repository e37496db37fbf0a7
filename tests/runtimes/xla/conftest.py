"""A processor that stands for eight devices; without JAX, nothing here runs."""

import pytest

jax = pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")
jax.config.update("jax_num_cpu_devices", 8)
