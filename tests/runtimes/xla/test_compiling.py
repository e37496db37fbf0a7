"""Compiled code on the disk: each further host's CPUs find theirs again."""

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from jax.sharding import PartitionSpec

from byhand.runtimes.xla import compiling
from byhand.runtimes.xla.mesh import mesh_of


@pytest.fixture
def host(monkeypatch, tmp_path):
    """Return a function that steps as one of two hosts, and returns the loss, and how many programs it compiled."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    jax.config.update("jax_enable_compilation_cache", False)  # JAX's own keeps nothing of a further host
    compilation_cache.reset_cache()
    mesh, compiled, compile_one = mesh_of("data=2,fsdp=4"), [], jax.stages.Lowered.compile
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda low: compiled.append(low) or compile_one(low))
    monkeypatch.setattr(jax, "process_count", lambda: 2)

    def step(held, by):
        return {"x": held["x"] * by}, (held["x"] ** 2).sum()

    def run(index):
        monkeypatch.setattr(jax, "process_index", lambda: index)
        x = mesh.put(np.arange(8, dtype=np.float32), shared)
        given = {"x": x}, np.float32(3)
        made = compiling.compiled(jax.jit(step, donate_argnums=0, out_shardings=({"x": shared}, whole)).lower(*given))
        held, loss = made(*given)
        assert np.asarray(held["x"]).tolist() == [3.0 * i for i in range(8)]
        assert x.is_deleted()
        count = len(compiled)
        compiled.clear()
        return float(loss), count

    with monkeypatch.context() as patch:
        patch.setattr(jax, "process_count", lambda: 1)
        shared, whole = (mesh.sharding(spec) for spec in (PartitionSpec(("data", "fsdp")), PartitionSpec()))
    tmp_path.chmod(0o700)
    yield run
    jax.config.update("jax_compilation_cache_dir", before)
    jax.config.update("jax_enable_compilation_cache", True)
    compilation_cache.reset_cache()


def test_a_further_host_compiles_a_program_once(host, tmp_path):
    assert [host(1), host(1), host(2), host(1)] == [(140.0, 1), (140.0, 0), (140.0, 1), (140.0, 0)]
    assert len([*tmp_path.glob("host-*")]) == 2


@pytest.mark.parametrize("damage", [lambda code: code[:99], lambda code: code[:-1] + b"?", lambda code: b""])
def test_a_damaged_program_is_compiled_anew(host, tmp_path, damage):
    assert host(1) == (140.0, 1)
    (kept,) = tmp_path.glob("host-*")
    kept.write_bytes(damage(kept.read_bytes()))
    assert [host(1), host(1)] == [(140.0, 1), (140.0, 0)]


def test_the_first_host_leaves_it_to_jax(host, tmp_path):
    assert host(0) == (140.0, 1)
    assert not [*tmp_path.glob("host-*")]
