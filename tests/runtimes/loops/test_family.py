"""Attention's variants in any combination: training and generation by plan against NumPy, on tiny models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import byhand as bh
from byhand.engine import Tensor
from byhand.engine.graph.record import record
from byhand.equations import (
    attention_scores,
    causal_softmax,
    cross_entropy,
    embedding,
    extend_cache,
    linear,
    matmul,
    merge_heads,
    mix,
    repeat_heads,
    rms_norm,
    rotary,
    split_qkv,
)
from byhand.equations.rotary import Scaling, frequencies, magnitude
from byhand.runtimes.loops.kernels.attention.angles import phases_of
from byhand.runtimes.loops.kernels.formats.contract import PANELS
from byhand.runtimes.loops.lower.fusion import rules_of
from byhand.runtimes.loops.run.decoding import LoopsDecoder, rounded_up
from byhand.runtimes.loops.run.replay import run_kernel
from byhand.runtimes.loops.run.training import LoopsSession
from byhand.runtimes.loops.runtime import LoopsRuntime
from byhand.runtimes.numpy.decoder import next_logits
from byhand.runtimes.protocol import Request
from runtimes.loops.arrays import apart, assert_close, gradients_of, logits_of
from runtimes.loops.test_plan import assert_step_equal, batch, two_models
from runtimes.texts import texts

LLAMA = {
    "positions": "rotary", "n_heads": 4, "n_kv_heads": 2, "d_head": 6, "norm": "rms", "norm_affine": True,
    "attention_bias": "none", "mlp_bias": False, "lm_head_bias": False,
}  # fmt: skip


@st.composite
def attentions(draw, causal=True):
    """Settings of attention that make sense together."""
    heads = draw(st.integers(1, 4))
    chosen = {
        "n_heads": heads,
        "n_kv_heads": draw(st.sampled_from([k for k in range(1, heads + 1) if heads % k == 0])),
        "d_head": draw(st.integers(3, 9)),
        "positions": draw(st.sampled_from(["rotary", "rotary", "learned", "none"])),
        "rope_pairing": draw(st.sampled_from(["halves", "neighbours"])),
        "rope_fraction": draw(st.sampled_from([1.0, 0.7])),
        "rope_base": draw(st.sampled_from([10000.0, 50.0])),
        "rope_scaling": draw(st.sampled_from(["none", "none", "linear", "llama3", "yarn"])),
        "rope_original_len": 20,
        "qk_norm": draw(st.booleans()),
        "norm_affine": draw(st.booleans()),
        "attention_bias": draw(st.sampled_from(["all", "qkv", "none"])),
        "norm": draw(st.sampled_from(["layer", "rms"])),
        "causal": causal or draw(st.booleans()),
    }
    if chosen["causal"]:
        chosen["attention_window"] = draw(st.none() | st.integers(1, 14))
    return chosen


@settings(max_examples=12)
@given(
    chosen=attentions(causal=False), rows=st.integers(1, 4), steps=st.integers(1, 11), threads=st.integers(1, 3),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_training_is_the_tapes(chosen, rows, steps, threads, seed):
    fast, slow = two_models(seed, **chosen, seq_len=11)
    assert_step_equal(fast, slow, *batch(fast.config, rows, steps, seed), threads=threads)


@pytest.mark.parametrize("window", [1, 2, 31, 32, 33, 60, 256, 257, 300])
@pytest.mark.parametrize("steps", [33, 257, 301])
def test_windows_in_tiles_and_blocks(window, steps):
    """The last block of queries does not see every key: another one writes the first gradient."""
    chosen = {"n_heads": 4, "n_kv_heads": 2, "positions": "rotary", "d_head": 6, "n_layers": 1}
    fast, slow = two_models(seq_len=301, attention_window=window, **chosen)
    assert_step_equal(fast, slow, *batch(fast.config, 1, steps))


def test_micro_batches_add_up_and_so_do_the_gains_gradients():
    fast, slow = two_models(**LLAMA, qk_norm=True)
    tokens, targets = batch(fast.config, 4, 9)
    runtime = LoopsSession(fast, bh.AdamW(lr=0.0, weight_decay=0.0), 2)
    runtime.step([(tokens[:2], targets[:2]), (tokens[2:], targets[2:])])
    slow.loss(tokens, targets).backward()
    for name, gradient in gradients_of(runtime).items():
        expected = slow.parameters()[name].grad
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=2e-5 * max(1e-3, np.abs(expected).max()) + 2e-6)


def test_repeated_heads_cost_nothing():
    """No array holds keys or values of all query heads, and no call but attention's touches them."""
    fast, _ = two_models(**LLAMA)
    calls = LoopsSession(fast, bh.AdamW(), threads=1).plan("train", (3, 9)).calls
    own = [call.kernel for call in calls if call.node is not None and ".attn." in call.node.name]
    heads = {"query_key", "attention", "attention_back", "query_key_back"}
    assert set(own) == {"tiled_gemm", *heads} or set(own) == {"gemm", *heads}
    packed = 3 * 9 * (4 + 2 * 2) * 6
    named = {b.name: b.size for call in calls for b in call.buffers if b.name.startswith("blocks.0.attn")}
    assert max(n for name, n in named.items() if not name.endswith("weights")) == packed


