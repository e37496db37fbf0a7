import numpy as np
import pytest

from byhand.engine import Tensor
from byhand.errors import ConfigError
from byhand.host import float_type, normal, token_array


def test_the_engine_makes_arrays_of_lists_and_numbers():
    assert isinstance(Tensor([1.0, 2.0]).data, np.ndarray)
    assert (Tensor(3).data.dtype, Tensor(3).shape) == (np.int64, ())


def test_numbers_have_their_mean_and_deviation_and_belong_to_the_name():
    x = normal("x", (200, 100), 3.0, 0.5, seed=1, dtype="float64")
    assert (x.mean(), x.std()) == (pytest.approx(3, abs=0.01), pytest.approx(0.5, rel=0.01))
    np.testing.assert_array_equal(x, normal("x", (200, 100), 3.0, 0.5, seed=1, dtype="float64"))
    assert (x != normal("y", (200, 100), 3.0, 0.5, seed=1, dtype="float64")).all()
    assert (normal("x", (2, 3), 1.0, 0.0, seed=1, dtype="float32") == np.ones((2, 3), np.float32)).all()


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_a_seed_is_an_integer_even_where_nothing_is_drawn(seed):
    with pytest.raises(ConfigError, match="seed is"):
        normal("b", (2,), 0.0, 0.0, seed=seed, dtype="float32")


def test_a_model_computes_in_two_precisions():
    assert float_type(np.float64) is float_type("float64") is np.float64
    with pytest.raises(ConfigError, match="dtype is 'float16'"):
        float_type("float16")


def test_tokens_of_the_right_type_are_not_copied():
    tokens = np.array([[1, 2]])
    assert token_array(tokens, 3) is tokens
    assert token_array(tokens.astype(np.uint8), 3).dtype == np.int64
