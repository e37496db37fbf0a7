"""Patterns: one line states what a rule covers, and the same line finds it."""

import importlib.util

import numpy as np
import pytest

from byhand.engine import Tensor
from byhand.engine.graph.record import record
from byhand.equations import add, embedding, gelu, linear, residual, softmax, split_qkv, transpose
from byhand.errors import ConfigError
from byhand.runtimes.loops.pattern.language import Applied, applications, names_in, parsed
from byhand.runtimes.loops.pattern.matching import matched

W = Tensor(np.ones((4, 4), np.float32), requires_grad=True, name="w")
STREAM = Tensor(np.ones((2, 3, 4), np.float32), requires_grad=True, name="stream")


def covered(line, compute, **inputs):
    """Return the names of what the pattern covers at the end of a graph, or None."""
    graph = record(compute, **(inputs or {"tokens": np.zeros((2, 3), np.int64)}))
    nodes = matched(parsed(line), graph.nodes[-1], graph)
    return None if nodes is None else [node.equation.name for node in nodes]


def test_a_line_is_a_tree():
    found = parsed("a(b?(x, <position>), c/d(y).1 | {w})")
    assert isinstance(found, Applied)
    assert names_in(found) == ["a", "b", "c", "d"]
    assert len(applications(found)) == 3
    assert parsed("a(b?(c(x)))").inputs[0].options[1] == parsed("c(x)")


@pytest.mark.parametrize("line", ["", "x", "a(b", "a(b))", "a(b;)", "a/b(x)", "a({w)", "a(<t)", "a | b(x)"])
def test_a_line_that_is_none_is_refused(line):
    with pytest.raises(ConfigError, match="pattern"):
        parsed(line)


def test_inner_results_have_one_reader():
    line = "residual(stream, linear(x, w))"
    assert covered(line, lambda t: residual(STREAM, linear(STREAM, W))) == ["linear", "residual"]
    assert covered(line, lambda t: residual(y := linear(STREAM, W), y)) is None
    assert covered(line, lambda t: residual(linear(STREAM, W), STREAM)) is None


def test_an_option_is_taken_where_it_fits():
    line = "linear(x, transpose({w}) | w)"
    assert covered(line, lambda t: linear(STREAM, transpose(W))) == ["transpose", "linear"]
    assert covered(line, lambda t: linear(STREAM, W)) == ["linear"]
    assert covered(line, lambda t: linear(STREAM, transpose(add(W, W)))) == ["linear"], "no leaf"
    line = "residual(stream, gelu?(linear(x, w)))"
    assert covered(line, lambda t: residual(STREAM, gelu(linear(STREAM, W)))) == ["linear", "gelu", "residual"]
    assert covered(line, lambda t: residual(STREAM, linear(STREAM, W))) == ["linear", "residual"]
    assert covered(line, lambda t: residual(STREAM, softmax(linear(STREAM, W)))) is None


def test_inputs_of_the_step_are_known_by_name():
    compute = lambda ids: embedding(W, ids)  # noqa: E731
    ids = np.zeros((2, 3), np.int64)
    assert covered("embedding(table, <>)", compute, ids=ids) == ["embedding"]
    assert covered("embedding(table, <ids>)", compute, ids=ids) == ["embedding"]
    assert covered("embedding(table, <tokens>)", compute, ids=ids) is None
    assert covered("embedding(table, <>)", lambda t: embedding(W, np.zeros(3, np.int64))) is None
    assert covered("embedding(table, <>, <position>)", compute, ids=ids) == ["embedding"], "inputs may be lacking"


def test_a_numbered_result_is_of_one_application():
    packed = Tensor(np.ones((1, 3, 12), np.float32), requires_grad=True, name="packed")

    def both(which, one=True):
        def compute(t):
            first = split_qkv(packed, n_heads=1)
            other = first if one else split_qkv(packed, n_heads=1)
            return add(first[which[0]], other[which[1]])

        return compute

    line = "add(split_qkv(qkv).0, split_qkv(qkv).2)"
    assert covered(line, both((0, 2))) == ["split_qkv", "add"]
    assert covered(line, both((2, 0))) is None
    assert covered(line, both((0, 2), one=False)) is None


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="the kernels' files need Numba")
def test_every_rule_names_registered_equations():
    from byhand.engine.equation import registry
    from byhand.runtimes.loops.lower.fusion import rules_of

    for stage in ("train", "fill", "decode"):
        for rule in rules_of(stage):
            assert rule.names <= set(registry), rule.name