class Attention:
    """A loss of one attention of two query heads, one of keys and values; `change` comes before the scores."""

    config = bh.ModelConfig(vocab_size=7, seq_len=8)
    dtype = np.dtype("float32")

    def __init__(self, change):
        self.change, rng = change, np.random.default_rng(0)
        shapes = {"table": (7, 5), "w_qkv": (5, 4 * 6), "gain": (6,), "w_out": (12, 6)}
        self.arrays = {n: Tensor(rng.standard_normal(s).astype(np.float32), True, n) for n, s in shapes.items()}

    def parameters(self):
        return dict(self.arrays)

    def loss_of(self, tokens, targets):
        p = self.arrays
        heads = split_qkv(linear(embedding(p["table"], tokens), p["w_qkv"]), n_heads=2, n_kv_heads=1)
        q, k, v = self.change(*heads, p["gain"])
        k, v = (repeat_heads(x, times=2) for x in (k, v))
        mixed = mix(causal_softmax(attention_scores(q, k)), v)
        return cross_entropy(linear(merge_heads(mixed), p["w_out"], p["gain"]), targets)

    def loss(self, tokens, targets):
        return self.loss_of(tokens, targets)


TURN = {"base": 100.0, "width": 4}


@pytest.mark.parametrize(
    ("fused", "change"),
    [
        (True, lambda q, k, v, g: (q, k, v)),
        (True, lambda q, k, v, g: (rms_norm(q, g), rms_norm(k, g), v)),
        (True, lambda q, k, v, g: (rotary(rms_norm(q), **TURN), rotary(rms_norm(k), **TURN), v)),
        (False, lambda q, k, v, g: (rms_norm(rotary(q, **TURN)), rms_norm(rotary(k, **TURN)), v)),
        (False, lambda q, k, v, g: (rms_norm(q, g), k, v)),
        (False, lambda q, k, v, g: (rms_norm(q), rms_norm(k, g), v)),
        (False, lambda q, k, v, g: (rms_norm(q, eps=0.5), rms_norm(k), v)),
        (False, lambda q, k, v, g: (q, rotary(k, **TURN), v)),
        (False, lambda q, k, v, g: (rotary(q, **TURN), rotary(k, pairing="neighbours", **TURN), v)),
        (False, lambda q, k, v, g: (rotary(q, np.array(3), **TURN), rotary(k, np.array(3), **TURN), v)),
        (False, lambda q, k, v, g: (q, k, rms_norm(v))),
        (False, lambda q, k, v, g: (q, v, k)),
        (False, lambda q, k, v, g: (q, k, k)),
        (False, lambda q, k, v, g: (q + g, k, v)),
    ],
)
def test_what_is_no_chain_runs_by_single_kernels_or_halves(fused, change):
    fast, slow = Attention(change), Attention(change)
    rng = np.random.default_rng(1)
    runtime = assert_step_equal(fast, slow, *rng.integers(0, 6, (2, 3, 8)), kernels_only=fused)
    assert ("attention" in {call.kernel for call in runtime.plan("train", (3, 8)).calls}) == fused


