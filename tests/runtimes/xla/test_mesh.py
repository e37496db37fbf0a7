"""What a mesh is, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import ConfigError
from byhand.runtimes.xla.mesh import AXES, Mesh, mesh_of


@given(st.dictionaries(st.sampled_from(AXES), st.integers(1, 9999)), st.randoms(use_true_random=False))
def test_a_mesh_is_its_axes_in_any_order(sizes, random):
    parts = [f"{name}={n}" for name, n in sizes.items()]
    random.shuffle(parts)
    mesh = mesh_of(" , ".join(parts))
    assert mesh.axes == {**dict.fromkeys(AXES, 1), **sizes}
    assert mesh_of(str(mesh)) == mesh
    assert mesh.size == mesh.rows * mesh.group_size == mesh.tokens * mesh.tensor


def test_no_text_is_one_device():
    assert mesh_of("") == Mesh()
    assert str(Mesh()) == "data=1"


@pytest.mark.parametrize(
    "text",
    [
        "data",
        ",",
        "data=2,",
        "data=",
        "data=0",
        "data=-1",
        "data=1.5",
        "data=²",
        "rows=2",
        "data=2,data=2",
        "data=" + "9" * 50,
    ],
)
def test_what_is_none_is_said(text):
    with pytest.raises(
        ConfigError, match=r"^mesh is '.*\. Write the devices along each axis, such as data=2,fsdp=4\.$"
    ):
        mesh_of(text)
