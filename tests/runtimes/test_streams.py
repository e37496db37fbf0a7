"""The law of streams: each gets the text that it would get alone, whatever its companions, on every runtime."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.errors import ConfigError, DataError, NonFiniteError
from byhand.generation import Engine, Sampling, StopText, Stream, generate
from byhand.model import TinyGPT
from byhand.runtimes.protocol import Request
from model_cases import MIXED
from runtimes.registered import NAMES, REFERENCE, SUITED, able
from runtimes.test_family import model_of

WINDOW = 10
LEARNED = ModelConfig(vocab_size=23, seq_len=WINDOW, d_model=16, n_layers=2, n_heads=4)
KINDS = {
    "learned": LEARNED,
    "rotary": replace(LEARNED, positions="rotary"),
    "grouped": replace(LEARNED, positions="rotary", n_kv_heads=2, attention_window=4),
    "mixed": replace(LEARNED, **MIXED, n_kv_heads=2),
    "learned, grouped, window": replace(LEARNED, n_kv_heads=1, attention_window=4),
}
APART = ("learned", "grouped")  # contexts that begin anew, and rings
ALLOWED = np.arange(23) % 5 != 2


def streams():
    """Prompts shorter and longer than the window, settings of their own, lengths from 1 to three windows."""
    settings = [
        (Sampling(0.0), None), (Sampling(0.9, seed=3), None), (Sampling(1.2, top_k=5, seed=4), ALLOWED),
        (Sampling(0.8, top_p=0.8, seed=3), None), (Sampling(0.0), ALLOWED), (Sampling(1.0, 7, 0.9, 11), None),
        (Sampling(0.9, seed=3), None), (Sampling(2.0, seed=1, min_p=0.05, repetition_penalty=1.3), None),
    ]  # fmt: skip
    lengths = [3, 1, 14, 10, 9, 2, 5, 25]
    counts = [30, 7, 1, 12, 25, 31, 4, 16]
    rng = np.random.default_rng(0)
    return [
        Stream(rng.integers(0, 23, length).tolist(), count, sampling, allowed)
        for length, count, (sampling, allowed) in zip(lengths, counts, settings, strict=True)
    ]


@cache
def model(kind):
    return model_of(KINDS[kind], 20.0)


@cache
def alone(kind):
    """The reference's text of each."""
    return [
        list(generate(model(kind), s.tokens, s.count, s.sampling, allowed=s.allowed, runtime=REFERENCE))
        for s in streams()
    ]


@cache
def engine(kind, runtime, slots):
    """A runtime's engine of so many slots: the same one for several tests, as XLA compiles it for seconds."""
    able(Request("generate", KINDS[kind], runtime))
    return Engine(model(kind), slots, runtime=runtime)


def held(kind, slots, runtime):
    """Whether the quick suite has this case: XLA compiles each kind and each number of slots for seconds."""
    return (slots == 3 or kind == "learned") if runtime in SUITED else (slots == 3 and kind in APART)


def each(*slots):
    """Return kinds, numbers of slots and runtimes as parameters."""
    cases = itertools.product(KINDS, slots, NAMES)
    return [pytest.param(*case, marks=() if held(*case) else pytest.mark.slow) for case in cases]


@pytest.mark.parametrize(("kind", "slots", "runtime"), each(1, 3, 8))
def test_streams_that_join_and_leave_get_their_own_texts(kind, slots, runtime):
    assert [s.drawn for s in engine(kind, runtime, slots).finish(streams())] == alone(kind)


@pytest.mark.parametrize(("kind", "slots", "runtime"), each(3))
def test_they_join_and_leave_between_any_two_tokens(kind, slots, runtime):
    """One token a step; a new one every other step; one is cancelled in the middle, and its slot is used again."""
    made, given = engine(kind, runtime, slots), streams()
    late = given[1:]
    made.submit(given[0])
    for step in range(200):
        made.step(1)
        if step % 2 and late:
            made.submit(late.pop(0))
        if len(given[4].drawn) == 5:
            made.cancel(given[4])
        if not late and not made.running and not made.waiting:
            break
    texts = alone(kind)
    assert [s.drawn for s in given] == [*texts[:4], texts[4][:5], *texts[5:]]
    assert {s.status for s in given} == {"finished"}


@pytest.mark.parametrize(("kind", "slots", "runtime"), each(3))
def test_stop_tokens_and_log_probabilities_are_each_streams_own(kind, slots, runtime):
    """ln p is that of the plain softmax over what is allowed, of the reference's logits after the same tokens."""
    given, texts, config = streams(), alone(kind), KINDS[kind]
    for stream, text in zip(given, texts, strict=True):
        stream.stop, stream.scored = frozenset(text[3:4] if stream.count != 12 else ()), stream.count > 10
    for stream, text in zip(engine(kind, runtime, slots).finish(given), texts, strict=True):
        end = text.index(text[3]) if stream.stop else len(text)
        assert stream.drawn == text[:end]
        assert len(stream.logprobs) == (end if stream.scored else 0)
        for i, logprob in enumerate(stream.logprobs):
            whole = Stream([*stream.tokens[: stream.prompt + i]], 1, Sampling(0.0), stream.allowed, scored=True)
            context = whole.tokens if config.slides else whole.tokens[-WINDOW:]
            if stream.prompt + i > WINDOW and config.slides:
                context = context[max(0, stream.prompt - WINDOW) :]
            if len(context) > WINDOW:
                continue  # the reference has no pass of such a length
            z = model(kind).forward_logits([context]).data[0, -1].astype(float)
            kept = z if stream.allowed is None else z[stream.allowed]
            expected = z[stream.drawn[i]] - kept.max() - np.log(np.exp(kept - kept.max()).sum())
            assert logprob == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("runtime", NAMES)