def test_a_projection_that_others_read_is_not_turned_in_place():
    """The projection's own numbers go into the loss a second time."""

    class Read(Attention):
        def loss_of(self, tokens, targets):
            p = self.arrays
            packed = linear(embedding(p["table"], tokens), p["w_qkv"])
            q, k, v = split_qkv(packed, n_heads=2, n_kv_heads=1)
            q, k = (rotary(x, **TURN) for x in (q, k))
            k, v = (repeat_heads(x, times=2) for x in (k, v))
            mixed = merge_heads(mix(causal_softmax(attention_scores(q, k)), v))
            return cross_entropy(linear(mixed, p["w_out"], p["gain"]) + matmul(packed, p["w_more"]), targets)

    models = Read(None), Read(None)
    for model in models:
        model.arrays["w_more"] = Tensor(np.linspace(-1, 1, 24 * 6).reshape(24, 6).astype(np.float32), True, "w_more")
    rng = np.random.default_rng(1)
    runtime = assert_step_equal(*models, *rng.integers(0, 6, (2, 3, 8)), kernels_only=False)
    assert "query_key" in {call.kernel for call in runtime.plan("train", (3, 8)).calls}


def assert_greedy(gpt, decoder, prompts, count):
    """Hold a greedy text against NumPy's logits after the same tokens: a tie may be broken by rounding."""
    made = texts(decoder, prompts, count)
    for i, prompt in enumerate(prompts):
        text = list(prompt)
        for drawn, logits in zip(made[:, i], next_logits(gpt, text, count, decoder.weights.name), strict=True):
            assert logits[drawn] >= logits.max() - apart(logits, decoder.weights), len(text) - len(prompt)
            text.append(int(drawn))
        assert_close(logits_of(decoder)[i], logits, decoder.weights)


@settings(max_examples=10)
@given(
    chosen=attentions(), length=st.integers(1, 20), streams=st.integers(1, 3), threads=st.integers(1, 3),
    weights=st.sampled_from([kind.name for kind in PANELS]), seed=st.integers(0, 1000),
)  # fmt: skip
def test_generation_is_the_tapes_over_three_windows(chosen, length, streams, threads, weights, seed):
    gpt, _ = two_models(seed, **chosen, seq_len=11)
    prompts = np.random.default_rng(seed).integers(0, 19, (streams, length))
    decoder = LoopsDecoder(gpt, streams, threads, weights=weights)
    assert_greedy(gpt, decoder, prompts.tolist(), 35)


@pytest.mark.parametrize("window", [None, 1, 100, 129])
@pytest.mark.parametrize("length", [1, 100, 140])
def test_a_ring_holds_the_last_places_of_a_prompt(window, length):
    """A window of 129 places in a room of 144; prompts shorter and longer than attention's window and seq_len."""
    gpt, _ = two_models(**LLAMA, seq_len=129, attention_window=window)
    prompt = np.random.default_rng(0).integers(0, 19, length).tolist()
    decoder = LoopsDecoder(gpt, threads=2)
    assert_greedy(gpt, decoder, [prompt], 40)
    places = rounded_up(min(length, 129) - 1, gpt.config.cached)
    assert list(decoder._filling) == ([(places, False, False)] if length > 1 else [])


