import numpy as np

import byhand as bh
from byhand.engine import Tensor
from byhand.layers.attention import SelfAttention
from byhand.layers.parameter import residual_std


def made(causal=True):
    config = bh.ModelConfig(d_model=6, n_heads=3, n_layers=2, causal=causal)
    attention = SelfAttention(config, config.layer_kinds[0])
    rng = np.random.default_rng(0)
    return attention, {name: rng.standard_normal(p.shape) for name, p in attention.parameters().items()}


def test_parameters():
    attention, _ = made()
    p = attention.parameters()
    assert {name: (q.shape, q.std) for name, q in p.items()} == {
        "w_qkv": ((6, 18), 0.02),
        "b_qkv": ((18,), 0.0),
        "w_proj": ((6, 6), residual_std(2)),
        "b_proj": ((6,), 0.0),
    }


def test_a_cache_keeps_what_the_layer_says():
    attention, p = made()
    x = np.ones((2, 5, 6))
    heads, width = attention.cache_shape
    empty = Tensor(np.zeros((2, heads, 5, width))), Tensor(np.zeros((2, heads, 5, width)))
    (alone, nothing), (cached, kept) = attention.apply(p, x), attention.apply(p, x, np.zeros(2, int), empty)
    assert nothing is None
    assert [t.shape for t in kept] == [(2, 3, 5, 2)] * 2
    np.testing.assert_array_equal(alone.data, cached.data)


def test_only_without_the_mask_the_first_position_sees_the_last():
    x = np.random.default_rng(1).standard_normal((1, 3, 6))
    changed = x + np.array([0.0, 0, 1])[:, None]
    for causal in (True, False):
        attention, p = made(causal)
        first, other = (attention.apply(p, a)[0].data[0, 0] for a in (x, changed))
        assert (first == other).all() == causal


def test_the_model_says_the_cache_of_each_block():
    assert bh.TinyGPT(bh.ModelConfig(d_model=6, n_heads=3, n_layers=2)).cache_shapes() == [(3, 2), (3, 2)]
