"""Register tiles: products and attention of any shape against float64, with nothing read or written beside them."""

import os

import numpy as np
import pytest

from byhand.errors import ConfigError
from byhand.formats.registry import FLOAT32, FORMATS
from byhand.runtimes.loops.kernels.attention.causal_self_attention import QUERIES
from byhand.runtimes.loops.kernels.attention.chain import EVERY
from byhand.runtimes.loops.kernels.attention.score_tiles import scratch_of_attention, stride_of
from byhand.runtimes.loops.kernels.products.tiles import BLOCK, TILES
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES, ROWS
from byhand.runtimes.loops.machine.blas import find_blas
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.machine.processor import amx_granted
from byhand.runtimes.loops.run.replay import run_kernel
from runtimes.loops import processors

GAP = 37  # NaN between arrays exposes reads outside an array


class Memory:
    """Arrays in one float32 memory, each between gaps."""

    def __init__(self, size):
        self.numbers = np.full(size, np.nan, np.float32)
        self.end = GAP

    def put(self, array):
        start, flat = self.end, np.ravel(array)
        self.numbers[start : start + flat.size] = flat
        self.end += flat.size + GAP
        return start

    def room(self, shape):
        return self.put(np.full(shape, np.nan, np.float32))

    def array(self, start, shape):
        return self.numbers[start : start + int(np.prod(shape))].reshape(shape)

    def assert_untouched_from(self, end):
        assert np.isnan(self.numbers[end:]).all(), "written beyond the scratch"


PAIRS = KERNELS["tiled_gemm_pairs"].compiles_here
KINDS = [
    "tiled_gemm",
    pytest.param("tiled_gemm_pairs", marks=pytest.mark.skipif(not PAIRS, reason="no AVX512-BF16 here")),
    pytest.param("tiled_gemm_amx", marks=pytest.mark.skipif(not amx_granted(), reason="no AMX here")),
]


def check_product(kernel, rng, m, n, k, ta, tb, adds=False, start=False, bias=False):
    """Rows are longer than necessary, and the gaps must not change."""
    kind = TILES[kernel]
    format = FLOAT32 if kind.words == kind.numbers else FORMATS["bfloat16"]
    a, b = (
        rng.normal(size=(k if ta else m, (m if ta else k) + 4)),
        rng.normal(size=(n if tb else k, (k if tb else n) + 3)),
    )
    c, s, plus = rng.normal(size=(m, n + 5)), float(start) * rng.normal(size=(m, n + 5)), rng.normal(size=n)
    a, b, c, s, plus = (x.astype(np.float32) for x in (a, b, c, s, plus))
    a, b = format.rounded(a), format.rounded(b)
    stored = [as_stored(format, x) for x in (a, b)]
    scratch = kind.scratch(m, n, k, ta, tb)
    memory = Memory(sum(x.size for x in (*stored, c, s, plus)) + 10 * GAP + scratch)
    at_a, at_b, at_c, at_s, at_plus = map(memory.put, (*stored, c, s, plus))
    room = memory.end
    run_kernel(
        kernel, memory.numbers, c=at_c, start=at_s if start else 0, bias=at_plus if bias else 0, a=at_a, b=at_b,
        m=m, n=n, k=k, lda=a.shape[1], ldb=b.shape[1], ldc=c.shape[1], ta=int(ta), tb=int(tb), adds=int(adds),
        scratch=room,
    )  # fmt: skip
    left = a[:, :m].T if ta else a[:, :k]
    right = b[:, :k].T if tb else b[:, :n]
    expected = left.astype(float) @ right.astype(float) + (plus if bias else 0)
    expected += c[:, :n] if adds else s[:, :n] if start else 0
    size = np.abs(left).astype(float) @ np.abs(right).astype(float) + 1
    found = memory.array(at_c, c.shape)
    assert (np.abs(found[:, :n] - expected) < 1e-6 * size + np.spacing(np.float32(np.abs(expected)))).all()
    np.testing.assert_array_equal(found[:, n:], c[:, n:])
    for place, array in zip((at_a, at_b), stored, strict=True):
        np.testing.assert_array_equal(memory.array(place, array.shape).view(np.uint32), array.view(np.uint32))
    memory.assert_untouched_from(room + scratch)


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False)])
def test_a_large_start_costs_the_sum_no_digits(ta, tb):
    check_product("tiled_gemm", np.random.default_rng(3), 2 * ROWS, 3 * LANES, 1500, ta, tb, start=1e4)


