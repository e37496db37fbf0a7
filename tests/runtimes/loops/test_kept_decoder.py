"""The decoder that is kept with a model: reused for the next text, with the weights as they are then."""

import gc
import importlib.util
import threading
import weakref

import numpy as np
import pytest

from byhand.generation import generate

if importlib.util.find_spec("numba") is None or importlib.util.find_spec("scipy") is None:
    pytest.skip("the loops runtime needs numba and scipy (extra `fast`)", allow_module_level=True)

from byhand.runtimes.loops.run import kept_decoder
from byhand.runtimes.loops.run.decoding import LoopsDecoder
from runtimes.loops.arrays import logits_of
from runtimes.loops.test_decoding import GREEDY, model


def test_a_second_text_of_a_model_needs_no_new_plans_nor_threads():
    gpt = model()
    list(generate(gpt, [1, 2, 3], 5, GREEDY, runtime="loops"))
    (decoder,) = kept_decoder._kept[gpt].values()
    plans, threads = dict(decoder._filling), threading.active_count()
    first = list(generate(gpt, [1, 2, 3], 5, GREEDY, runtime="loops"))
    assert list(kept_decoder._kept[gpt].values()) == [decoder]
    assert decoder._filling == plans
    assert threading.active_count() == threads
    assert first == list(generate(gpt, [1, 2, 3], 5, GREEDY, runtime="numpy"))


@pytest.mark.parametrize("weights", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["wte", "wpe", "blocks.1.attn.w_qkv", "blocks.0.mlp.b_fc", "lm_head.w", "lm_head.b"])
@pytest.mark.parametrize("in_place", [True, False])
def test_weights_that_change_between_two_texts_are_seen(weights, name, in_place):
    """Packed copies of the old ones would go unnoticed: one number of one array changes."""
    gpt, settings = model(), {"weights": weights, "runtime": "loops"}
    list(generate(gpt, [1, 2, 3], 20, GREEDY, **settings))
    p = gpt.parameters()[name]
    changed = p.data.copy()
    changed[(1, 5)[: p.ndim]] += 3.0
    if in_place:
        p.data[...] = changed
    else:
        p.data = changed
    list(generate(gpt, [1, 2, 3], 1, GREEDY, **settings))
    fresh = LoopsDecoder(gpt, weights=weights)
    list(fresh.generate([[1, 2, 3]], 1, GREEDY))
    kept = kept_decoder._kept[gpt][weights]
    np.testing.assert_array_equal(logits_of(kept), logits_of(fresh))
    table = kept.decoding.preparations
    assert len(table)
    for call in kept.decoding.builder.preparations:
        packed = call.operands["packed"]
        mine, theirs = (d.decoding.shares[0].array(packed) for d in (kept, fresh))
        np.testing.assert_array_equal(mine, theirs)


def test_texts_of_one_model_can_be_drawn_in_turn():
    gpt = model()
    prompts = [1, 2], [30, 4, 9], [7]
    expected = [list(generate(gpt, prompt, 12, GREEDY, runtime="numpy")) for prompt in prompts]
    texts = [generate(gpt, prompt, 12, GREEDY, runtime="loops") for prompt in prompts]
    assert list(zip(*texts, strict=True)) == list(zip(*expected, strict=True))


def test_a_text_that_is_left_in_the_middle_gives_the_decoder_back():
    gpt = model()
    text = generate(gpt, [1], 1000, GREEDY, runtime="loops")
    next(text)
    assert kept_decoder._kept[gpt] == {}
    del text
    gc.collect()
    assert list(kept_decoder._kept[gpt]) == ["float32"]


def test_a_model_that_is_gone_takes_its_decoder_along():
    gpt, others = model(), set(threading.enumerate())
    list(generate(gpt, [1], 3, runtime="loops"))
    threads = set(threading.enumerate()) - others
    assert gpt in kept_decoder._kept
    gone = weakref.ref(gpt)
    del gpt
    gc.collect()
    assert gone() is None
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
