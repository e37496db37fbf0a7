"""The law of streams: each gets the text that it would get alone, whatever its companions, on every runtime."""

from dataclasses import replace

import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.errors import ConfigError, DataError, NonFiniteError
from byhand.generation import Engine, Sampling, Stream, generate
from byhand.model import TinyGPT
from byhand.runtimes.protocol import Request
from runtimes.registered import NAMES, REFERENCE, able
from runtimes.test_family import model_of

WINDOW = 10
LEARNED = ModelConfig(vocab_size=23, seq_len=WINDOW, d_model=16, n_layers=2, n_heads=4)
KINDS = {
    "learned": LEARNED,
    "rotary": replace(LEARNED, positions="rotary"),
    "grouped": replace(LEARNED, positions="rotary", n_kv_heads=2, attention_window=4),
    "learned, grouped, window": replace(LEARNED, n_kv_heads=1, attention_window=4),
}
ALLOWED = np.arange(23) % 5 != 2


def streams():
    """Prompts shorter and longer than the window, settings of their own, lengths from 1 to three windows."""
    settings = [
        (Sampling(0.0), None), (Sampling(0.9, seed=3), None), (Sampling(1.2, top_k=5, seed=4), ALLOWED),
        (Sampling(0.8, top_p=0.8, seed=3), None), (Sampling(0.0), ALLOWED), (Sampling(1.0, 7, 0.9, 11), None),
        (Sampling(0.9, seed=3), None), (Sampling(2.0, seed=1), None),
    ]  # fmt: skip
    lengths = [3, 1, 14, 10, 9, 2, 5, 25]
    counts = [30, 7, 1, 12, 25, 31, 4, 16]
    rng = np.random.default_rng(0)
    return [
        Stream(rng.integers(0, 23, length).tolist(), count, sampling, allowed)
        for length, count, (sampling, allowed) in zip(lengths, counts, settings, strict=True)
    ]


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return model_of(KINDS[request.param], 20.0)


@pytest.fixture(scope="module")
def alone(model):
    """The reference's text of each."""
    return [
        list(generate(model, s.tokens, s.count, s.sampling, allowed=s.allowed, runtime=REFERENCE)) for s in streams()
    ]


@pytest.mark.parametrize("slots", [1, 3, 8])
@pytest.mark.parametrize("runtime", NAMES)
def test_streams_that_join_and_leave_get_their_own_texts(model, alone, runtime, slots):
    able(Request("generate", model.config, runtime))
    engine = Engine(model, slots, runtime=runtime)
    assert [s.drawn for s in engine.finish(streams())] == alone


@pytest.mark.parametrize("runtime", NAMES)
def test_they_join_and_leave_between_any_two_tokens(model, alone, runtime):
    """One token a step; a new one every other step; one is cancelled in the middle, and its slot is used again."""
    able(Request("generate", model.config, runtime))
    engine, given = Engine(model, 3, runtime=runtime), streams()
    late = given[1:]
    engine.submit(given[0])
    for step in range(200):
        engine.step(1)
        if step % 2 and late:
            engine.submit(late.pop(0))
        if len(given[4].drawn) == 5:
            engine.cancel(given[4])
        if not late and not engine.running and not engine.waiting:
            break
    alone = [*alone[:4], alone[4][:5], *alone[5:]]
    assert [s.drawn for s in given] == alone
    assert {s.status for s in given} == {"finished"}


@pytest.mark.parametrize("runtime", NAMES)
def test_stop_tokens_and_log_probabilities_are_each_streams_own(model, alone, runtime):
    """ln p is that of the plain softmax over what is allowed, of the reference's logits after the same tokens."""
    able(Request("generate", model.config, runtime))
    given = streams()
    for stream, text in zip(given, alone, strict=True):
        stream.stop, stream.scored = frozenset(text[3:4]), stream.count > 10
    for stream, text in zip(Engine(model, 4, runtime=runtime).finish(given), alone, strict=True):
        end = text.index(text[3]) if len(text) > 3 else len(text)
        assert stream.drawn == text[:end]
        assert len(stream.logprobs) == (end if stream.scored else 0)
        for i, logprob in enumerate(stream.logprobs):
            whole = Stream([*stream.tokens[: stream.prompt + i]], 1, Sampling(0.0), stream.allowed, scored=True)
            context = whole.tokens if model.config.slides else whole.tokens[-WINDOW:]
            if stream.prompt + i > WINDOW and model.config.slides:
                context = context[max(0, stream.prompt - WINDOW) :]
            if len(context) > WINDOW:
                continue  # the reference has no pass of such a length
            z = model.forward_logits([context]).data[0, -1].astype(float)
            kept = z if stream.allowed is None else z[stream.allowed]
            expected = z[stream.drawn[i]] - kept.max() - np.log(np.exp(kept - kept.max()).sum())
            assert logprob == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("runtime", NAMES)
def test_a_stream_that_fails_fails_alone(runtime):
    """A row of the token table is not finite: only the stream whose prompt has it ends."""
    model = model_of(LEARNED, 20.0)
    able(Request("generate", model.config, runtime))
    bad = list(generate(model, [1, 2], 12, Sampling(0.0), runtime=REFERENCE))
    token = next(t for t in range(23) if t not in (1, 2, *bad))
    model.parameters()["wte"].data[token] = np.nan
    engine = Engine(model, 2, runtime=runtime)
    sick, well = engine.submit(Stream([3, token], 12)), engine.submit(Stream([1, 2], 12, Sampling(0.0)))
    while engine.running or engine.waiting:
        engine.step()
    assert (sick.status, sick.drawn) == ("failed", [])
    assert (well.status, well.drawn) == ("finished", bad)
    with pytest.raises(NonFiniteError):
        list(engine.finish([Stream([3, token], 12)]))


def test_what_cannot_be_continued_is_refused_when_it_is_submitted():
    engine = Engine(TinyGPT(LEARNED), runtime=REFERENCE)
    for stream, error, said in (
        (Stream([99], 3), DataError, "hold the id 99"),
        (Stream([], 3), DataError, "must be integers"),
        (Stream([1], 3, allowed=np.zeros(23, bool)), ConfigError, "no token is allowed"),
    ):
        with pytest.raises(error, match=said):
            engine.submit(stream)
    running = engine.submit(Stream([1], 3))
    engine.step()
    with pytest.raises(DataError, match="running already"):
        engine.submit(running)
    engine.cancel(running)
    assert (engine.running, running.status) == ({}, "finished")
