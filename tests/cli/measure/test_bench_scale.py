"""`byhand bench scale`: the fit, what belongs to a part, and what is printed and drawn."""

import json
from functools import cache

import numpy as np
import pytest

from byhand.bench import scaling
from byhand.bench.scaling import StepPart, Sweep
from byhand.bench.shapes import Shape
from byhand.cli.main import main
from needs import MATPLOTLIB, needs_loops, needs_matplotlib


def small(threads):
    blocks = StepPart("its blocks", scaling.in_a_block)
    window = (
        StepPart("attention", scaling.is_attention),
        StepPart("the rest", lambda call: not scaling.is_attention(call)),
    )
    return (
        Sweep("batch", Shape(2, 8, 12, 1, 3, 17), (2, 4), (StepPart("a token", a_token=True),)),
        Sweep("n_layers", Shape(2, 8, 12, 1, 3, 17), (1, 2, 4), (StepPart("the step"), blocks)),
        Sweep("seq_len", Shape(2, 64, 12, 1, 3, 17), (64, 128), window),
    )


def test_the_exponent_of_a_power_is_its_power():
    sizes = [4, 8, 32]
    assert scaling.exponent(sizes, [3 * n**1.75 for n in sizes]) == pytest.approx(1.75)
    assert scaling.exponent(sizes, [7.0, 7.0, 7.0]) == pytest.approx(0, abs=1e-12)


@needs_loops
def test_operations_grow_as_counted_by_hand():
    curves = {c.part: c for c in scaling.measure(threads=1, tables=small(1))}
    assert curves["its blocks"].operations_exponent == pytest.approx(1)
    assert curves["the step"].operations_exponent < 1, "head and embeddings are there whatever the layers"
    # Each ROWS queries see the keys up to their own, T (T + ROWS) / 2 of them over the window.
    from byhand.runtimes.loops.kernels.vector.vector_moves import ROWS

    more = 128 * (128 + ROWS) / (64 * (64 + ROWS))
    assert curves["attention"].operations_exponent == pytest.approx(np.log2(more))
    assert curves["the rest"].operations_exponent == pytest.approx(1, abs=0.05), "only the update is not a token's"
    assert all(cost > 0 for c in curves.values() for cost in c.costs)
    assert curves["the step"].costs[2] > curves["its blocks"].costs[0]


@needs_loops
def test_table_json_and_picture(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(scaling, "sweeps", small)
    monkeypatch.setattr(scaling, "measure", cache(scaling.measure))
    picture = tmp_path / "scale.svg"
    plot = ["--plot", str(picture)] if MATPLOTLIB else []
    assert main(["bench", "scale", "--threads", "1", "--json", *plot]) == 0
    curves = json.loads(capsys.readouterr().out)["curves"]
    assert [c["part"] for c in curves] == ["a token", "the step", "its blocks", "attention", "the rest"]
    assert [c["sizes"] for c in curves][3] == [64, 128]
    if MATPLOTLIB:
        assert "window T" in picture.read_text(encoding="utf-8")
        again = tmp_path / "again.svg"
        from byhand.cli.measure.bench_scale import draw

        draw([scaling.Curve(**c) for c in curves], again)
        assert again.read_bytes() == picture.read_bytes(), "a picture depends on its numbers alone"
    assert main(["bench", "scale", "--threads", "1"]) == 0
    assert "exponent" in capsys.readouterr().out


@needs_matplotlib
@pytest.mark.parametrize("path", ["scale.jpg", "nowhere/scale.svg"])
def test_a_picture_that_cannot_be_written_is_refused_before_the_work(path, capsys, tmp_path):
    assert main(["bench", "scale", "--plot", str(tmp_path / path)]) == 2
    assert "--plot" in capsys.readouterr().err
