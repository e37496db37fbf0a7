"""What each host saves of the arrays: together everything, once, and about the same amount each."""

from collections import Counter
from dataclasses import replace

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.cli.arguments.presets import preset
from byhand.config import ModelConfig
from byhand.files.parts import Assembly, place_of
from byhand.model import Layers, TinyGPT, parameter_shapes
from byhand.runtimes.xla import layout as module
from byhand.runtimes.xla.layout import Layout
from byhand.runtimes.xla.mesh import mesh_of
from byhand.runtimes.xla.owning import SMALL, divided, ends_of
from runtimes.xla.models import OPEN, OTHER, PLAIN, laid_out

ODD = replace(OTHER, vocab_size=13, n_heads=2, n_layers=1)  # a vocabulary, and packed parts, that four do not divide
WIDE = ModelConfig(vocab_size=61, seq_len=24, d_model=64, n_layers=3, n_heads=4)
MESHES = ["", "fsdp=8", "data=2,fsdp=2,tensor=2", "fsdp=3,tensor=2"]


def of_hosts(hosts):
    """Return what says which of so many hosts, each with neighbouring devices, hold a part of an array."""

    def holders(sharding, shape):
        found = {}
        size = len(sharding.device_set)
        for device, index in sharding.devices_indices_map(shape).items():
            found.setdefault(ends_of(index, shape), set()).add(device.id * hosts // size)
        return found

    return holders


def assembled(parts, config):
    assembly = Assembly(parameter_shapes(config), "float32")
    for part in parts:
        for key, array in part.items():
            assembly.put(key, array)
    assembly.require_whole()
    return assembly.arrays


def expect_equal(found, model):
    for name, parameter in model.parameters().items():
        np.testing.assert_array_equal(found[name], parameter.data, err_msg=name)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("config", [PLAIN, OTHER, OPEN, ODD], ids=["plain", "other", "open", "odd"])
def test_the_parts_of_one_process_are_the_arrays(config, mesh):
    model = TinyGPT(config, seed=3)
    layout, placed = laid_out(model, mesh)
    expect_equal(assembled([layout.own(placed)], config), model)


@pytest.mark.parametrize(
    ("config", "mesh", "hosts"),
    [
        pytest.param(ODD, "data=8", 8, id="each the same"),
        pytest.param(WIDE, "data=3", 3, id="three"),
        pytest.param(WIDE, "tensor=8", 4, id="packed parts"),
        pytest.param(ODD, "fsdp=2,tensor=4", 8, id="two axes"),
        pytest.param(WIDE, "data=2,fsdp=2,tensor=2", 4, id="three axes"),
        pytest.param(ODD, "sequence=2,fsdp=2", 2, id="positions"),
    ],
)
def test_the_parts_of_several_hosts_are_the_arrays_once(monkeypatch, config, mesh, hosts):
    model = TinyGPT(config, seed=3)
    layout, placed = laid_out(model, mesh)
    monkeypatch.setattr(module, "holders", of_hosts(hosts))
    parts = []
    for host in range(hosts):
        monkeypatch.setattr(jax, "process_index", lambda host=host: host)
        parts.append(layout.own(placed))
    expect_equal(assembled(parts, config), model)
    assert sum(array.size for part in parts for array in part.values()) == sum(
        p.data.size for p in model.parameters().values()
    )
    for part in parts:
        for key, array in part.items():
            name, box = place_of(key, parameter_shapes(config))
            np.testing.assert_array_equal(array, model.parameters()[name].data[box])


@pytest.mark.parametrize("hosts", range(2, 9))
@pytest.mark.parametrize("name", ["nano", "small", "gpt2"])
def test_hosts_that_hold_the_same_save_about_the_same(name, hosts):
    config = ModelConfig(50257, 1024, 768, 12, 12, tied_embeddings=True) if name == "gpt2" else preset(name).model
    layout = Layout(Layers.of(config), config, mesh_of(f"data={hosts}"))
    loads, covered = Counter(), Counter()
    for name, array in layout.described().items():
        for host, held, part in divided(of_hosts(hosts)(array.sharding, array.shape), loads):
            assert held == tuple((0, n) for n in array.shape)
            covered[name] += int(np.prod([end - begin for begin, end in part]))
            assert 0 <= host < hosts
    assert covered == {name: int(np.prod(a.shape)) for name, a in layout.described().items()}
    assert len(loads) == hosts
    assert max(loads.values()) <= 2 * min(loads.values())


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.sets(st.integers(0, 20), min_size=1),
    st.dictionaries(st.integers(0, 20), st.integers(0, 10**6)),
)
def test_what_hosts_hold_together_is_cut_without_gaps(shape, hosts, before):
    held, loads = tuple((3, 3 + n) for n in shape), Counter(before)
    seen, takers = np.zeros([n + 3 for n in shape], int), []
    for host, whole, part in divided({held: hosts}, loads):
        assert whole == held
        seen[tuple(slice(*pair) for pair in part)] += 1
        takers.append(host)
        size = int(np.prod([end - begin for begin, end in part]))
        assert size > 0
        assert loads[host] == before.get(host, 0) + size
    assert (seen[(slice(3, None),) * len(shape)] == 1).all()
    assert seen.sum() == np.prod(shape)
    assert len({*takers}) == len(takers)
    assert {*takers} <= hosts
    if np.prod(shape) < len(hosts) * SMALL:
        assert takers == [min(hosts, key=lambda host: (before.get(host, 0), host))]
