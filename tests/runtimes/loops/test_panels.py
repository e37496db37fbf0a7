"""Weights in panels: packed as their format rounds, multiplied row by row, nothing read or written beside them."""

import os

import numpy as np
import pytest

from byhand.formats.blocks import rounded_rows
from byhand.formats.registry import FLOAT32
from byhand.runtimes.loops.kernels.formats.contract import PANELS, kernel_of
from byhand.runtimes.loops.kernels.linear.row_product import EDGE
from byhand.runtimes.loops.kernels.vector.vector_moves import LANES
from byhand.runtimes.loops.run.replay import run_kernel
from runtimes.loops import processors
from runtimes.loops.test_tiles import GAP, Memory

each = pytest.mark.parametrize("format", list(PANELS), ids=lambda kind: kind.name)


def drawn(rng, *shape):
    """Return numbers of many sizes, some columns and blocks zero, some below float16's normal numbers."""
    x = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 2, shape[-1])
    x[rng.random(shape) < 0.1] = 0
    x[:, rng.random(shape[-1]) < 0.1] = 0
    x *= 10.0 ** rng.integers(-5, 2, (shape[0], 1))
    return x.astype(np.float32)


def packed(memory, format, w, transposed=False, piece=0):
    """Pack a weight (inner, width), in pieces of so many numbers of each column; return where it lies."""
    kind, (inner, width) = PANELS[format], w.shape
    at = memory.room(-(-width // LANES) * kind.size(inner))
    step = piece * kind.block if piece and not transposed else inner
    for begin in range(0, inner, step):
        end = min(begin + step, inner)
        source = memory.put(w.T if transposed else w[begin:end])
        run_kernel(
            kernel_of("pack", format), memory.numbers, weight=source, packed=at, inner=inner, width=width,
            transposed=int(transposed), begin=begin, end=end,
        )  # fmt: skip
    return at


@each
@pytest.mark.parametrize("seed", range(4))
def test_a_packed_table_gives_the_numbers_that_its_format_rounds_to(format, seed):
    rng = np.random.default_rng(seed)
    vocab, width = (int(n) for n in rng.integers(1, 90, 2))
    table = drawn(rng, vocab, width)
    memory = Memory(20 * (vocab + LANES) * (width + 40) + 20 * GAP)
    at = packed(memory, format, table.T, transposed=bool(seed % 2), piece=seed % 3)
    tokens, out = memory.put(np.arange(vocab)), memory.room((vocab, width))
    memory.numbers.view(np.int32)[tokens : tokens + vocab] = np.arange(vocab)
    for part in range(3):
        run_kernel(
            f"embed_tokens_packed_{format.name}", memory.numbers, table=at, tokens=tokens, scale=0, out=out,
            rows=vocab, width=width, part=part, parts=3,
        )  # fmt: skip
    np.testing.assert_array_equal(memory.array(out, table.shape), format.rounded(table))


def product(format, x, w, parts=1, **finish):
    """Return x W by the kernel, and hold that it wrote nothing else."""
    kind, (rows, inner), width = PANELS[format], x.shape, w.shape[1]
    scratch = EDGE + rows * -(-inner // kind.block) * kind.left_words
    memory = Memory(x.size + 3 * w.size + 3 * rows * width + 40 * (inner + 40) + scratch + width + 20 * GAP)
    weight, at = packed(memory, format, w), memory.put(x)
    added = {name: memory.put(array) for name, array in finish.items()}
    out = memory.room((rows, width))
    room = memory.end
    before = memory.numbers[:room].copy()
    for part in range(parts):
        run_kernel(
            kernel_of("row_product", format), memory.numbers, x=at, weight=weight, bias=added.get("bias", 0),
            stream=added.get("stream", 0), out=out, rows=rows, inner=inner, width=width, activation=0, scratch=room,
            part=part, parts=parts,
        )  # fmt: skip
    memory.assert_untouched_from(room + scratch)
    found = memory.array(out, (rows, width)).copy()
    memory.array(out, (rows, width))[...] = np.nan
    assert memory.numbers[:room].tobytes() == before.tobytes()
    return found


@each
@pytest.mark.parametrize("seed", range(8))
def test_products_of_any_shape(format, seed):
    """Against float64 products of the rounded numbers; nine rows are a tile of eight and one of one."""
    rng = np.random.default_rng(seed)
    rows, inner, width = (int(rng.integers(1, most)) for most in (20, 100, 150))
    x, w = rng.normal(size=(rows, inner)).astype(np.float32), drawn(rng, inner, width)
    added = {"bias": rng.normal(size=width), "stream": rng.normal(size=(rows, width))}
    added = {name: a.astype(np.float32) for name, a in added.items() if rng.random() < 0.5}
    found = product(format, x, w, int(rng.integers(1, 4)), **added)
    left = (rounded_rows(x) if format.block > 1 else x).astype(float)
    right = format.rounded(w, 0).astype(float)
    size = np.abs(left) @ np.abs(right) + 1
    assert (np.abs(found - left @ right - sum(added.values())) < 1e-6 * size).all()


@each
def test_a_row_does_not_depend_on_what_is_computed_beside_it(format):
    """Nor on the number of threads: the same bits."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(23, 70)).astype(np.float32), rng.normal(size=(70, 200)).astype(np.float32)
    whole = product(format, x, w)
    for rows in (1, 2, 3, 7, 8, 9):
        assert product(format, x[-rows:], w, rows).tobytes() == whole[-rows:].tobytes()


@each
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_visible(format, wrong):
    """In its own row, or its own column, alone."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 40)).astype(np.float32), rng.normal(size=(40, 20)).astype(np.float32)
    x[1, 33] = wrong
    assert np.isfinite(product(format, x, w)).all(axis=1).tolist() == [True, False, True]
    if format.block > 1:
        return  # a scale that overflows is refused where weights are read
    x[1, 33], w[5, 7] = 0, wrong
    assert np.isfinite(product(format, x, w)).all(axis=0).tolist() == [c != 7 for c in range(20)]


@pytest.mark.skipif("BYHAND_TEST_WIDTH" in os.environ, reason="this is the run of another processor")
@pytest.mark.parametrize(
    ("name", "some"),
    [("avx512", "q8_0"), *(pytest.param(name, "", marks=pytest.mark.slow) for name in processors.SMALLER)],
)
def test_another_processor(name, some):
    """The tests above in a process that takes this processor for another, which multiplies integers otherwise."""
    if not processors.X86 or processors.LANES[name] > LANES:
        pytest.skip("this processor cannot be taken for that one")
    assert " passed" in processors.run_again(__file__, name, "-k", some)


def test_float32_is_read_without_rounding():
    x, w = np.eye(3, dtype=np.float32), drawn(np.random.default_rng(0), 3, 30)
    np.testing.assert_array_equal(product(FLOAT32, x, w), w)
