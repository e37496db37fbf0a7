"""The arithmetic of parts and exchanges, against where JAX puts arrays and what XLA sends."""

from dataclasses import replace

import pytest

from byhand.model import TinyGPT, declared
from byhand.runtimes.protocol import Request
from byhand.runtimes.xla.mesh import mesh_of
from byhand.runtimes.xla.placing import held_shape, least_sent, part_shape
from byhand.runtimes.xla.sharing import device_share
from runtimes.xla.models import OTHER, PLAIN, laid_out

SHAPE = (8, PLAIN.seq_len)
EIGHT = "data=2,fsdp=2,tensor=2"


@pytest.mark.parametrize("mesh", ["data=8", "fsdp=4", "tensor=4", "fsdp=8", EIGHT])
@pytest.mark.parametrize("config", [PLAIN, replace(OTHER, vocab_size=13)], ids=["plain", "odd"])
def test_parts_are_those_that_jax_makes(config, mesh):
    layout, arrays = laid_out(TinyGPT(config), mesh)
    found = declared(config)
    for name, array in arrays.items():
        parameter = found[layout.names(name)[0]]
        stacked = len(array.shape) - len(held_shape(parameter))
        assert {s.data.shape[stacked:] for s in array.addressable_shards} == {part_shape(parameter, mesh_of(mesh))}


def counted(mesh):
    """Return what XLA sends and what the arrays demand, by kind of exchange."""
    share = device_share(Request("train", PLAIN, "xla", mesh=mesh), SHAPE, 8)
    kinds = {kind for kind, _ in least_sent(PLAIN, mesh_of(mesh), SHAPE)}
    by_xla = {kind: sum(n for (what, _), n in share.moved.items() if what == kind) for kind in kinds}
    demanded = least_sent(PLAIN, mesh_of(mesh), SHAPE)
    return by_xla, {kind: sum(n for (what, _), n in demanded.items() if what == kind) for kind in kinds}


@pytest.mark.parametrize("mesh", ["data=4", "fsdp=4", "tensor=2", "data=2,fsdp=2", "data=2,tensor=2", EIGHT])
def test_xla_sends_what_the_arrays_demand(mesh):
    """XLA leaves out a bias that is not read on the way back, and adds the norm's sums and the loss."""
    by_xla, demanded = counted(mesh)
    assert by_xla == pytest.approx(demanded, rel=0.1, abs=256)
