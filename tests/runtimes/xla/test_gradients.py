"""Our vjps, traced and scanned, against NumPy, against JAX's own derivatives, and in every way to keep arrays."""

from dataclasses import replace
from itertools import product

import jax
import numpy as np
import pytest

from byhand.formats.registry import FORMATS
from byhand.layers.block import Block
from byhand.model import TinyGPT
from byhand.runtimes.xla.applying import TraceSettings
from byhand.runtimes.xla.gradients import loss_and_gradients, summed_loss
from runtimes.steps import made
from runtimes.xla.models import FAMILY, OPEN, OTHER, PLAIN, laid_out

VARIANTS = FAMILY | {"open": OPEN}
RECOMPUTE = ("nothing", "cheap", "blocks")
ROUNDING = 1e-5  # of the largest: float32 sums in another order, which differ by processor (4e-6 seen)


def by_tape(model, batch, weight=1.0):
    model.zero_grad()
    loss = model.loss(*batch)
    loss.backward(weight)
    return loss.item(), {name: p.grad for name, p in model.parameters().items()}


def by_xla(model, batch, settings, weight=1.0):
    layout, arrays = laid_out(model)
    traced = jax.jit(
        lambda arrays, batch: loss_and_gradients(layout, arrays, batch, weight / batch[1].size, settings)
    )
    compiled = traced.lower(arrays, int32(batch)).compile()
    loss, found = compiled(arrays, int32(batch))
    return float(loss) / weight, layout.fetched(found), compiled


def int32(batch):
    return tuple(array.astype(np.int32) for array in batch)


def assert_close(found, expected, rtol):
    assert set(found) == set(expected)
    for name, d in expected.items():
        np.testing.assert_allclose(found[name], d, rtol=0, atol=rtol * np.abs(d).max(), err_msg=name)


def of_each(family, *quick):
    """Return a family's models as parameters: those that are named quickly, the others in the slow sweep."""
    return [pytest.param(family[n], id=n, marks=[] if n in quick else pytest.mark.slow) for n in family]


@pytest.mark.parametrize("config", of_each(VARIANTS, "normed", "open"))
def test_they_are_the_tapes_and_what_jax_derives_from_the_forward_pass_alone(config):
    model, [batch] = TinyGPT(config), made(PLAIN, (4, 8))
    layout, arrays = laid_out(model)

    def loss(arrays):
        total, count = summed_loss(layout, arrays, int32(batch), config.seq_len, TraceSettings())
        return 0.5 * total / count

    by_jax, derived = jax.jit(jax.value_and_grad(loss))(arrays)
    by_hand, expected = by_tape(model, batch, 0.5)
    found_loss, found, _ = by_xla(model, batch, TraceSettings(), 0.5)
    assert found_loss == pytest.approx(by_hand, rel=1e-6) == pytest.approx(2 * float(by_jax), rel=1e-6)
    assert_close(found, expected, ROUNDING)
    assert_close(found, layout.fetched(derived), ROUNDING)


def test_what_is_computed_again_changes_no_number_and_saves_memory():
    model, [batch] = TinyGPT(replace(PLAIN, n_layers=6)), made(PLAIN, (16, 8))
    _, expected = by_tape(model, batch)
    work, memory = {}, {}
    for recompute in RECOMPUTE:
        _, found, compiled = by_xla(model, batch, TraceSettings(recompute=recompute))
        assert_close(found, expected, ROUNDING)
        work[recompute] = compiled.cost_analysis()["flops"]
        memory[recompute] = compiled.memory_analysis().temp_size_in_bytes
    assert work["nothing"] < work["cheap"] < work["blocks"]
    assert memory["nothing"] > memory["cheap"] > memory["blocks"]


QUICK = {("other", "nothing"), ("mixed", "cheap"), ("blind", "blocks")}


@pytest.mark.parametrize(
    ("name", "recompute"),
    [pytest.param(*p, marks=[] if p in QUICK else pytest.mark.slow) for p in product(VARIANTS, RECOMPUTE)],
)
def test_attention_by_name_is_the_composite(name, recompute):
    model, [batch] = TinyGPT(VARIANTS[name]), made(PLAIN, (4, 8))
    loss, expected = by_tape(model, batch)
    found_loss, found, _ = by_xla(model, batch, TraceSettings(attention="xla", recompute=recompute))
    assert found_loss == pytest.approx(loss, rel=1e-6)
    assert_close(found, expected, ROUNDING)


def test_logits_in_chunks_are_the_logits():
    settings = TraceSettings(logits=4 * 2 * PLAIN.vocab_size)
    model, [batch] = TinyGPT(OTHER), made(PLAIN, (4, 8))
    loss, expected = by_tape(model, batch)
    found_loss, found, compiled = by_xla(model, batch, settings)
    assert found_loss == pytest.approx(loss, rel=1e-6)
    assert_close(found, expected, ROUNDING)
    assert "f32[32,12]" not in compiled.as_text()


@pytest.mark.parametrize("config", of_each(FAMILY, "other"))
def test_bfloat16_multiplies_bfloat16_and_keeps_float32(config):
    model, [batch] = TinyGPT(config), made(PLAIN, (4, 8))
    loss, expected = by_tape(model, batch)
    found_loss, found, compiled = by_xla(model, batch, TraceSettings(FORMATS["bfloat16"]))
    assert found_loss == pytest.approx(loss, rel=1e-3)
    assert all(d.dtype == np.float32 for d in found.values())
    for name, d in expected.items():
        assert np.linalg.norm(found[name] - d) < 0.1 * np.linalg.norm(d), name
    assert "bf16[" in compiled.as_text()


def test_blocks_of_several_kinds_are_stacked_apart():
    """Two equal blocks, then one with another activation."""
    model, [batch] = TinyGPT(PLAIN), made(PLAIN, (4, 8))
    relu = Block.of(replace(PLAIN, activation="relu"), PLAIN.layer_kinds[0])
    model.layers = replace(model.layers, blocks=(*model.layers.blocks[:2], relu))
    layout, _ = laid_out(model)
    assert [(stack.first, stack.count) for stack in layout.stacks] == [(0, 2), (2, 1)]
    loss, expected = by_tape(model, batch)
    found_loss, found, _ = by_xla(model, batch, TraceSettings())
    assert found_loss == pytest.approx(loss, rel=1e-6)
    assert_close(found, expected, ROUNDING)
