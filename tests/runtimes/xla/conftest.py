"""Without JAX, nothing here runs."""

import pytest

pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")
