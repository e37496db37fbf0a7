"""Weights are packed once, and again after `Engine.forget`: packed copies of old ones are not used."""

import numpy as np
import pytest

from byhand.engine.graph.outline import Outline
from byhand.errors import ConfigError
from byhand.generation import Engine, Stream
from byhand.runtimes.loops.kernels.formats.contract import PANELS
from byhand.runtimes.loops.kernels.linear import packed_weights
from byhand.runtimes.loops.run.decoding import LoopsDecoder
from runtimes.loops.arrays import logits_of
from runtimes.test_decoding import GREEDY, of
from runtimes.texts import texts

NAMES = ["wte", "wpe", "blocks.1.attn.w_qkv", "blocks.0.mlp.b_fc", "lm_head.w", "lm_head.b"]


@pytest.mark.parametrize(
    ("weights", "name", "in_place"),
    [(kind.name, name, (i + k) % 2 == 0) for i, kind in enumerate(PANELS) for k, name in enumerate(NAMES)],
)
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
    engine.forget()
    list(engine.finish([Stream([1, 2, 3], 1, GREEDY)]))
    fresh, kept = LoopsDecoder(gpt, weights=weights), engine.decoder
    texts(fresh, [[1, 2, 3]], 1)
    np.testing.assert_array_equal(logits_of(kept), logits_of(fresh))
    for which, buffer in kept.decoding.builder.packed.items():
        mine, theirs = kept.decoding, fresh.decoding
        theirs = theirs.shares[0].array(theirs.builder.packed[which])
        np.testing.assert_array_equal(mine.shares[0].array(buffer), theirs)


@pytest.mark.parametrize("weights", [kind.name for kind in PANELS])
def test_a_model_that_is_the_engines_alone_gives_its_arrays_away(weights):
    """Also where an interrupt comes between two of them, and in another text with prompts of another length."""
    prompts = [[1, 2, 3], list(range(9))]
    due = [texts(LoopsDecoder(of.__wrapped__(), weights=weights), [prompt], 20)[:, 0].tolist() for prompt in prompts]
    gpt = of.__wrapped__()
    engine = Engine(gpt, weights=weights, runtime="loops", moves=True)
    runner, replay = engine.decoder.runner, engine.decoder.runner.replay
    runs = []

    def interrupted(*arguments):
        runs.append(1)
        if len(runs) == 3:
            raise KeyboardInterrupt
        replay(*arguments)

    runner.replay = interrupted
    with pytest.raises(KeyboardInterrupt):
        list(engine.finish([stream := Stream([1, 2, 3], 20, GREEDY)]))
    assert any(isinstance(p.data, Outline) for p in gpt.parameters().values())
    assert not all(isinstance(p.data, Outline) for p in gpt.parameters().values())
    runner.replay = replay
    while stream.status != "finished":
        engine.step()  # it has waited in the engine
    (other,) = engine.finish([Stream(prompts[1], 20, GREEDY)])
    assert [stream.drawn, other.drawn] == due
    assert all(isinstance(p.data, Outline) for p in gpt.parameters().values())
    for runtime in ("loops", "numpy"):  # either would continue with numbers that are not weights
        with pytest.raises(ConfigError, match="Load the model again"):
            Engine(gpt, runtime=runtime)


@pytest.mark.parametrize("weights", [kind.name for kind in PANELS])
@pytest.mark.parametrize("threads", [1, 3])
def test_weights_that_are_packed_in_pieces_are_packed_alike(weights, threads, monkeypatch):
    """Rows of weights stored either way, by threads side by side."""
    gpt = of.__wrapped__(d_model=64, n_heads=4, vocab_size=70, tied_embeddings=True)
    whole = LoopsDecoder(gpt, weights=weights, threads=threads)
    monkeypatch.setattr(packed_weights, "STAGED", 1 << 10)
    split = LoopsDecoder(gpt, weights=weights, threads=threads)
    assert max(map(len, split.decoding.preparations.values())) > 3
    for decoder in (whole, split):
        texts(decoder, [[1, 2, 3]], 1)
    for which, buffer in whole.decoding.builder.packed.items():
        mine = split.decoding.builder.packed[which]
        np.testing.assert_array_equal(
            split.decoding.shares[0].array(mine), whole.decoding.shares[0].array(buffer), err_msg=str(which)
        )
    np.testing.assert_array_equal(logits_of(split), logits_of(whole))
