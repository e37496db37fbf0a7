import numpy as np

import byhand as bh
from byhand.layers.embeddings import PositionEmbedding, TokenEmbedding

CONFIG = bh.ModelConfig(vocab_size=3, seq_len=4, d_model=2)


def test_tables():
    assert {name: p.shape for name, p in TokenEmbedding(CONFIG).parameters().items()} == {"wte": (3, 2)}
    assert {name: p.shape for name, p in PositionEmbedding(CONFIG).parameters().items()} == {"wpe": (4, 2)}


def test_each_token_has_its_row():
    table = np.arange(6.0).reshape(3, 2)
    e = TokenEmbedding(CONFIG).apply({"wte": table}, np.array([[2, 0]]))
    np.testing.assert_array_equal(e.data, [[[4, 5], [0, 1]]])


def test_positions_count_from_where_a_cache_ends():
    table, x = np.arange(8.0).reshape(4, 2), np.zeros((1, 2, 2))
    positions = PositionEmbedding(CONFIG)
    np.testing.assert_array_equal(positions.apply({"wpe": table}, x).data, [table[:2]])
    for start in (2, np.array(2)):
        np.testing.assert_array_equal(positions.apply({"wpe": table}, x, start).data, [table[2:]])
