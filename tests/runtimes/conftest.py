"""The CPU as eight devices, set before JAX starts."""

from importlib.util import find_spec

if find_spec("jax"):
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
