"""Recording by outlines: the graph of the ordinary recording, and nothing of its numbers."""

import tracemalloc

import numpy as np
import pytest

import byhand as bh
from byhand.engine import Record, Tensor, interpreting
from byhand.engine.graph.outline import Outline
from byhand.engine.graph.record import Graph, record
from byhand.equations import add, matmul, softmax
from byhand.layers.cache import KVCache
from model_cases import FAMILY


def model(**chosen):
    return bh.TinyGPT(bh.ModelConfig(**{"vocab_size": 19, "seq_len": 9, "d_model": 12, "n_heads": 3, **chosen}))


def facts(graph):
    """Everything that a plan reads of a graph."""
    order = {id(node): i for i, node in enumerate(graph.nodes)}
    return [
        (
            node.equation.name,
            node.name,
            node.static,
            [(shape, np.dtype(dtype)) for shape, dtype in node.results],
            [(order.get(id(t.node)), t.index, tuple(t.shape), t.name, t.requires_grad) for t in node.inputs],
        )
        for node in graph.nodes
    ]


@pytest.mark.parametrize(("rows", "steps"), [(3, 9), pytest.param(1, 1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILY)
def test_it_is_the_graph_of_the_ordinary_recording(family, rows, steps):
    gpt = model(**FAMILY[family])
    tokens, targets = (np.zeros((rows, steps), np.int64) for _ in range(2))
    with interpreting(Record()):
        expected = Graph(gpt.loss(tokens, targets), {"tokens": tokens, "targets": targets})
    assert facts(record(gpt.loss, tokens=tokens, targets=targets)) == facts(expected)
    if not gpt.config.causal:
        return
    empty = gpt.cache(rows, 9)

    def decoded(tokens, position):
        kept = tuple(
            tuple(Tensor(t.data, True, name) for t, name in zip(pair, "kv", strict=True)) for pair in empty.blocks
        )
        return gpt.forward(tokens, KVCache(kept, position))[0]

    with interpreting(Record()):
        expected = Graph(decoded(tokens, empty.length), {"tokens": tokens})
    assert facts(record(decoded, tokens=tokens, position=empty.length)) == facts(expected)


def test_it_allocates_nothing_of_the_activations_size():
    """The scores alone would be 3 x 4 x 512 x 512 float32, twelve megabytes."""
    gpt = model(seq_len=512)
    tokens = np.zeros((4, 512), np.int64)
    tracemalloc.start()
    try:
        record(gpt.loss, tokens=tokens, targets=tokens.copy())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3_000_000


def test_constants_keep_their_numbers():
    mask = np.arange(4, dtype=np.float32)
    w = Tensor(np.ones((3, 4), np.float32), requires_grad=True, name="w")

    def compute(x):
        return softmax(matmul(np.ones((2, 3), np.float32), w) + add(mask, mask) * 2)

    graph = record(compute, x=np.zeros((2, 3), np.int64))
    (node,) = (n for n in graph.nodes if n.equation.name == "add")
    np.testing.assert_array_equal(node.inputs[1].data, 4 * mask)


def test_what_reads_a_result_is_counted_and_the_root_is_read_once_more():
    w = Tensor(np.ones((3, 3), np.float32), requires_grad=True, name="w")

    def compute(x):
        y = matmul(x, w)
        return add(softmax(y), y)

    graph = record(compute, x=np.ones((2, 3), np.float32))
    *_, total = graph.nodes
    assert [graph.uses(t) for t in (*total.inputs, graph.root)] == [1, 2, 1]
    assert graph.only(graph.root, "add") is total
    assert [graph.only_reader(node) for node in graph.nodes] == [None, total, None]


def test_outlines_are_inside_an_equation_only_as_long_as_it_computes():
    """Also those that it saves or returns as they came; a result that it saves stays that result."""
    graph = record(
        lambda x: softmax(matmul(x, Tensor(np.ones((3, 4), np.float32), True))), x=np.ones((2, 3), np.float32)
    )
    product, weights = graph.nodes
    arrays = [*product.saved, *weights.saved, *(t.data for t in weights.inputs), graph.root.data]
    assert not any(array.inside for array in arrays if isinstance(array, Outline))
    assert weights.saved[0] is graph.root.data


def test_a_function_without_a_rule_of_its_own_has_the_shape_that_it_gives():
    x = Outline((3, 4, 5), np.float32)
    xp = x.__array_namespace__()
    for name, arguments, shape in (
        ("concat", ([x, x],), (6, 4, 5)),
        ("stack", ([x, x],), (2, 3, 4, 5)),
        ("argsort", (x,), (3, 4, 5)),
        ("permute_dims", (x, (2, 0, 1)), (5, 3, 4)),
        ("cumulative_sum", (x,), None),
        ("matmul", (x, Outline((5, 2), np.float32)), (3, 4, 2)),
    ):
        if shape:
            assert getattr(xp, name)(*arguments).shape == shape
    assert (x > 0).dtype == np.bool_
    assert (2 * x).dtype == (x + np.float32(1)).dtype == np.float32
    assert (np.ones((4, 1)) * x).dtype == np.float64
    assert x[0, 1:, None].shape == (3, 1, 5)
    assert xp.sum(x, axis=(0, -1), keepdims=True).shape == (1, 4, 1)
    assert xp.max(x).shape == ()
    with pytest.raises(ValueError, match="cannot multiply"):
        x @ x
    with pytest.raises(ValueError, match="cannot reshape"):
        x.reshape((7, -1))
