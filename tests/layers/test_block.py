import numpy as np
import pytest

import byhand as bh
from byhand.engine import Tensor, scope
from byhand.layers.block import Block
from byhand.layers.parameter import flat, map_tree


def made(position):
    config = bh.ModelConfig(d_model=4, n_heads=2, norm_affine=True, norm_position=position)
    block, rng = Block.of(config, config.layer_kinds[0]), np.random.default_rng(0)
    shapes = {name: p.shape for name, p in flat(block.parameters()).items()}
    return block, map_tree(block.parameters(), lambda name: Tensor(rng.standard_normal(shapes[name]), True, name))


@pytest.mark.parametrize("position", ["pre", "post"])
def test_parameters_stand_in_the_order_of_pre_norm(position):
    block, _ = made(position)
    assert list(block.parameters()) == ["ln_1", "attn", "ln_2", "mlp"]
    assert list(flat(block.parameters()))[:3] == ["ln_1.gain", "ln_1.bias", "attn.w_qkv"]


@pytest.mark.parametrize("position", ["pre", "post"])
def test_each_sublayer_is_added_to_the_stream_and_each_norm_has_its_own_gain(position):
    block, p = made(position)
    x = Tensor(np.random.default_rng(1).standard_normal((1, 3, 4)), name="x")
    with scope("b"):
        y, _ = block.apply(p, x)
    if position == "pre":
        mid = block.attention.apply(p["attn"], block.norm.apply(p["ln_1"], x, ""))[0].data + x.data
        expected = block.mlp.apply(p["mlp"], block.norm.apply(p["ln_2"], Tensor(mid), "")).data + mid
    else:
        mid = block.norm.apply(p["ln_1"], Tensor(block.attention.apply(p["attn"], x)[0].data + x.data), "").data
        expected = block.norm.apply(p["ln_2"], Tensor(block.mlp.apply(p["mlp"], Tensor(mid)).data + mid), "").data
    assert y.name == ("b.x_out" if position == "pre" else "b.ln_2")
    np.testing.assert_array_equal(y.data, expected)


def test_only_attention_meets_the_cache():
    block, p = made("pre")
    heads, width = block.attention.cache_shape
    x, empty = Tensor(np.ones((2, 3, 4))), Tensor(np.zeros((2, heads, 3, width)))
    (alone, _), (cached, kept) = block.apply(p, x), block.apply(p, x, np.zeros(2, int), (empty, empty))
    np.testing.assert_array_equal(cached.data, alone.data)
    assert [t.shape for t in kept] == [(2, heads, 3, width)] * 2


@pytest.mark.parametrize("position", ["output", "both"])
def test_norms_behind_the_sublayers(position):
    block, p = made(position)
    x = Tensor(np.random.default_rng(1).standard_normal((1, 3, 4)), name="x")
    y, _ = block.apply(p, x)

    def normed(name, data):
        return block.norm.apply(p[name], Tensor(data), "")

    def read(name, data):
        return normed(name, data) if position == "both" else Tensor(data)

    behind = "_out" if position == "both" else ""
    a = block.attention.apply(p["attn"], read("ln_1", x.data))[0].data
    mid = normed(f"ln_1{behind}", a).data + x.data
    m = block.mlp.apply(p["mlp"], read("ln_2", mid)).data
    np.testing.assert_array_equal(y.data, normed(f"ln_2{behind}", m).data + mid)
