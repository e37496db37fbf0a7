import itertools

import numpy as np
import pytest

import byhand as bh
from byhand.layers.head import LMHead

X, TABLE, W, B = (
    np.random.default_rng(i).standard_normal(s) for i, s in enumerate([(1, 2, 4), (3, 4), (4, 3), (3,)])
)


@pytest.mark.parametrize(("bias", "tied"), [*itertools.product((False, True), repeat=2)])
def test_weight_and_bias(bias, tied):
    head = LMHead(bh.ModelConfig(vocab_size=3, d_model=4, lm_head_bias=bias, tied_embeddings=tied))
    shapes = {name: p.shape for name, p in head.parameters().items()}
    assert shapes == ({} if tied else {"w": (4, 3)}) | ({"b": (3,)} if bias else {})
    logits = head.apply({"w": W} | ({"b": B} if bias else {}), X, TABLE)
    assert logits.name == "logits"
    np.testing.assert_allclose(logits.data, X @ (TABLE.T if tied else W) + (B if bias else 0), rtol=1e-14)
