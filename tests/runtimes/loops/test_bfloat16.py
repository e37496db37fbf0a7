"""Products of bfloat16 in the plan: rounding, gradients against rounded halves, curves, in every way to multiply."""

import os
from dataclasses import replace

import numpy as np
import pytest

import byhand as bh
from byhand.config import TrainConfig
from byhand.engine.equation import with_role
from byhand.equations import linear
from byhand.errors import ConfigError
from byhand.formats.registry import FORMATS
from byhand.runtimes.loops.kernels import cross_entropy
from byhand.runtimes.loops.kernels.formats.contract import COPIES, PRODUCTS, number_of, products_in
from byhand.runtimes.loops.machine import processor
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.machine.processor import amx_granted
from byhand.runtimes.loops.run import training
from byhand.runtimes.loops.run.replay import run_kernel
from byhand.runtimes.loops.run.training import LoopsSession
from byhand.runtimes.protocol import to_train
from byhand.runtimes.registry import choose
from runtimes.loops import processors
from runtimes.loops.arrays import gradients_of

BFLOAT16 = FORMATS["bfloat16"]
CONFIG = bh.ModelConfig(vocab_size=23, seq_len=12, d_model=16, n_layers=2, n_heads=2)


def rounded(x):
    """Round to bfloat16 by the definition: the nearer of the two neighbours, to the even one in the middle."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    low = (bits & 0xFFFF0000).view(np.float32).astype(np.float64)
    high = ((bits & 0xFFFF0000) + np.uint32(0x10000)).view(np.float32).astype(np.float64)
    exact = np.asarray(x, np.float64)
    up = np.abs(high - exact) < np.abs(exact - low)
    even = (bits >> 16) & 1 == 0
    tie = np.abs(high - exact) == np.abs(exact - low)
    return np.where(up | (tie & ~even), high, low).astype(np.float32).reshape(np.shape(x))


@pytest.fixture(params=PRODUCTS[BFLOAT16], ids=lambda way: way.kernel or "emulated")
def way(request, monkeypatch):
    """Let sessions multiply in each way that this machine can, whichever is the fastest."""
    can = {
        "tiled_gemm_amx": amx_granted(),
        "tiled_gemm_pairs": KERNELS["tiled_gemm_pairs"].compiles_here,
        "": True,
    }
    if not can[request.param.kernel]:
        pytest.skip(f"this machine has no {request.param.how}")
    monkeypatch.setattr(training, "products_in", lambda format: request.param)
    return request.param


@pytest.mark.parametrize("kind", COPIES, ids=lambda kind: kind.format.name)
def test_rounding_is_to_nearest_even(kind):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(4001) * 10.0 ** rng.integers(-40, 38, 4001)).astype(np.float32)
    ties = np.array([0x3F808000, 0x3F818000, 0xC0008000, 0x00008000, 0x3F807FFF, 0x3F808001], np.uint32)
    special = np.array([0.0, -0.0, np.inf, -np.inf], np.float32)
    x = np.concatenate([x, ties.view(np.float32), special[:2]])
    memory = np.zeros(2 * x.size, np.float32)
    memory[: x.size] = x
    run_kernel("rounded", memory, x=0, copy=x.size, format=number_of(kind), n=x.size)
    np.testing.assert_array_equal(floats(kind, memory[x.size :], x.size), rounded(x))


def floats(kind, words, count):
    """Return the numbers of a copy."""
    return kind.format.floats(words.view(np.uint8)[: kind.format.bytes(count)])


@pytest.mark.parametrize("kind", COPIES, ids=lambda kind: kind.format.name)
def test_what_is_not_finite_stays_visible(kind):
    nan = np.array([0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    memory = np.zeros(16, np.float32)
    memory[:5], memory[5:7] = nan, [np.inf, -np.inf]
    run_kernel("rounded", memory, x=0, copy=8, format=number_of(kind), n=7)
    got = floats(kind, memory[8:], 7)
    assert np.isnan(got[:5]).all()
    np.testing.assert_array_equal(got[5:], [np.inf, -np.inf])


def rounding_halves(monkeypatch):
    """Let NumPy's linear layers round what they multiply, forward and back."""
    forward, vjp = linear.forward, linear.vjp

    def rounded_forward(x, weight, bias=None):
        return forward(rounded(x), rounded(weight), *([] if bias is None else [bias]))

    def rounded_vjp(saved, d_y):
        d_x, d_weight, *_ = vjp(saved, rounded(d_y))
        return (d_x, d_weight, *vjp(saved, d_y)[2:])

    for name, half in (("forward", rounded_forward), ("vjp", rounded_vjp)):
        monkeypatch.setitem(linear.__dict__, name, half)


