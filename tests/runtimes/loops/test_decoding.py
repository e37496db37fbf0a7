"""What is the plan's own in generation: parts on threads, the faster of two ways, packed weights, interrupts."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import byhand as bh
from byhand.equations import mul
from byhand.errors import ConfigError
from byhand.formats.names import NATIVE, Dtype, Multiplied, Weights
from byhand.formats.registry import FORMATS
from byhand.generation import generate
from byhand.layers.norm import LayerNorm
from byhand.runtimes.loops.kernels.formats.contract import PANELS, PRODUCTS, kernel_of
from byhand.runtimes.loops.kernels.linear import packed_weights
from byhand.runtimes.loops.run import decoding
from byhand.runtimes.loops.run.autotune import Autotuner
from byhand.runtimes.loops.run.decoding import ALONE, TOGETHER, LoopsDecoder
from byhand.runtimes.loops.run.replay import ready_for
from byhand.runtimes.numpy.decoder import next_logits
from interrupts import at_every_point
from model_cases import BIASLESS
from runtimes.loops.arrays import apart, assert_close, logits_of
from runtimes.test_decoding import GREEDY, of
from runtimes.texts import texts


@pytest.mark.parametrize("settings", [{"norm_affine": True}, BIASLESS], ids=str)
@pytest.mark.parametrize("streams", [1, 9])
def test_one_thread_that_does_all_parts_gets_the_same_bits(streams, settings):
    """Which way is chosen depends on the clock, so neither may change a number."""
    gpt = of(**settings)
    prompts = np.random.default_rng(2).integers(0, 37, (streams, 6))
    logits = []
    for way in (TOGETHER, ALONE):
        decoder = LoopsDecoder(gpt, slots=streams, threads=3)
        decoder.autotuner = Always(way)
        texts(decoder, prompts, 15)
        logits.append(logits_of(decoder).copy())
        assert decoder.made_by == {(3, 1)[way]: 15}
    assert logits[0].tobytes() == logits[1].tobytes()


class Always(Autotuner):
    """Never tries anything."""

    def __init__(self, way):
        super().__init__(2)
        self.way = way

    def choose(self):
        return self.way

    fastest = for_other_work = property(choose)


def test_the_faster_way_is_used_and_the_other_tried_again():
    """Way 1 is faster, until way 0 is: the clock moves by what is noted."""
    autotuner, used = Autotuner(2), []
    for piece in range(2000):
        way = autotuner.choose()
        used.append(way)
        autotuner.note(way, 10, (2.0, 1.0)[way] if piece < 1000 else (0.5, 1.0)[way])
    assert used[:2] == [0, 1]
    assert 3 <= used[:1000].count(0) <= 27  # each loses 1 s, of a thousand
    assert used[1000:].count(1) <= 200


def test_a_way_that_lost_its_core_is_back_soon():
    """Tokens of 10 ms, 17 in way 1, while another program runs 40 in way 0: then way 0 makes most within a second."""
    autotuner, took = Autotuner(2), {True: (0.04, 0.017), False: (0.01, 0.017)}
    lost = made = clock = 0.0
    while clock < 30:
        busy = 10 < clock < 20
        way = autotuner.choose()
        units = autotuner.units(way, 4)
        seconds = units * took[busy][way]
        autotuner.note(way, units, seconds)
        clock += seconds
        made += units * min(took[busy])
        lost = clock - made
    assert lost < 0.06 * clock
    assert autotuner.units(1 - autotuner.fastest, 99) == 1


def test_trials_are_rare_while_nothing_changes():
    """Tokens of 7 ms, 12 in way 1: trials of it take less than 1 %, and none is given up for good."""
    autotuner, made, alone = Autotuner(2), 0, 0
    while made < 2000:
        way = autotuner.choose()
        units = autotuner.units(way, 4)
        autotuner.note(way, units, units * (0.007, 0.012)[way])
        made, alone = made + units, alone + units * way
    assert 0.004 * made < alone < 0.01 * made


def test_one_slow_piece_changes_nothing_and_two_do():
    """Way 0 is the faster one; another program takes the processor for a piece, then for good."""
    autotuner = Autotuner(2)
    for way, seconds in ((0, 1.0), (1, 1.5), (0, 1.0), (0, 1.0), (0, 5.0)):
        autotuner.note(way, 1, seconds)
    assert autotuner.choose() == 0
    autotuner.note(0, 1, 5.0)
    assert autotuner.choose() == 1


@pytest.mark.parametrize(("seconds", "way"), [((), 0), ((1.0, 0.9), 0), ((1.0, 0.4), 1), ((0.4, 1.0), 0)])
def test_other_work_is_shared_out_unless_that_is_clearly_slower(seconds, way):
    """One token bound by the memory takes as long with one thread; a prompt, bound by arithmetic, twice as long."""
    autotuner = Autotuner(2)
    for tried, took in enumerate(seconds):
        autotuner.note(tried, 1, took)
    assert autotuner.for_other_work == way


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ConfigError, match="causal float32"):
        LoopsDecoder(of(causal=False))
    with pytest.raises(ConfigError, match="--runtime numpy"):
        list(generate(bh.TinyGPT(bh.ModelConfig(), dtype="float64"), [1], 3, runtime="loops"))


@pytest.mark.parametrize(
    ("settings", "streams"),
    [
        ({}, 9),
        ({"tied_embeddings": True}, 1),
        ({"norm_affine": True, "activation": "relu"}, 3),
        ({"d_ff": 7, "d_model": 18, "n_heads": 3}, 1),
        (BIASLESS, 9),
        ({"activation": "swiglu", "mlp_bias": False}, 3),
        ({"activation": "gelu_exact"}, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("weights", [kind.name for kind in PANELS if not kind.native])
def test_narrow_weights_are_the_rounded_model(weights, settings, streams, monkeypatch):
    """Parts of words, packed in pieces, against NumPy with rounded weights; 33 logits, odd."""
    monkeypatch.setattr(packed_weights, "STAGED", 1 << 8)
    gpt, kind = of(vocab_size=33, **settings), FORMATS[weights]
    prompts = np.random.default_rng(2).integers(0, 33, (streams, 6))
    decoder = LoopsDecoder(gpt, slots=streams, threads=2, weights=weights)
    assert {c.kernel for c in decoder.decoding.calls if "row_product" in c.kernel} == {kernel_of("row_product", kind)}
    together = texts(decoder, prompts, 1)
    logits = np.array([next(next_logits(gpt, prompt.tolist(), 1, weights)) for prompt in prompts])
    assert_close(logits_of(decoder), logits, kind, 1e-5)
    best = np.take_along_axis(logits, together[0][:, None], axis=-1)
    assert (best >= logits.max(axis=-1, keepdims=True) - apart(logits, kind, 1e-5)).all()


def test_settings_offer_the_formats_that_kernels_compute_with():
    assert {*get_args(Weights)} == {kind.name for kind in PANELS}
    assert (
        {*get_args(Multiplied)} - {"float32"}
        == {kind.name for kind in PRODUCTS if not kind.native}
        == {*get_args(Dtype)} - {*NATIVE}
    )
    with pytest.raises(ConfigError, match="reads no weights of float16"):
        LoopsDecoder(of(), weights="float16")


def test_without_a_cache_auto_says_what_it_takes():
    gpt = of()
    text = generate(gpt, [1], 3, GREEDY, use_cache=False)
    assert (text.runtime, "KV cache" in text.why) == ("numpy", True)
    assert list(text) == list(generate(gpt, [1], 3, GREEDY))
    assert [(t.runtime, t.why) for t in (generate(gpt, [1], 3), generate(gpt, [1], 3, runtime="numpy"))] == [
        ("loops", ""),
        ("numpy", ""),
    ]
    assert "causal float32" in generate(of(causal=False), [1], 3).why


class Doubled(LayerNorm):
    """Applies an equation that no kernel of decoding computes, between the stream and the LM head."""

    def apply(self, p, x, name):
        return mul(super().apply(p, x, name), np.float32(2))


def test_a_model_with_an_equation_without_a_kernel_is_generated_too():
    gpt = bh.TinyGPT(bh.ModelConfig(vocab_size=37, seq_len=24, d_model=24, n_heads=2), seed=3)
    gpt.layers = replace(gpt.layers, norm=Doubled(gpt.config))
    for _ in range(2):
        text = generate(gpt, [1, 2], 8, GREEDY)
        assert (text.runtime, text.why) == ("loops", "")
        assert list(text) == list(generate(gpt, [1, 2], 8, GREEDY, runtime="numpy"))


def test_an_interrupt_anywhere_in_a_text_spoils_no_later_one():
    gpt, prompt = of(), [1, 2, 3, 4]
    expected = list(generate(gpt, prompt, 3, GREEDY, runtime="numpy"))
    decoder = LoopsDecoder(gpt, threads=3)
    decoder.autotuner = Always(TOGETHER)

    def run():
        return texts(decoder, [prompt], 3)[:, 0].tolist()

    points = 0
    for point in at_every_point(run, "loops/run/decoding.py", "loops/run/runner.py", "loops/run/thread_team.py"):
        points += 1
        assert run() == expected, point
    assert points > 50


@pytest.mark.parametrize("settings", [{}, {"norm_affine": True, "activation": "relu"}, BIASLESS], ids=str)
@pytest.mark.parametrize("weights", [kind.name for kind in PANELS])
@pytest.mark.parametrize("prompt", [[1], [1, 2], list(range(30))], ids=len)
def test_a_text_compiles_its_kernels_in_one_round(settings, weights, prompt, monkeypatch):
    rounds, known = [], set()

    def recorded(tables):
        tables = list(tables)
        names = {int(code) for table in tables for code in table[:, 0] if code >= 0}
        rounds.append(names - known)
        known.update(names)
        return ready_for(tables)

    monkeypatch.setattr(decoding, "ready_for", recorded)
    list(generate(of(**settings), prompt, 3, runtime="loops", weights=weights))
    assert [bool(new) for new in rounds] == [True, *[False] * (len(rounds) - 1)]
