"""What a server asks of streams: scored prompts, likeliest tokens, penalties by count, biases; in any company."""

import math
from dataclasses import replace

import numpy as np
import pytest

from byhand.engine import no_grad
from byhand.errors import ConfigError, DataError
from byhand.generation import Engine, Full, Sampling, Stream
from byhand.model import TinyGPT
from byhand.runtimes import streams as streams_module
from byhand.runtimes.protocol import Request
from byhand.runtimes.sampling import draw
from model_cases import MIXED
from runtimes.registered import NAMES, REFERENCE, SUITED, able
from runtimes.test_family import model_of
from runtimes.test_streams import LEARNED, engine, model

LONG = replace(LEARNED, seq_len=40, positions="rotary", n_kv_heads=2)
ADAPTED = replace(LONG, lora=2)
RUNTIMES = [pytest.param(name, marks=() if name in SUITED else pytest.mark.slow) for name in NAMES]
EXACT = [name for name in NAMES if name in ("numpy", "loops")]


def scores_of(gpt, tokens):
    """ln p (T, V) after each of the tokens, in float64."""
    wide = TinyGPT(gpt.config, arrays={n: p.data.astype(float) for n, p in gpt.parameters().items()})
    with no_grad():
        z = wide.forward_logits([tokens]).data[0]
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def random_stream(seed):
    rng = np.random.default_rng(seed)
    sampling = Sampling(
        float(rng.choice([0, 0.7, 1.5])), *(None if rng.random() < 0.6 else v for v in (7, 0.9)), seed=seed,
        repetition_penalty=float(rng.choice([1, 1.2])), frequency_penalty=float(rng.choice([0, 0, 1.1])),
        presence_penalty=float(rng.choice([0, 0, -0.5])),
        logit_bias=((3, 1.5), (5, -100.0)) if rng.random() < 0.3 else (),
    )  # fmt: skip
    tokens = rng.integers(0, 23, int(rng.integers(1, 30))).tolist()
    allowed = np.arange(23) % 5 != 2 if rng.random() < 0.3 else None
    return Stream(
        tokens, int(rng.integers(1, 20)), sampling, allowed, scored=rng.random() < 0.7, top=int(rng.choice([0, 2])),
        prompt_scored=rng.random() < 0.4, stop=frozenset([7] if rng.random() < 0.3 else ()),
    )  # fmt: skip


def told(stream):
    return (
        stream.drawn, stream.logprobs, stream.tops, stream.prompt_logprobs, stream.prompt_tops, str(stream.ended),
        stream.status,
    )  # fmt: skip


@pytest.fixture
def short_pieces(monkeypatch):
    monkeypatch.setattr(streams_module, "PIECE", 8)
    monkeypatch.setattr(streams_module, "SCORED_PIECE", 4)


@pytest.mark.parametrize("runtime", NAMES)
def test_tokens_drawn_by_hand_are_the_references(runtime):
    sampling = Sampling(
        1.3, 9, seed=5, repetition_penalty=1.2, frequency_penalty=1.5, presence_penalty=0.5, logit_bias=((4, 3.0),)
    )
    given = [Stream([1, 2, 3], 6, replace(sampling, seed=seed), scored=True, top=3) for seed in range(4)]
    given.append(Stream([4, 5], 6, Sampling(0.9, seed=3)))  # drawn by the plan beside them
    able(Request("generate", LEARNED, runtime))
    for stream in engine("learned", runtime, 3).finish(given[:4]):
        rng, tokens = np.random.default_rng(stream.sampling.seed), [1, 2, 3]
        for token, logp, top in zip(stream.drawn, stream.logprobs, stream.tops, strict=True):
            z = model("learned").forward_logits([tokens]).data[0, -1]
            assert token == draw(z, stream.sampling, rng, None, tokens, tokens[3:])
            expected = scores_of(model("learned"), tokens)[-1]
            assert logp == pytest.approx(expected[token], abs=1e-4)
            assert [i for i, _ in top] == np.argsort(-expected)[:3].tolist()
            assert dict(top).get(token, logp) == logp
            tokens.append(token)
    (beside,) = engine("learned", runtime, 3).finish(given[4:])
    again = [replace(s, tokens=s.tokens[: s.prompt], status="waiting", logprobs=[], tops=[]) for s in given]
    assert [s.drawn for s in engine("learned", runtime, 3).finish(again)][4] == beside.drawn