@pytest.mark.parametrize(
    "settings", [{}, {"tied_embeddings": True, "lm_head_bias": False}, {"activation": "relu", "norm_affine": True},
                 {"norm_position": "post", "causal": False},
                 {"norm": "rms", "norm_affine": True, "activation": "relu_squared", "logit_softcap": 2.0},
                 {"norm": "rms", "attention_bias": "none", "mlp_bias": False, "lm_head_bias": False},
                 {"n_heads": 4, "n_kv_heads": 2, "d_head": 6, "positions": "rotary", "qk_norm": True,
                  "norm_affine": True, "attention_window": 3, "attention_bias": "none"},
                 *({"activation": name} for name in with_role("activation", "gate")),
                 *({"activation": name, "mlp_bias": False} for name in with_role("gate"))]
)  # fmt: skip
@pytest.mark.parametrize("rows", [None, 10], ids=["all logits", "some rows' logits"])
def test_gradients_are_those_of_rounded_halves(settings, rows, way, monkeypatch):
    if rows:
        monkeypatch.setattr(cross_entropy, "VOCABULARY", 10)
        monkeypatch.setattr(cross_entropy, "CHUNK", rows)
    config = replace(CONFIG, **settings)
    rng = np.random.default_rng(3)
    tokens, targets = (rng.integers(0, 23, (4, 12)) for _ in range(2))
    fast = LoopsSession(bh.TinyGPT(config, seed=4), bh.AdamW(), threads=2, dtype="bfloat16")
    loss, _ = fast.step([(tokens, targets)])
    exact = bh.TinyGPT(config, seed=4)
    exact.loss(tokens, targets).backward()
    rounding_halves(monkeypatch)
    model = bh.TinyGPT(config, seed=4)
    expected = model.loss(tokens, targets)
    expected.backward()
    assert abs(loss - expected.item()) < 1e-5
    # A sum that differs in its last bit can round to the other neighbour: so not as close as float32 is.
    near, far = 0.0, 0.0
    for name, got in gradients_of(fast).items():
        ours, theirs = model.parameters()[name].grad, exact.parameters()[name].grad
        if not name.endswith("b_qkv"):  # its key third is zero but for rounding
            near = max(near, np.abs(got - ours).max() / np.abs(ours).max())
            far = max(far, np.abs(got - theirs).max() / np.abs(theirs).max())
    assert near < 4e-3, near
    assert far > 1.5 * near, "nothing was rounded"


def test_losses_stay_close_over_two_hundred_steps(way):
    rng = np.random.default_rng(5)
    text = np.cumsum(rng.integers(0, 3, 400)) % 23
    curves = []
    for dtype in ("float32", "bfloat16"):
        model, adamw = bh.TinyGPT(CONFIG, seed=5), bh.AdamW(lr=3e-3)
        runtime = LoopsSession(model, adamw, threads=2, dtype=dtype)
        order = np.random.default_rng(6)
        losses = []
        for _ in range(200):
            windows = np.stack([text[s : s + 13] for s in order.integers(0, 387, 4)])
            losses.append(runtime.step([(windows[:, :-1], windows[:, 1:])], 1.0)[0])
        curves.append(losses)
        assert all(str(p.dtype) == "float32" for p in model.parameters().values())
        assert all(str(m.dtype) == "float32" for m in adamw.moments["m"].values())
    exact, ours = np.array(curves)
    assert exact[-20:].mean() < exact[:20].mean() - 1, "nothing was learned"
    assert np.abs(exact[-20:].mean() - ours[-20:].mean()) < 0.02


def test_the_same_seed_and_threads_give_the_same_bits(way):
    rng = np.random.default_rng(7)
    tokens, targets = (rng.integers(0, 23, (6, 12)) for _ in range(2))
    for threads in (1, 2, 3):
        found = []
        for _ in range(2):
            session = LoopsSession(bh.TinyGPT(CONFIG, seed=4), bh.AdamW(), threads=threads, dtype="bfloat16")
            losses = [session.step([(tokens, targets)], 1.0).loss for _ in range(5)]
            found.append((losses, {name: p.data.tobytes() for name, p in session.model.parameters().items()}))
        assert found[0] == found[1]


