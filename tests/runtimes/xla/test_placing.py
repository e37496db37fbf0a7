"""The arithmetic of parts and exchanges, against where JAX puts arrays and what XLA sends."""

from dataclasses import replace

import pytest

from byhand.model import TinyGPT, declared
from byhand.runtimes.xla.mesh import mesh_of
from byhand.runtimes.xla.placing import held_shape, least_sent, part_shape
from runtimes.xla.models import COUNTED, OTHER, PLAIN, laid_out, share

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


@pytest.mark.parametrize(
    "mesh",
    ["data=2,fsdp=4"]
    + [pytest.param(m, marks=pytest.mark.slow) for m in (EIGHT, "data=4", "fsdp=4", "tensor=2", "data=2,tensor=2")],
)
def test_xla_sends_what_the_arrays_demand(mesh):
    """XLA leaves out a bias that is not read on the way back, and adds the norm's sums and the loss."""
    least, by_xla = least_sent(COUNTED, mesh_of(mesh), (8, COUNTED.seq_len)), share(mesh).moved
    kinds = {kind for kind, _ in least}
    sent, demanded = ({k: sum(n for (what, _), n in m.items() if what == k) for k in kinds} for m in (by_xla, least))
    assert sent == pytest.approx(demanded, rel=0.1, abs=256)