def test_a_window_that_slides_never_fills_the_cache_again():
    gpt, _ = two_models(**LLAMA, seq_len=8)
    decoder = LoopsDecoder(gpt, threads=1)
    fills = []
    fill = decoder.fill
    decoder.fill = lambda *arguments: (fills.append(1), fill(*arguments))
    assert len(texts(decoder, [[1, 2]], 500)) == 500
    assert len(fills) == 1


def test_a_prompt_and_the_same_tokens_drawn_give_the_same_logits():
    """Positions from a table in filling, computed one by one in decoding: the cache is the same to rounding."""
    gpt, _ = two_models(**LLAMA, qk_norm=True, seq_len=64)
    decoder = LoopsDecoder(gpt, threads=2)
    text = texts(decoder, [[1, 2]], 50)[:, 0].tolist()
    logits = logits_of(decoder).copy()
    texts(decoder, [[1, 2, *text[:-1]]], 1)
    np.testing.assert_allclose(logits_of(decoder), logits, rtol=0, atol=1e-5 * np.abs(logits).max())


@pytest.mark.parametrize("scaling", [None, Scaling("yarn", 4.0, 100, 1.0, 4.0, 1.5)])
@pytest.mark.parametrize("base", [10000.0, 1e6, 50.0])
@pytest.mark.parametrize("position", [0, 1, 3, 4, 5, 1023, 123_457, 10**7 + 1, 2**31 - 1])
def test_angles_are_exact_at_any_position(position, base, scaling):
    """Within float32's rounding of the cosine and sine of the true angle, which a float32 could not hold."""
    pairs, memory = 16, np.zeros(128, np.float32)
    words = memory.view(np.int32)
    words[0], words[16:48], memory[1] = position, phases_of(base, 2 * pairs, scaling).ravel(), magnitude(scaling)
    run_kernel("angles_at", memory, position=0, turns=16, scale=1, angles=64, rows=1, pairs=pairs)
    angles = np.longdouble(position) * np.array(frequencies(base, 2 * pairs, scaling), np.longdouble)
    for start, function in ((64, np.cos), (64 + pairs, np.sin)):
        due = (magnitude(scaling) * function(angles)).astype(float)
        np.testing.assert_allclose(memory[start : start + pairs], due, rtol=0, atol=4e-8 * magnitude(scaling))


def test_what_goes_into_a_cache_changed_is_no_chain():
    """Keys that are no projection's own, normalised or rotated ones: attention's kernels would store others."""

    def chain(factor):
        def loss(tokens, position):
            def change(q, k, v, g):
                kept = [Tensor(np.zeros((1, 1, 5, 6), np.float32), True) for _ in range(2)]
                k = k if factor == 1 else k * np.float32(factor)
                return q, *(extend_cache(old, new, position) for old, new in zip(kept, (k, v), strict=True))

            return Attention(change).loss_of(tokens, np.zeros(tokens.shape, int))

        graph = record(loss, tokens=np.zeros((1, 5), np.int64), position=np.zeros(1, np.int64))
        (merge,) = (node for node in graph.nodes if node.equation.name == "merge_heads")
        rules = [rule for stage in ("fill", "decode") for rule in rules_of(stage) if rule.name == "attention"]
        return [bool(rule.match(merge, graph)) for rule in rules]

    assert chain(1) == [True, True]
    assert chain(2) == [False, False]


@pytest.mark.parametrize("architecture", [{}, LLAMA, {**LLAMA, "qk_norm": True, "activation": "swiglu"}], ids=len)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_estimate_is_the_arena_that_the_plan_takes(architecture, threads):
    fast, _ = two_models(**architecture, seq_len=8)
    session = LoopsSession(fast, bh.AdamW(), threads=threads)
    session.plan("train", (4, 8))
    regions, request = session.arena.regions, Request("train", fast.config, threads=threads)
    working = LoopsRuntime().working_bytes(request, (4, 8))
    assert session.arena.memory.nbytes == 4 * (regions.gradients + regions.size) + working