def test_stop_texts_are_each_streams_own(runtime):
    """Bytes of tokens are their ids: a stop text is three tokens of the first stream; the others go on."""
    given, expected = streams(), alone("learned")
    stop = expected[0][9:12]
    first = next(i for i in range(30) if expected[0][i : i + 3] == stop)
    given[0].until = StopText(bytes, [b"\xff", bytes(stop)])
    found = [s.drawn for s in engine("learned", runtime, 3).finish(given)]
    assert found == [expected[0][:first], *expected[1:]]
    assert list(given[0].until.text) == given[0].drawn


@pytest.mark.parametrize("runtime", NAMES)
def test_a_stream_that_fails_fails_alone(runtime):
    """A row of the token table is not finite: only the stream whose prompt has it ends, and no score is computed."""
    model = model_of(LEARNED, 20.0)
    able(Request("generate", model.config, runtime))
    bad = list(generate(model, [1, 2], 12, Sampling(0.0), runtime=REFERENCE))
    token = next(t for t in range(23) if t not in (1, 2, *bad))
    model.parameters()["wte"].data[token] = np.nan
    engine = Engine(model, 2, runtime=runtime)
    sick, well = engine.submit(Stream([3, token], 12, scored=True)), engine.submit(Stream([1, 2], 12, Sampling(0.0)))
    while engine.running or engine.waiting:
        engine.step()
    assert (sick.status, sick.drawn, sick.logprobs) == ("failed", [], [])
    assert (well.status, well.drawn) == ("finished", bad)
    with pytest.raises(NonFiniteError):
        list(engine.finish([Stream([3, token], 12, scored=True)]))


def test_a_stream_that_waits_can_be_cancelled():
    engine = Engine(TinyGPT(LEARNED), runtime=REFERENCE)
    first, second = (engine.submit(Stream([1], 3)) for _ in range(2))
    engine.step(1)
    engine.cancel(second)
    engine.step(1)
    assert not engine.waiting  # nor does it wait for the one that runs to end
    while engine.running or engine.waiting:
        engine.step()
    assert (len(first.drawn), second.drawn, second.status) == (3, [], "finished")


def test_what_cannot_be_continued_is_refused_when_it_is_submitted():
    engine = Engine(TinyGPT(LEARNED), runtime=REFERENCE)
    for stream, error, said in (
        (Stream([99], 3), DataError, "hold the id 99"),
        (Stream([], 3), DataError, "must be integers"),
        (Stream([1], 3, allowed=np.zeros(23, bool)), ConfigError, "no token is allowed"),
        (Stream([1], -1), ConfigError, "count is -1"),
        (Stream([1], 2.5), ConfigError, "count is 2.5"),
    ):
        with pytest.raises(error, match=said):
            engine.submit(stream)
    with pytest.raises(ConfigError, match="slots is 0"):
        Engine(TinyGPT(LEARNED), 0, runtime=REFERENCE)
    running = engine.submit(Stream([1], 3))
    with pytest.raises(DataError, match="queued already"):
        engine.submit(running)
    engine.step(0)
    assert len(running.drawn) == 1
    with pytest.raises(DataError, match="running already"):
        engine.submit(running)
    engine.cancel(running)
    assert engine.step() == []
    assert (engine.running, running.status) == ({}, "finished")


def test_streams_may_begin_with_the_same_list_and_with_arrays():
    first = streams()[1]
    prompt, again = np.array(first.tokens), replace(first, allowed=[1] * 23, scored=True)
    both = [Stream(prompt, first.count, first.sampling), again, replace(first, scored=True)]
    assert [s.drawn for s in Engine(model("learned"), 3, runtime=REFERENCE).finish(both)] == [alone("learned")[1]] * 3
    assert first.drawn == []
    assert again.logprobs == both[2].logprobs


@pytest.mark.parametrize(
    "runtime", [pytest.param(name, marks=() if name in SUITED else pytest.mark.slow) for name in NAMES]
)
def test_an_engine_goes_on_after_an_error(runtime):
    """Also with streams that were left behind, which take their turns among the new ones."""
    gpt, texts = model_of(LEARNED, 20.0), alone("learned")
    able(Request("generate", gpt.config, runtime))
    two, given, whole = Engine(gpt, 2, runtime=runtime), streams(), gpt.parameters()["wte"].data
    gpt.parameters()["wte"].data = whole[:3, :3]
    with pytest.raises(Exception, match=r"shape|size"):
        list(two.finish(given[:3]))
    gpt.parameters()["wte"].data = whole
    assert [s.drawn for s in two.finish(given[4:])] == texts[4:]
    while two.running or two.waiting:
        two.step()
    assert [s.drawn for s in given[:3]] == [*texts[:2], []]