@pytest.mark.parametrize(
    "config", [LEARNED, LONG, ADAPTED, replace(LONG, **MIXED)], ids=["gpt2", "llama", "lora", "mixed"]
)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_scores_of_a_prompt_are_those_of_a_forward_pass(config, runtime, short_pieces):
    gpt = model_of(config, 2.0)
    able(Request("generate", config, runtime))
    tokens = np.random.default_rng(1).integers(0, 23, config.seq_len).tolist()
    expected, two = scores_of(gpt.merged(), tokens), Engine(gpt, 2, runtime=runtime)
    given = [Stream(tokens, 0, prompt_scored=True, top=2), Stream(tokens[:3], 2, prompt_scored=True)]
    for stream in two.finish(given):
        n = stream.prompt - 1
        np.testing.assert_allclose(stream.prompt_logprobs, expected[range(n), tokens[1 : n + 1]], rtol=0, atol=1e-5)
    assert [s.status for s in given] == ["finished"] * 2
    assert [len(s.drawn) for s in given] == [0, 2]
    for top, row in zip(given[0].prompt_tops, expected[:-1], strict=True):
        assert [i for i, _ in top] == np.argsort(-row)[:2].tolist()


@pytest.mark.parametrize("runtime", EXACT)
def test_a_stream_is_to_the_bit_what_it_is_alone(runtime, short_pieces):
    """Streams with settings of their own that join and leave."""
    gpt = model_of(LONG, 20.0)
    able(Request("generate", LONG, runtime))
    one, many, count = Engine(gpt, 1, runtime=runtime), Engine(gpt, 5, runtime=runtime), 24
    alone = [told(next(one.finish([random_stream(seed)]))) for seed in range(count)]
    assert [told(s) for s in many.finish(map(random_stream, range(count)))] == alone
    assert {each[-1] for each in alone} == {"finished"}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_long_prompt_is_read_in_pieces_beside_others_and_can_be_cancelled(runtime, short_pieces):
    able(Request("generate", LONG, runtime))
    two = Engine(model_of(LONG, 2.0), 2, runtime=runtime)
    short, long = two.submit(Stream([1], 30)), Stream(list(range(20)) * 2, 5, keeps=True)
    two.step(1)
    two.submit(long)
    for _ in range(2):
        two.step(1)
    assert (len(short.drawn), long.drawn, two.decoder.reading) == (3, [], {1: 16})
    two.cancel(long)
    two.step(1)
    assert (len(short.drawn), list(two.running)) == (4, [0])
    rest = two.submit(Stream(long.tokens, 1, keeps=True))  # goes on behind the pieces that were read
    while rest.status != "finished":
        two.step(1)
    assert (rest.reused, len(rest.drawn)) == (16, 1)


def test_the_token_that_ends_a_stream_is_told():
    first = Stream([1, 2], 4, Sampling(0.0), scored=True, top=1)
    list(engine("learned", REFERENCE, 3).finish([first]))
    again = Stream([1, 2], 4, Sampling(0.0), scored=True, top=1, stop=frozenset(first.tokens[-1:]))
    plain = Stream([1, 2], 4, Sampling(0.0), stop=again.stop)
    list(engine("learned", REFERENCE, 3).finish([again, plain]))
    at = first.drawn.index(first.tokens[-1])
    assert again.ended == (first.tokens[-1], first.logprobs[at], first.tops[at])
    assert (again.drawn, again.logprobs) == (first.drawn[:at], first.logprobs[:at])
    assert plain.ended[0] == again.ended[0]
    assert math.isnan(plain.ended[1])
    assert first.ended is None


def test_a_prompt_whose_logits_are_not_finite_fails_alone():
    gpt = model_of(LEARNED, 2.0)
    gpt.parameters()["wte"].data[9] = np.nan
    two = Engine(gpt, 2, runtime=REFERENCE)
    sick, well = (Stream(tokens, 0, prompt_scored=True) for tokens in ([1, 9, 2], [1, 2, 3]))
    for stream in map(two.submit, (sick, well)):
        while stream.status in ("queued", "running"):
            two.step()
    assert (sick.status, well.status) == ("failed", "finished")


def test_a_queue_may_be_bounded_and_what_cannot_be_scored_is_refused():
    two = Engine(TinyGPT(LEARNED), 2, runtime=REFERENCE, queue=1)
    first = two.submit(Stream([1], 2))
    with pytest.raises(Full, match="1 texts wait already"):
        two.submit(Stream([1], 2))
    two.cancel(first)
    two.submit(Stream([1], 2))
    for stream, error, said in (
        (Stream([1] * 11, 0, prompt_scored=True), DataError, "11 tokens, but seq_len is 10"),
        (Stream([1], 1, Sampling(logit_bias=((23, 1.0),))), DataError, "logit_bias names the token 23"),
    ):
        with pytest.raises(error, match=said):
            two.submit(stream)
    with pytest.raises(ConfigError, match="without the causal mask"):
        Engine(TinyGPT(replace(LEARNED, causal=False)), runtime=REFERENCE).submit(
            Stream([1, 2], 0, prompt_scored=True)
        )
    for settings in ({"frequency_penalty": 2.1}, {"presence_penalty": math.nan}, {"logit_bias": ((-1, 1.0),)}):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            Sampling(**settings)
