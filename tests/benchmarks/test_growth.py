"""`benchmarks/growth.py`: the fit, what belongs to a part, and what is drawn."""

import growth
import numpy as np
import pytest

from byhand.bench.shapes import Shape
from needs import MATPLOTLIB, needs_loops

SMALL = Shape(2, 8, 12, 1, 3, 17)
SWEEPS = {"batch": (SMALL, (2, 4)), "n_layers": (SMALL, (1, 2, 4)), "seq_len": (SMALL, (64, 128))}


def test_the_exponent_of_a_power_is_its_power():
    sizes = [4, 8, 32]
    assert growth.exponent(sizes, [3 * n**1.75 for n in sizes]) == pytest.approx(1.75)
    assert growth.exponent(sizes, [7.0, 7.0, 7.0]) == pytest.approx(0, abs=1e-12)


@needs_loops
def test_operations_grow_as_counted_by_hand(tmp_path):
    measured = growth.measure(1, "auto", SWEEPS)
    curves = {c.part: c for c in measured}
    assert list(curves) == ["a token", "the step", "its blocks", "attention", "the rest"]
    assert curves["its blocks"].operations_exponent == pytest.approx(1)
    assert curves["the step"].operations_exponent < 1, "head and embeddings are there whatever the layers"
    # Each ROWS queries see the keys up to their own, T (T + ROWS) / 2 of them over the window.
    from byhand.runtimes.loops.kernels.vector.vector_moves import ROWS

    more = 128 * (128 + ROWS) / (64 * (64 + ROWS))
    assert curves["attention"].operations_exponent == pytest.approx(np.log2(more))
    assert curves["the rest"].operations_exponent == pytest.approx(1, abs=0.05), "only the update is not a token's"
    assert all(cost > 0 for c in curves.values() for cost in c.costs)
    assert curves["the step"].costs[2] > curves["its blocks"].costs[0]
    assert "exponent" in growth.table("batch", measured[:1])
    if MATPLOTLIB:
        pictures = [tmp_path / name for name in ("scale.svg", "again.svg")]
        for picture in pictures:
            growth.draw(measured, picture)
        assert "window T" in pictures[0].read_text(encoding="utf-8")
        assert pictures[0].read_bytes() == pictures[1].read_bytes(), "a picture depends on its numbers alone"
