import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.errors import ConfigError
from byhand.interop.seed_program.parameters import initial_parameters
from byhand.interop.seed_program.random import PIECE, XorShift64Star
from interop import seed_from_facts as facts
from model_cases import each_choice


def test_first_draw_by_hand():
    # From 1: x >> 12 gives 0, x << 25 sets bit 25, x >> 27 gives 0; the state is 2^25 + 1.
    generator = XorShift64Star(1)
    assert generator.draws(1)[0] == ((2**25 + 1) * 2685821657736338717 % 2**64) >> 32
    assert generator.state == 2**25 + 1


def test_draws_in_pieces_are_one_stream():
    whole, parts = XorShift64Star(9), XorShift64Star(9)
    count = PIECE + 3
    assert whole.draws(count).tolist() == [*parts.draws(PIECE - 1).tolist(), *parts.draws(4).tolist()]
    assert whole.state == parts.state
    assert whole.draws(0).tolist() == []


def test_seed_zero_is_replaced():
    assert XorShift64Star(0).draws(3).tolist() == XorShift64Star(0x12345678).draws(3).tolist()


@pytest.mark.parametrize("seed", [1, 7, 2**64 - 1])
def test_draws_uniforms_and_integers(seed):
    theirs = facts.Xorshift(seed)
    ours = XorShift64Star(seed)
    assert ours.draws(50).tolist() == [theirs.u32() for _ in range(50)]
    assert ours.uniform(50).tolist() == [float(theirs.unit()) for _ in range(50)]
    assert ours.integers(3, 11, size=50).tolist() == [theirs.between(3, 10) for _ in range(50)]


@pytest.mark.parametrize("shape", [(1,), (3, 5), (4, 4)])
def test_normal_arrays_in_pairs(shape):
    ours = XorShift64Star(42).normal(shape, 0.125)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, facts.normal_array(42, shape, 0.125), rtol=3e-7)


def test_initial_parameters_have_the_seeds_values_and_spread():
    config = ModelConfig(seq_len=8, d_model=12, n_layers=2)
    ours, theirs = initial_parameters(config, 5), facts.initial(5, 256, 8, 12, 2)
    assert list(ours) == list(theirs)
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=3e-7, err_msg=name)
    assert ours["wte"].std() == pytest.approx(12**-0.5, rel=0.05)
    assert ours["blocks.1.mlp.w_out"].std() == pytest.approx(48**-0.5, rel=0.1)


@pytest.mark.parametrize("setting", [{"n_heads": 2}, {"d_ff": 7}, *each_choice()], ids=str)
def test_other_models_are_refused(setting):
    with pytest.raises(ConfigError, match="original program"):
        initial_parameters(ModelConfig(d_model=8, **setting), 1)