def as_stored(format, x):
    """Return an array as words of memory; NaN, not 0, completes the last one."""
    packed = format.packed(x)
    nan = format.packed(np.full(2, np.nan, np.float32))
    return np.concatenate([packed, nan[: -packed.size % 4]]).view(np.float32)


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow if i >= 40 else []) for i in range(150)])
def test_products_of_any_shape(kernel, seed):
    rng = np.random.default_rng(seed)
    m, n, k = (int(rng.integers(1, 100)) for _ in range(3))
    if seed % 3 == 0:  # whole tiles, which are read and written in place
        m, n, k = (32 * int(rng.integers(1, 4)) for _ in range(3))
    ta, tb, adds, start, bias = rng.integers(0, 2, 5).astype(bool)
    check_product(kernel, rng, m, n, k, ta, tb, adds, start and not adds, bias and not ta)


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    ("shape", "adds"),
    [
        ((9, 50, 5), False),  # behind what one pass sums: summed in two
        ((9, 50, 5), True),
        ((40, 1000, 600), True),  # several blocks of B, the last one narrow
        ((BLOCK // 500 + 3, 21, 500), False),  # so tall that in float32 the transposed product is computed instead
    ],
    ids=str,
)
def test_large_products(kernel, shape, ta, tb, adds):
    m, n, k = shape
    check_product(kernel, np.random.default_rng(1), m, n, k + TILES[kernel].depth * (k == 5), ta, tb, adds)


def reference_attention(qkv, d_out, heads, times, causal, window):
    """Return out, weights and d_qkv in float64, and which weights are not 0."""
    batch, steps, _ = qkv.shape
    kv_heads = heads // times
    parts = qkv.astype(float).reshape(batch, steps, heads + 2 * kv_heads, -1).swapaxes(1, 2)
    q, (k, v) = parts[:, :heads], (np.repeat(x, times, axis=1) for x in np.split(parts[:, heads:], 2, axis=1))
    width = q.shape[-1]
    d_o = d_out.astype(float).reshape(batch, steps, heads, width).swapaxes(1, 2)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(width)
    tri = np.tri(steps, dtype=bool)
    seen = tri & ~np.tri(steps, k=-window, dtype=bool) if causal else np.ones((steps, steps), bool)
    scores = np.where(seen, scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    d_p = d_o @ v.swapaxes(2, 3)
    d_s = p * (d_p - (d_p * p).sum(-1, keepdims=True)) / np.sqrt(width)
    grouped = [
        x.reshape(batch, kv_heads, times, steps, width).sum(axis=2)
        for x in (d_s.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ d_o)
    ]
    d_qkv = np.concatenate([d_s @ k, *grouped], axis=1).swapaxes(1, 2).reshape(qkv.shape)
    return (p @ v).swapaxes(1, 2).reshape(batch, steps, -1), p, d_qkv, seen


SEEN = [(0, EVERY), (1, EVERY), (1, 1), (1, 9), (1, 64), (1, 300)]
SHAPES = [
    (1, 1, 1, 1), (2, 3, 5, 3), (1, 2, 8, 16), (2, 1, 9, 20), (1, 2, 31, 33), (1, 1, 33, 48), (1, 2, 64, 32),
    (1, 1, 100, 100), (1, 1, 128, 64), (1, 1, QUERIES, 8), (1, 1, QUERIES + 1, 8), (1, 2, 2 * QUERIES + 70, 5),
]  # fmt: skip
ATTENDED = [  # every sixth in the plain suite: each shape, each window and both groups
    pytest.param(shape, times, *SEEN[(i + k) % 6], marks=[] if k == times else pytest.mark.slow)
    for i, shape in enumerate(SHAPES) for times in (1, 2) for k in range(6)
]  # fmt: skip


@pytest.mark.parametrize(("shape", "times", "causal", "window"), ATTENDED)
def test_attention_of_any_shape(shape, times, causal, window):
    batch, heads, steps, width = shape
    rng = np.random.default_rng(steps)
    heads *= times
    columns = (heads + 2 * (heads // times)) * width
    qkv = rng.normal(size=(batch, steps, columns)).astype(np.float32)
    d_out = rng.normal(size=(batch, steps, heads * width)).astype(np.float32)
    stride, rows = stride_of(steps), -(-steps // ROWS) * ROWS
    room = scratch_of_attention(steps, width)
    memory = Memory(2 * qkv.size + 2 * d_out.size + (batch * heads * rows + QUERIES) * stride + room + 10 * GAP)
    at_qkv, at_d_out = memory.put(qkv), memory.put(d_out)
    at_out, at_d_qkv = memory.room(d_out.shape), memory.room(qkv.shape)
    at_weights, at_d_weights = memory.room((batch, heads, rows, stride)), memory.room((min(QUERIES, rows), stride))
    sizes = {"batch": batch, "heads": heads, "group_size": times, "steps": steps, "width": width, "causal": causal}
    sizes |= {
        "window": window,
        "scale": 0,
        "stride": stride,
        "scratch": memory.end,
        "weights": at_weights,
        "qk": at_qkv,
    }
    sizes |= {"row_qk": columns, "v": at_qkv + columns - heads // times * width, "row_v": columns}
    alone = {"keys": 0, "values": 0, "slot": 0, "places": 0, "kept": 1, "part": 0, "parts": 1}
    run_kernel("attention", memory.numbers, out=at_out, **alone, **sizes)
    run_kernel("attention_back", memory.numbers, d_out=at_d_out, d_weights=at_d_weights, d_qkv=at_d_qkv, **sizes)
    out, weights, d_qkv, seen = reference_attention(qkv, d_out, heads, times, causal, window)
    kept = memory.array(at_weights, (batch, heads, rows, stride))[:, :, :steps, :steps]
    np.testing.assert_allclose(kept[:, :, seen], weights[:, :, seen], atol=2e-6)
    np.testing.assert_allclose(memory.array(at_out, out.shape), out, atol=1e-5)
    np.testing.assert_allclose(memory.array(at_d_qkv, d_qkv.shape), d_qkv, atol=1e-5 * np.abs(d_qkv).max() + 1e-6)
    np.testing.assert_array_equal(memory.array(at_qkv, qkv.shape), qkv)
    np.testing.assert_array_equal(memory.array(at_d_out, d_out.shape), d_out)
    memory.assert_untouched_from(memory.end + room)


@pytest.mark.skipif("BYHAND_TEST_WIDTH" in os.environ, reason="this is the run of another width")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "sse2" else ())
        for name, lanes in processors.LANES.items()
        if processors.X86 and lanes < LANES
    ],
)
def test_vectors_of_another_width(name):
    """The tests above in a process that takes this processor for a smaller one."""
    assert " passed" in processors.run_again(__file__, name)


def test_what_multiplies_is_said_and_chosen():
    tiles, library = find_blas("tiles"), find_blas("scipy")
    assert tiles.tiles
    assert not library.tiles
    assert tiles.name.startswith("register tiles, with ")
    with pytest.raises(ConfigError, match="auto, tiles or scipy"):
        find_blas("best")
