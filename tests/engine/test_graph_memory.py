"""The memory counted from a recorded graph is what the tape really keeps, array by array."""

import subprocess
import sys
import tracemalloc

import numpy as np

import byhand as bh
from byhand.engine.backward import applications
from byhand.engine.graph.memory import boundary_bytes, cotangent_bytes, kept_bytes
from byhand.engine.graph.outline import Allocation, Outline
from byhand.engine.graph.record import live_bytes, record
from every import every
from model_cases import FAMILY

CHOICES = list(FAMILY.values())


def made(settings, **sizes):
    base = {"vocab_size": 19, "seq_len": 9, "d_model": 12, "n_layers": 2, "n_heads": 3}
    model = bh.TinyGPT(bh.ModelConfig(**(base | sizes | settings)))
    rng, config = np.random.default_rng(0), model.config
    return model, *(rng.integers(0, config.vocab_size, (3, config.seq_len)) for _ in range(2))


def owner(array):
    """Return the array whose memory a view shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def really_kept(model, loss):
    """Return the bytes of the distinct arrays that a recorded loss keeps alive."""
    nodes = applications(loss)
    read = [t.data for node in nodes for t in node.inputs if t.node is not None]
    arrays = [*read, loss.data, *(a for node in nodes for a in node.saved if np.issubdtype(a.dtype, np.floating))]
    owners = {id(owner(a)): owner(a) for a in arrays}
    for p in model.parameters().values():
        owners.pop(id(owner(p.data)), None)
    return sum(a.nbytes for a in owners.values())


@every(CHOICES, str)
def test_what_recording_keeps_is_what_the_graph_tells(settings):
    model, tokens, targets = made(settings)
    graph = record(model.loss, tokens=tokens, targets=targets)
    assert kept_bytes(graph) == really_kept(model, model.loss(tokens, targets))


def test_a_backward_pass_takes_what_the_graph_tells_and_little_more():
    """Besides, one derivative at a time has arrays of its own, and parameters get gradients."""
    model, tokens, targets = made({}, seq_len=64, d_model=48, vocab_size=512)
    graph = record(model.loss, tokens=tokens, targets=targets)
    told = kept_bytes(graph) + cotangent_bytes(graph)
    tracemalloc.start()
    try:
        model.loss(tokens, targets).backward()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    gradients = sum(p.grad.nbytes for p in model.parameters().values())
    assert told < most < 1.25 * told + 2 * gradients


@every([{}, {"vocab_size": 4096}, {"n_layers": 6, "d_ff": 192}], str)
def test_a_forward_pass_takes_what_the_graph_tells(settings):
    model, tokens, targets = made({"seq_len": 64, "d_model": 48, "vocab_size": 64} | settings)
    told = live_bytes(model.loss, tokens=tokens, targets=targets)
    tracemalloc.start()
    try:
        with bh.no_grad():
            model.loss(tokens, targets)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.75 * told < most < 1.25 * told


def test_a_cotangent_lives_beside_those_that_its_derivative_makes():
    """During the derivative of softmax: its cotangent and its result."""
    w = bh.Tensor(np.ones((3, 4), np.float32), requires_grad=True)
    graph = record(lambda x: bh.equations.softmax(bh.equations.matmul(x, w)), x=np.ones((2, 3), np.float32))
    assert cotangent_bytes(graph) == 2 * (2 * 4 * 4)


def test_blocks_leave_a_stream_each_to_what_follows():
    model, tokens, targets = made({})
    graph = record(model.loss, tokens=tokens, targets=targets)
    assert boundary_bytes(graph, "blocks") == 4 * tokens.size * 12 * (2 + 1)


def test_views_share_storage_and_copies_do_not():
    x = Outline((2, 3, 4), np.float32)
    xp = x.__array_namespace__()
    turned = xp.permute_dims(x, (0, 2, 1))
    for view in (x[:, 1:], x[0, None], x.reshape((6, 4)), turned, turned[1], x.reshape((2, 12)).T):
        assert view.storage is x.storage
    for copy in (turned.reshape((2, 12)), x + 1, x[np.array([0, 1])], xp.concat([x, x])):
        assert copy.storage is not x.storage
    assert turned.shape == (2, 4, 3)
    assert turned.strides == (12, 1, 4)


def test_an_outline_that_lives_until_python_ends_says_nothing():
    kept = "outline, outline.Outline((2,), 'float32')"
    code = f"import numpy; from byhand.engine.graph import outline; numpy.kept = {kept}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_an_allocation_that_an_interrupt_kept_from_having_a_size_goes_quietly():
    live = Allocation.live
    Allocation.__new__(Allocation).__del__()
    assert Allocation.live == live
