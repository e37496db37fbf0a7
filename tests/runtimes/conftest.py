"""A processor that stands for eight devices, before JAX begins."""

from importlib.util import find_spec

if find_spec("jax"):
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
