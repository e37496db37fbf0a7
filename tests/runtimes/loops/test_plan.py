"""The plan itself: what it records, fuses and places, and that a replayed step is the reference's."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byhand as bh
from byhand.engine import Tensor
from byhand.engine.equation import with_role
from byhand.engine.graph.outline import Outline
from byhand.engine.graph.record import record
from byhand.equations import mul
from byhand.errors import ConfigError
from byhand.runtimes.loops.kernels import cross_entropy
from byhand.runtimes.loops.lower import fusion
from byhand.runtimes.loops.lower.fusion import rules_of, without
from byhand.runtimes.loops.place import place_by_lifetime
from byhand.runtimes.loops.program.builder import Builder
from byhand.runtimes.loops.program.calls import Call
from byhand.runtimes.loops.run.training import LoopsSession
from model_cases import BIASLESS, FAMILY, WITHOUT_KERNEL, lacking_kernels
from runtimes.loops.arrays import gradients_of
from runtimes.steps import made

ACTIVATIONS = [
    rules for name in with_role("activation", "gate")
    if (rules := tuple(rule.name for rule in rules_of("train") if rule.ends == name))
]  # fmt: skip
"""The rules of each activation that has kernels, the one of the activation alone last."""


def two_models(seed=0, **settings):
    """Return twins with every parameter, biases too, away from zero."""
    config = bh.ModelConfig(
        **{"vocab_size": 19, "seq_len": 9, "d_model": 12, "n_layers": 2, "n_heads": 3, **settings}
    )
    models = bh.TinyGPT(config, seed=seed), bh.TinyGPT(config, seed=seed)
    rng = np.random.default_rng(seed)
    for name, p in models[0].parameters().items():
        p.data = (p.data + 0.2 * rng.standard_normal(p.shape)).astype(np.float32)
        models[1].parameters()[name].data = p.data.copy()
    return models


def batch(config, rows, steps, seed=0):
    return made(config, (rows, steps), seed=seed)[0]


def assert_step_equal(fast, slow, tokens, targets, threads=2, kernels_only=True, rules=None, blas="tiles"):
    """Hold a replayed step's loss and gradients against NumPy's."""
    runtime = LoopsSession(fast, bh.AdamW(lr=0.0, weight_decay=0.0), threads, blas, rules=rules)
    loss, norm = runtime.step([(tokens, targets)])
    expected = slow.loss(tokens, targets)
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    gradients = gradients_of(runtime)
    expected = {name: p.grad for name, p in slow.parameters().items() if not p.frozen}
    largest = max(float(np.abs(grad).max()) for grad in expected.values())
    for name, grad in expected.items():
        error = np.abs(gradients[name] - grad).max()
        assert error <= 1e-4 * max(np.abs(grad).max(), 1e-3 * largest), name
    assert norm == pytest.approx(np.sqrt(sum(float((grad**2).sum()) for grad in expected.values())), rel=1e-4)
    found = {
        call.node.equation.name for call in runtime.plan("train", tokens.shape).calls if call.kernel == "reference"
    }
    uncovered = found - {name for rule in rules_of("train") for name in rule.names} or found
    lacking = (
        f"no kernel computes {', '.join(uncovered)}. Write one, or name it in WITHOUT_KERNEL of tests/model_cases.py"
    )
    assert not kernels_only or not found, lacking
    assert kernels_only or found, "kernels compute all, but an equation without one was expected"
    return runtime


@pytest.mark.parametrize(
    ("family", "blas"),
    [("default", "scipy"), ("layers of three kinds", "scipy"), *((family, "tiles") for family in FAMILY)],
)
def test_every_setting_has_the_tapes_gradients_and_kernels_unless_it_is_said_to_have_none(family, blas):
    fast, slow = two_models(**FAMILY[family])
    alone = not lacking_kernels(fast.config)
    runtime = assert_step_equal(fast, slow, *batch(fast.config, 3, 9), blas=blas, kernels_only=alone)
    kernels = {call.kernel for call in runtime.plan("train", (3, 9)).calls}
    assert ("tiled_gemm" in kernels, "gemm" in kernels) == (blas == "tiles", blas != "tiles")


def test_what_is_said_to_have_no_kernel_has_none():
    assert not WITHOUT_KERNEL & {name for rule in rules_of("train") for name in rule.names}


def test_a_batch_smaller_than_the_cores_leaves_them_to_the_library():
    fast, slow = two_models()
    runtime = assert_step_equal(fast, slow, *batch(fast.config, 1, 9), threads=2)
    assert "tiled_gemm" not in {call.kernel for call in runtime.plan("train", (1, 9)).calls}


@settings(max_examples=10)
@given(
    rows=st.integers(1, 4),
    steps=st.integers(1, 9),
    heads=st.integers(1, 3),
    head_width=st.integers(3, 6),  # LN of two numbers is +-1: its derivative is rounding (see the book)
    threads=st.integers(1, 3),
    vocab=st.integers(1, 19),
    seed=st.integers(0, 1000),
)
def test_gradients_on_any_shape(rows, steps, heads, head_width, threads, vocab, seed):
    fast, slow = two_models(seed, d_model=heads * head_width, n_heads=heads, vocab_size=vocab)
    assert_step_equal(fast, slow, *batch(fast.config, rows, steps, seed), threads=threads)


@pytest.mark.parametrize("steps", [7, 8, 9, 31, 33, 64, 65, 128, 130, 257])
@pytest.mark.parametrize("causal", [True, False])
def test_attention_in_tiles_and_blocks(steps, causal):
    fast, slow = two_models(seq_len=257, causal=causal, n_layers=1)
    assert_step_equal(fast, slow, *batch(fast.config, 2, steps))


def rules_without(*names):
    assert set(names) <= {fusion.name for fusion in rules_of("train")}
    return tuple(f for f in rules_of("train") if f.name not in names)


@pytest.mark.parametrize("name", [rule.name for rule in rules_of("train") if rule.reason])
def test_a_step_without_one_fusion_has_the_same_numbers(name, monkeypatch):
    """Its equations go through the kernels that serve each alone, or where there are none through the fallback."""
    if name == "LM head + cross-entropy":
        monkeypatch.setattr(cross_entropy, "VOCABULARY", 10)
        monkeypatch.setattr(cross_entropy, "CHUNK", 4)
    last = name.rpartition(" + ")[2]
    config = {"activation": last} if last in with_role("activation", "gate") else {}
    if "low_rank" in name:
        config = {"lora": 2}
    fast, slow = two_models(norm_affine=True, **config)
    alone = name not in ("attention", "embeddings", "linear + low_rank")
    runtime = assert_step_equal(fast, slow, *batch(fast.config, 3, 9), kernels_only=alone, rules=without(name))
    with_it = LoopsSession(fast, bh.AdamW(), threads=2).plan("train", (3, 9))
    assert [c.kernel for c in runtime.plan("train", (3, 9)).calls] != [c.kernel for c in with_it.calls]


@pytest.mark.parametrize(
    "without",
    [
        ("layer_norm",),
        ("linear",),
        ("linear + residual", "residual"),
        ("rms_norm",),
        *ACTIVATIONS,
    ],
    ids=str,
)
def test_an_equation_without_a_kernel_runs_its_reference_halves(without):
    activation = without[-1] if without[-1] in with_role("activation", "gate") else "gelu"
    norm = "rms" if "rms_norm" in without else "layer"
    fast, slow = two_models(norm_affine=True, activation=activation, norm=norm)
    rules = rules_without(*without)
    assert_step_equal(fast, slow, *batch(fast.config, 3, 9), kernels_only=False, rules=rules)


def test_no_fusion_at_all():
    fast, slow = two_models(norm_affine=True, tied_embeddings=True)
    rules = tuple(f for f in rules_of("train") if not f.reason)
    assert_step_equal(fast, slow, *batch(fast.config, 3, 9), kernels_only=False, rules=rules)


def test_a_plan_must_end_in_a_loss_with_kernels():
    fast, _ = two_models()
    rules = rules_without("cross-entropy with its derivative", "cross_entropy")
    with pytest.raises(ConfigError, match="cross_entropy"):
        LoopsSession(fast, bh.AdamW(), rules=rules).step([batch(fast.config, 3, 9)])


def test_buffers_that_live_together_do_not_overlap():
    fast, _ = two_models()
    calls = LoopsSession(fast, bh.AdamW(), threads=1).plan("train", (4, 9)).calls
    end = place_by_lifetime(calls)
    values = list({id(b): b for c in calls for b in c.buffers if b.kind == "value"}.values())
    for i, a in enumerate(values):
        for b in values[:i]:
            together = a.first <= b.last and b.first <= a.last
            apart = a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
            assert apart or not together, (a.name, b.name)
    assert end < sum(b.size for b in values), "nothing was reused"


def test_recording_keeps_no_numbers():
    fast, _ = two_models()
    tokens, targets = batch(fast.config, 3, 9)
    graph = record(fast.loss, tokens=tokens, targets=targets)
    made = [t for node in graph.nodes for t in node.inputs if t.node is not None]
    assert made
    for tensor in [*made, graph.root]:
        assert tensor.shape == tensor.node.results[tensor.index][0]
        assert isinstance(tensor.data, Outline)
    saved = [array for node in graph.nodes for array in node.saved]
    assert all(isinstance(array, Outline) or array.dtype == np.int64 for array in saved)


def test_float64_is_refused_with_a_way_out():
    model = bh.TinyGPT(bh.ModelConfig(), dtype="float64")
    with pytest.raises(ConfigError, match="Use the numpy runtime"):
        LoopsSession(model)


@pytest.mark.parametrize(
    "settings",
    [{}, {"lm_head_bias": False}, {"tied_embeddings": True}, {"norm_affine": True}, {"logit_softcap": 2.0}, BIASLESS],
    ids=str,
)
@pytest.mark.parametrize("rows", [4, 10, 26])
def test_logits_some_rows_at_a_time(settings, rows, monkeypatch):
    """27 rows in chunks that do not divide them; two micro-batches, since what is added to where differs."""
    monkeypatch.setattr(cross_entropy, "VOCABULARY", 10)
    monkeypatch.setattr(cross_entropy, "CHUNK", rows)
    fast, slow = two_models(**settings)
    runtime = assert_step_equal(fast, slow, *batch(fast.config, 3, 9), threads=1)
    wide = [
        b for c in runtime.plan("train", (3, 9)).calls for b in c.buffers if b.shape[-1] == 19 and b.kind == "value"
    ]
    assert max(b.size for b in wide) == rows * 19, "no array holds all logits"
    tokens, targets = batch(fast.config, 3, 9)
    assert runtime.loss(tokens, targets) == pytest.approx(slow.loss(tokens, targets).item(), rel=1e-5)
    loss, norm = runtime.step([(tokens, targets), (tokens, targets)])
    once, norm_once = runtime.step([(tokens, targets)])
    assert (loss, norm) == (pytest.approx(once, rel=1e-6), pytest.approx(norm_once, rel=1e-5))


@pytest.mark.parametrize("chunk", [4, 256])
def test_the_loss_caps_its_logits_itself(chunk, monkeypatch):
    monkeypatch.setattr(cross_entropy, "VOCABULARY", 10)
    monkeypatch.setattr(cross_entropy, "CHUNK", chunk)
    fast, _ = two_models(logit_softcap=2.0)
    calls = LoopsSession(fast, bh.AdamW(), threads=1).plan("train", (3, 9)).calls
    derivatives = {b.shape for c in calls for b in c.buffers if b.name == "loss:derivatives"}
    assert "softcap" not in {c.kernel for c in calls}
    assert derivatives == {(19,)}, "no more derivatives than a row's"


def test_capped_logits_that_something_else_reads_stay():
    """Then the cap is a step of its own, and so is its derivative."""
    fast, slow = two_models(logit_softcap=2.0)
    for each in (fast, slow):
        each.loss_of = partial(regularised, each)
        each.loss = each.loss_of
    assert_step_equal(fast, slow, *batch(fast.config, 3, 9), kernels_only=False)


def regularised(model, tokens, targets):
    """A loss of logits plus a hundredth of themselves."""
    logits = model.logits_of(tokens)
    return bh.equations.cross_entropy(logits + 0.01 * logits, targets, name="loss")


def test_a_small_vocabulary_keeps_its_logits_together():
    fast, _ = two_models()
    calls = LoopsSession(fast, bh.AdamW(), threads=1).plan("train", (3, 9)).calls
    assert [c.kernel for c in calls].count("cross_entropy") == 1


@pytest.mark.parametrize(
    ("ahead", "back", "flops"),
    [
        ((1, 3), (2,), ((7, 22), (50,))),
        ((1, 3), (), ((20, 60), ())),
        ((), (1, 3), ((), (20, 60))),
        ((2,), None, ((30,), None)),
    ],
)
def test_a_group_whose_calls_lack_a_direction_does_its_operations_in_the_other(monkeypatch, ahead, back, flops):
    """30 forward and 50 back, by the bytes of the calls that are apportioned."""
    monkeypatch.setattr(fusion, "arithmetic_of", lambda node: (10 * node, 20 * node - 5))
    made = [n and [Call("", None, 0, {}, touched=size, apportioned=True) for size in n] for n in (ahead, back)]
    fusion.assign_operations([1, 2], *made)
    assert [n and tuple(call.flops for call in n) for n in made] == [n and n for n in flops] == list(flops)


def test_what_is_computed_beside_the_graph_is_refused():
    """A leaf made of an activation: a plan would take the numbers of the recording for a constant."""
    w = Tensor(np.ones((3, 4), np.float32), requires_grad=True, name="w")

    def compute(x):
        return mul(w, Tensor((w + 1.0).data, name="detached"))

    graph = record(compute, x=np.zeros((2, 3), np.int64))
    with pytest.raises(ConfigError, match="detached is computed beside the graph"):
        Builder(graph, {"w": w}).value(graph.nodes[-1].inputs[1])
