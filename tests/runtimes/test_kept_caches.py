"""The law of kept caches: a stream that goes on with what another left behind draws as if it had been read anew."""

import itertools

import pytest

from byhand.generation import Engine, Sampling, Stream, generate
from runtimes.registered import NAMES, REFERENCE
from runtimes.test_streams import KINDS, engine, model

TURNS = [
    (0, [1, 5, 7], 2),  # how many tokens of the text before stay, what follows, how many are drawn
    (5, [9, 2], 1),  # it goes on
    (7, [3], 1),  # the end was rendered anew: one token goes
    (3, [8], 2),  # back to the first answer
    (5, [4, 4, 4, 11], 6),  # past the window, which slides
    (11, [6], 2),  # nothing is left that can be used
    (0, [1, 5, 7, 9], 2),
]


def conversation(made, companions):
    """Draw each turn; return the streams, and for each how many positions were filled."""
    text, streams, filled = [], [], []
    for turn, (stays, more, count) in enumerate(TURNS):
        text = [*text[:stays], *more]
        before = made.decoder.filled
        stream = Stream(text, count, Sampling(0.9, seed=turn), keeps=True)
        made.submit(stream)
        made.step(1)
        filled.append(made.decoder.filled - before)  # past a learned window each token fills it again
        while made.running:
            made.step()
        streams.append(stream)
        text = stream.tokens
        assert list(made.finish(companions()))
    return streams, filled


@pytest.mark.parametrize(
    ("kind", "runtime"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] if case[1] == "xla" and case[0] != "rotary" else [])
        for case in itertools.product(KINDS, NAMES)
    ],
)
def test_turns_go_on_with_the_cache_and_draw_what_they_would_draw_anew(kind, runtime):
    made, config = engine(kind, runtime, 3), KINDS[kind]
    made.forget()
    others = [[Stream([2, 3], 4), Stream([4, 4, 4, 4, 4, 4, 4, 4], 3)] for _ in TURNS]
    streams, filled = conversation(made, others.pop)
    held = []
    for stream, positions in zip(streams, filled, strict=True):
        prompt = stream.tokens[: stream.prompt]
        alone = generate(model(kind), prompt, stream.count, stream.sampling, runtime=REFERENCE)
        assert stream.drawn == list(alone)
        alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(held, prompt[:-1], strict=False))
        common = len(list(alike)) if len(prompt) <= config.cached else 0
        if len(prompt) < config.seq_len:
            assert len(prompt) - common - positions in (0, 1)  # the last may be read as drawn ones are
        held = stream.tokens[:-1] if len(stream.tokens) <= config.cached else []


def test_a_stream_that_does_not_keep_reads_and_leaves_nothing():
    made, tokens = Engine(model("learned"), runtime=REFERENCE), [1, 2, 3, 4, 5]
    for keeps, read in ((False, 5), (True, 5), (False, 5), (True, 5), (True, 0)):
        before = made.decoder.filled
        list(made.finish([Stream(tokens, 1, keeps=keeps)]))
        assert made.decoder.filled - before == read


def test_of_several_slots_the_one_that_holds_most_of_a_text_continues_it():
    made = Engine(model("learned"), 2, runtime=REFERENCE)
    first, second = [1, 2, 3, 4, 5], [6, 7, 8, 9]
    list(made.finish([Stream(tokens, 1, keeps=True) for tokens in (first, second)]))
    for tokens in (second, first, second):
        before = made.decoder.filled
        list(made.finish([Stream([*tokens, 11, 12], 1, keeps=True)]))
        assert made.decoder.filled - before <= 3


@pytest.mark.parametrize("runtime", NAMES)
def test_after_an_error_everything_is_read_anew(runtime):
    gpt = model("learned")
    made = engine("learned", runtime, 3)
    made.forget()
    tokens = [1, 2, 3, 4]
    list(made.finish([Stream(tokens, 1, keeps=True)]))
    stream = made.submit(Stream([5], 3, until=lambda token: 1 // 0))
    with pytest.raises(ZeroDivisionError):
        made.step()
    made.cancel(stream)
    before, again = made.decoder.filled, Stream(tokens, 3, keeps=True)
    list(made.finish([again]))
    assert again.drawn == list(generate(gpt, tokens, 3, Sampling(), runtime=REFERENCE))
    assert made.decoder.filled - before >= 3