def test_a_batch_of_fewer_rows_than_threads_gives_the_same_loss(way):
    rng = np.random.default_rng(8)
    batch = tuple(rng.integers(0, 23, (1, 12)) for _ in range(2))
    losses = [
        LoopsSession(bh.TinyGPT(CONFIG, seed=4), bh.AdamW(), threads=n, dtype="bfloat16").step([batch]).loss
        for n in (1, 3)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.fixture
def asked(monkeypatch):
    """Forget what the system granted, before and after."""
    amx_granted.cache_clear()
    monkeypatch.setattr(
        processor, "cpu_features", lambda: ("avx512f", "avx512bw", "avx512bf16", "amx-tile", "amx-bf16")
    )
    monkeypatch.setattr(processor, "target", lambda: ("sapphirerapids", ""))
    monkeypatch.setattr(processor.sys, "platform", "linux")
    yield
    amx_granted.cache_clear()


def test_a_system_that_refuses_tiles_is_asked_once(asked, monkeypatch):
    questions = []
    monkeypatch.setattr(processor, "ask_for_tiles", lambda: questions.append(1) or -1)
    ways = [products_in(BFLOAT16) for _ in range(2)]
    assert len(questions) == 1
    assert {way.kernel for way in ways} == {""}
    session = LoopsSession(bh.TinyGPT(CONFIG, seed=4), bh.AdamW(), threads=2, dtype="bfloat16")
    assert "multiplied as float32" in session.description
    assert session.provenance()["blas"] == session.blas.name


def test_one_that_grants_them_gets_tiles_and_says_so(asked, monkeypatch):
    monkeypatch.setattr(processor, "ask_for_tiles", lambda: 0)
    way = products_in(BFLOAT16)
    assert (way.kernel, way.how) == ("tiled_gemm_amx", "AMX tiles")
    session = LoopsSession(bh.TinyGPT(CONFIG, seed=4), bh.AdamW(), threads=2, dtype="bfloat16")
    assert session.description.endswith("bfloat16: AMX tiles")
    assert session.provenance()["blas"].startswith("AMX tiles; ")


def test_pairs_are_multiplied_where_that_is_faster(asked, monkeypatch):
    monkeypatch.setattr(processor, "ask_for_tiles", lambda: -1)
    monkeypatch.setattr(processor, "target", lambda: ("znver4", ""))
    assert products_in(BFLOAT16).kernel == "tiled_gemm_pairs"


def test_where_it_is_not_offered_one_line_says_what_to_do():
    with pytest.raises(ConfigError, match=r"byhand\[fast\].*--dtype float32"):
        choose(to_train(TrainConfig(dtype="bfloat16", runtime="numpy")))


SOME = "rounding or finite"  # the others compile the kernels of whole steps
STEPS = f"{SOME} or same_bits or same_loss"


@pytest.mark.skipif("BYHAND_TEST_WIDTH" in os.environ, reason="this is the run of a smaller processor")
@pytest.mark.parametrize(
    ("name", "some"),
    [("avx2", SOME), *(pytest.param(name, STEPS, marks=pytest.mark.slow) for name in ("avx2", "sse2"))],
)
@pytest.mark.skipif(not processors.X86, reason="it cannot be taken for a smaller one")
def test_smaller_processors_multiply_rounded_numbers(name, some):
    """Some of the tests above in a process that takes this processor for one without products of bfloat16."""
    assert " passed" in processors.run_again(__file__, name, "-k", some)


@pytest.mark.slow
def test_the_curve_is_kept_over_two_thousand_steps():
    config = bh.ModelConfig(vocab_size=256, seq_len=64, d_model=128, n_layers=4, n_heads=4)
    text = np.frombuffer("".join(map(str, range(60_000))).encode(), np.uint8)
    ends = []
    for dtype in ("float32", "bfloat16"):
        runtime = LoopsSession(bh.TinyGPT(config, seed=1), bh.AdamW(lr=1e-3), dtype=dtype)
        order = np.random.default_rng(1)
        losses = []
        for _ in range(2000):
            windows = np.stack([text[s : s + 65] for s in order.integers(0, text.size - 65, 12)]).astype(np.int64)
            losses.append(runtime.step([(windows[:, :-1], windows[:, 1:])], 1.0)[0])
        ends.append(np.mean(losses[-100:]))
    assert abs(ends[0] - ends[1]) < 0.02, ends
