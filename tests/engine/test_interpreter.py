import threading

import numpy as np
import pytest

from byhand.engine import Evaluate, Tensor, interpreting, no_grad, scope
from byhand.engine.context import full_name
from byhand.equations import add, causal_self_attention, split_qkv


def parameter(shape=(1,)):
    return Tensor(np.ones(shape), requires_grad=True)


def test_scopes_nest_and_end():
    x = parameter()
    with scope("blocks.0"), scope("mlp"):
        y = add(x, x, name="pre")
    assert y.name == "blocks.0.mlp.pre"
    assert y.node.name == "blocks.0.mlp.pre"
    assert add(x, x, name="logits").name == "logits"
    assert add(x, x).name == ""
    assert full_name("x") == "x"


def test_a_scope_ends_also_where_an_error_passes():
    with pytest.raises(KeyError), scope("blocks.0"):
        raise KeyError
    assert full_name("x") == "x"


def test_an_unnamed_scope_keeps_the_outer_one():
    with scope("blocks.0"), scope(""):
        assert full_name("x") == "blocks.0.x"


def test_several_results_are_numbered():
    q, k, v = split_qkv(parameter((1, 1, 3)), n_heads=1, name="heads")
    assert [t.name for t in (q, k, v)] == ["heads.0", "heads.1", "heads.2"]
    assert [t.index for t in (q, k, v)] == [0, 1, 2]
    assert q.node is k.node is v.node


def test_the_parts_of_a_composite_are_named_under_it():
    weights = [parameter(s) for s in ((2, 6), (6,), (2, 2), (2,))]
    a = causal_self_attention(parameter((1, 2, 2)), *weights, n_heads=1, name="attn")
    names = set()
    waiting = [a]
    while waiting:
        node = waiting.pop().node
        if node is not None:
            names.add(node.name)
            waiting.extend(node.inputs)
    assert names == {f"attn.{part}" for part in ("qkv", "heads", "scores", "weights", "mixed", "merged", "out")}


def test_nothing_is_recorded_inside_no_grad():
    x = parameter()
    with no_grad():
        y = x + x
        assert (y.node, y.requires_grad) == (None, False)
    assert (x + x).node is not None


def test_nothing_is_recorded_for_constants():
    x = Tensor(np.ones(1))
    assert (x + x).node is None
    assert not (x + x).requires_grad


def test_recording_resumes_after_an_error():
    with pytest.raises(KeyError), no_grad():
        raise KeyError
    assert (parameter() + 1.0).requires_grad


def test_another_thread_records_on_its_own():
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append((parameter() + 1.0).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]


def test_an_interpreter_sees_every_application():
    seen = []

    class Watch(Evaluate):
        def apply(self, equation, inputs, static, name):
            seen.append(f"{full_name(name)}: {equation.name}")
            return super().apply(equation, inputs, static, name)

    with interpreting(Watch()), scope("here"):
        add(np.ones(1), 2.0, name="y")
    assert seen == ["here.y: add"]
