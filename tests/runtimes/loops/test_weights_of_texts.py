"""An engine without streams reads the weights again when it admits one: packed copies of old ones are not used."""

import numpy as np
import pytest

from byhand.generation import Engine, Stream
from byhand.runtimes.loops.kernels.formats.contract import PACKED
from byhand.runtimes.loops.run.decoding import LoopsDecoder
from runtimes.loops.arrays import logits_of
from runtimes.test_decoding import GREEDY, of
from runtimes.texts import texts


@pytest.mark.parametrize("weights", [kind.name for kind in PACKED])
@pytest.mark.parametrize("name", ["wte", "wpe", "blocks.1.attn.w_qkv", "blocks.0.mlp.b_fc", "lm_head.w", "lm_head.b"])
@pytest.mark.parametrize("in_place", [True, False])
def test_weights_that_change_between_two_texts_are_seen(weights, name, in_place):
    """One number of one array changes."""
    gpt = of.__wrapped__()  # which is not shared: its weights change
    engine = Engine(gpt, weights=weights, runtime="loops")
    list(engine.finish([Stream([1, 2, 3], 20, GREEDY)]))
    p = gpt.parameters()[name]
    changed = p.data.copy()
    changed[(1, 5)[: p.ndim]] += 3.0
    if in_place:
        p.data[...] = changed
    else:
        p.data = changed
    list(engine.finish([Stream([1, 2, 3], 1, GREEDY)]))
    fresh, kept = LoopsDecoder(gpt, weights=weights), engine.decoder
    texts(fresh, [[1, 2, 3]], 1)
    np.testing.assert_array_equal(logits_of(kept), logits_of(fresh))
    for call in kept.decoding.builder.preparations:
        packed = call.operands["packed"]
        mine, theirs = (d.decoding.shares[0].array(packed) for d in (kept, fresh))
        np.testing.assert_array_equal(mine, theirs)
