"""`byhand bench fusions`: each variant of a step computes the same, and the table has every fusion."""

import importlib.util
import json

import pytest

if importlib.util.find_spec("numba") is None or importlib.util.find_spec("scipy") is None:
    pytest.skip("the loops runtime needs numba and scipy (extra `fast`)", allow_module_level=True)

import numpy as np

from byhand.bench import fusions
from byhand.bench.shapes import shape_of
from byhand.cli.main import main
from byhand.runtimes.loops.groups import FUSIONS, without

SMALL = shape_of("4,8,12,2,3,17")


@pytest.mark.parametrize("threads", [1, 3])
def test_the_update_in_separate_passes_updates_the_same(threads):
    whole, apart = (fusions.Step(SMALL, threads, "auto") for _ in range(2))
    apart.split_update()
    assert len(apart.plan.calls) > len(whole.plan.calls)
    for _ in range(3):
        assert apart() == pytest.approx(whole(), rel=1e-6)
    for name, p in whole.runtime.model.parameters().items():
        np.testing.assert_allclose(apart.runtime.model.parameters()[name].data, p.data, atol=1e-6)


def test_what_stands_in_for_a_rule():
    assert fusions.Step(SMALL, 1, "auto", rules=without("attention")).instead == "NumPy halves"
    assert fusions.Step(SMALL, 1, "auto", rules=without("linear + gelu")).instead == "kernels"


def test_probabilities_kept_take_memory():
    wide = shape_of("4,8,12,2,3,1024")
    kept = fusions.Step(wide, 1, "auto", rules=without("cross-entropy with its derivative"))
    assert kept.megabytes > fusions.Step(wide, 1, "auto").megabytes


def test_table_and_json(capsys):
    arguments = ["bench", "fusions", "--shape", "4,8,12,2,3,17", "--seconds", "0.1"]
    assert main([*arguments, "--json"]) == 0
    gains = json.loads(capsys.readouterr().out)["gains"]
    assert [g["rule"] for g in gains] == [*(f.name for f in FUSIONS if f.reason), fusions.UPDATE]
    for gain in gains:
        assert gain["ratio"] == gain["ms_without"] / gain["ms"] > 0
    assert main(arguments) == 0
    assert fusions.UPDATE in capsys.readouterr().out
