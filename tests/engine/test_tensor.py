import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import byhand
from byhand.engine import Equation, Tensor, registry
from byhand.equations import add
from byhand.errors import ConfigError, ShapeError


def test_operators_are_equations():
    x = Tensor(np.array([[1.0, 2.0]]), requires_grad=True)
    used = {
        "add": (x + 1.0, 1.0 + x, x + x),
        "mul": (x * 2.0, 2.0 * x, -x, x / 2.0),
        "matmul": (x @ np.ones((2, 3)),),
        "reshape": (x.reshape(2, 1), x.reshape(-1)),
    }
    for name, results in used.items():
        assert all(y.node.equation is registry[name] for y in results)


def test_operators_compute_what_they_say():
    x = Tensor(np.array([1.0, 4.0]))
    assert (x - 1.0).data.tolist() == [0, 3]
    assert (1.0 - x).data.tolist() == [0, -3]
    assert (x - x).data.tolist() == [0, 0]
    assert (x / 2).data.tolist() == [0.5, 2]
    assert (-x).data.tolist() == [-1, -4]
    assert (x * x + 2 * x).data.tolist() == [3, 24]


def test_no_equation_divides_by_a_tensor():
    x = Tensor(np.ones(2))
    with pytest.raises(TypeError):
        x / x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_python_numbers_take_the_tensors_precision(dtype):
    x = Tensor(np.ones(2, dtype))
    for y in (x + 1, x * 2.5, 1 - x, x / 3, -x):
        assert y.dtype == dtype


def test_lists_and_numbers_become_arrays():
    assert Tensor([1.0, 2.0]).shape == (2,)
    assert Tensor(3.0).item() == 3.0
    assert Tensor([[1, 2]]).ndim == 2


def test_a_tensor_says_what_it_is():
    assert repr(Tensor(np.ones((2, 3)), name="wte")) == "Tensor(wte: (2, 3) float64)"
    assert repr(Tensor(np.float32(1))) == "Tensor(() float32)"


def test_wrong_shapes_are_one_line():
    with pytest.raises(ShapeError) as error:
        Tensor(np.ones(2)) + Tensor(np.ones(3))
    assert "\n" not in str(error.value)


def test_a_name_is_given_to_one_equation_only():
    fields = {f: getattr(add, f) for f in Equation.__dataclass_fields__}
    fields["forward"] = lambda *arrays: None
    with pytest.raises(ConfigError) as error:
        Equation(**fields)
    here, there = Path(__file__).resolve(), Path(byhand.__file__).parent / "equations" / "add.py"
    assert str(error.value) == f"two equations are called 'add', in {there} and {here}. Rename one of them."
    assert registry["add"] is add


OWN = """
import sys
from byhand.engine import Equation
from byhand.engine.equation import Symbol

Equation(
    name="add", title="", latex="", derivative="", inputs=(), result=Symbol("y", "y", "()", ""),
    forward=lambda *arrays: None, vjp=lambda *arrays: None, terms=lambda *arrays: None,
)
from byhand.cli.main import main
sys.exit(main(["work", "add"]))
"""


def test_a_users_equation_of_a_taken_name_is_one_line(tmp_path):
    """Imported before byhand's own, so that byhand's is the second."""
    (tmp_path / "mine.py").write_text(OWN)
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    there = Path(byhand.__file__).parent / "equations" / "add.py"
    said = f"error: two equations are called 'add', in {tmp_path / 'mine.py'} and {there}. Rename one of them.\n"
    assert done.stderr == said


def test_a_fraction_beside_integers_is_not_cut_off():
    whole = Tensor([1, 2])
    assert (whole * 0.5).data.tolist() == [0.5, 1.0]
    assert (whole / 2).data.tolist() == [0.5, 1.0]
    assert (whole * 3).data.tolist() == [3, 6]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_and_lists_on_either_side(dtype):
    x = Tensor(np.array([[1.0, 2.0], [3.0, 4.0]], dtype=dtype), requires_grad=True)
    ones = np.ones((2, 2), dtype=dtype)
    for result, expected in (
        (ones + x, ones + x.data),
        (ones * x, x.data),
        (ones - x, 1 - x.data),
        (x - ones, x.data - 1),
        (ones @ x, ones @ x.data),
        (x @ ones, x.data @ ones),
        (x - [1.0, 2.0], x.data - [1.0, 2.0]),
        (3 - x, 3 - x.data),
    ):
        assert isinstance(result, Tensor)
        np.testing.assert_array_equal(result.data, expected)


def test_reshape_takes_lengths_or_a_tuple():
    x = Tensor(np.arange(6.0))
    assert x.reshape(2, 3).shape == x.reshape((2, -1)).shape == (2, 3)
