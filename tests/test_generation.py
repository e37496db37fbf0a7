"""Generation: the cache changes nothing but the cost, and sampling draws what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.config import ModelConfig
from byhand.engine import no_grad
from byhand.errors import ConfigError, DataError, ShapeError
from byhand.generation import Engine, Stream, generate
from byhand.model import TinyGPT
from byhand.runtimes.sampling import Sampling, draw
from interrupts import at_every_point
from runtimes.registered import NAMES, SUITED

SETTINGS = [
    {},
    {"n_heads": 2, "norm_affine": True},
    {"norm_position": "post", "activation": "relu", "n_heads": 4},
    {"tied_embeddings": True, "lm_head_bias": False, "n_layers": 3},
]


def model(dtype: str = "float64", **settings) -> TinyGPT:
    """A model whose weights are large enough for its choices to differ."""
    config = ModelConfig(**{"vocab_size": 17, "seq_len": 12, "d_model": 8, "n_layers": 2, **settings})
    made = TinyGPT(config, seed=3, dtype=dtype)
    for name, p in made.parameters().items():
        p.data = p.data * (60 if name == "wpe" else 12)
    return made


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("chunks", [[12], [1] * 12, [5, 1, 1, 5], [3, 9]])
def test_logits_with_a_cache_are_those_of_the_whole_context(settings, chunks):
    gpt, rng = model(**settings), np.random.default_rng(0)
    tokens = rng.integers(0, 17, (3, 12))
    cache = gpt.cache(3, 12)
    with no_grad():
        whole = gpt.forward_logits(tokens).data
        start = 0
        for n in chunks:
            logits, cache = gpt.decode(tokens[:, start : start + n], cache)
            np.testing.assert_allclose(logits.data, whole[:, start : start + n], rtol=0, atol=1e-12)
            start += n
    assert cache.length.tolist() == [12] * 3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("length", [0, 1, 12, 120])
def test_greedy_text_is_the_same_with_and_without_a_cache(settings, length, dtype):
    """Also past the window: 30 tokens are generated, and it holds 12."""
    gpt = model(dtype, **settings)
    prompt = np.random.default_rng(length).integers(0, 17, length).tolist()
    greedy = Sampling(temperature=0)
    cached = list(generate(gpt, prompt, 30, greedy))
    assert cached == list(generate(gpt, prompt, 30, greedy, use_cache=False))
    assert len(cached) == 30


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_models_of_these_tests_do_not_say_the_same_whatever_they_are_told(settings):
    gpt = model(**settings)
    told = [list(generate(gpt, [t], 8, Sampling(temperature=0))) for t in range(17)]
    assert len({tuple(text) for text in told}) >= 3


def test_past_the_window_the_context_is_the_last_tokens_at_positions_from_0():
    gpt = model()
    prompt = np.random.default_rng(1).integers(0, 17, 40).tolist()
    tokens = list(prompt)
    for token in generate(gpt, prompt, 5, Sampling(temperature=0)):
        with no_grad():
            logits = gpt.forward_logits([tokens[-12:]]).data[0, -1]
        assert token == int(np.argmax(logits))
        tokens.append(token)


def test_the_cache_holds_the_model_s_precision():
    for dtype in ("float32", "float64"):
        gpt = model(dtype)
        with no_grad():
            logits, cache = gpt.decode([[1, 2]], gpt.cache(1, 2))
        assert {str(kept.dtype) for pair in cache.blocks for kept in pair} == {str(logits.dtype)} == {dtype}


def test_the_same_seed_draws_the_same_text_and_another_another():
    gpt = model()

    def text(seed: int) -> list[int]:
        return list(generate(gpt, [1], 20, Sampling(seed=seed)))

    assert text(5) == text(5)
    assert text(5) != text(6)


def test_without_causal_mask_the_whole_context_is_computed_each_time():
    gpt = model(causal=False)
    assert len(list(generate(gpt, [1, 2], 5, Sampling(temperature=0)))) == 5


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12), st.floats(0.3, 3), st.integers(0, 2**32))
def test_draws_follow_the_probabilities(logits, temperature, seed):
    """The inverse CDF in id order: the drawn id is where the uniform number falls."""
    z = np.array(logits)
    p = np.exp(z / temperature - (z / temperature).max())
    p /= p.sum()
    u = np.random.default_rng(seed).random()
    drawn = draw(z, Sampling(temperature), np.random.default_rng(seed))
    assert p[:drawn].sum() <= u + 1e-9
    assert u <= p[: drawn + 1].sum() + 1e-9


@pytest.mark.parametrize("k", [1, 2, 5])
def test_top_k_draws_from_the_k_likeliest_alone(k):
    z = np.array([0.1, 2.0, 2.0, -1.0, 1.5, 0.3])
    rng = np.random.default_rng(0)
    drawn = {draw(z, Sampling(2.0, top_k=k), rng) for _ in range(400)}
    assert drawn == set([1, 2, 4, 5, 0][:k])


def test_min_p_keeps_those_near_the_likeliest():
    rng = np.random.default_rng(0)
    z = np.log([0.5, 0.25, 0.2, 0.05])
    assert {draw(z, Sampling(min_p=0.45), rng) for _ in range(300)} == {0, 1}
    assert {draw(z, Sampling(top_p=0.6, min_p=0.3), rng) for _ in range(300)} == {0, 1}
    assert {draw(z, Sampling(top_p=0.9, min_p=0.6), rng) for _ in range(50)} == {0}
    assert {draw(z, Sampling(min_p=0.0), rng) for _ in range(600)} == {0, 1, 2, 3}


def test_a_penalty_is_on_what_the_text_has_also_where_the_likeliest_is_taken():
    z = np.array([3.0, 2.0, -1.0, -1.5])
    greedy = Sampling(0.0, repetition_penalty=2.0)
    assert [draw(z, greedy, 0.0, tokens=tokens) for tokens in ([], [0], [0, 1], [1, 0, 0])] == [0, 1, 0, 0]
    only = np.array([False, False, True, True])
    assert [draw(z, greedy, 0.0, only, tokens) for tokens in ([0], [2], [2, 3])] == [2, 3, 2]


def test_top_p_keeps_the_fewest_that_reach_p():
    z = np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    rng = np.random.default_rng(0)
    assert {draw(z, Sampling(top_p=0.7), rng) for _ in range(300)} == {0, 1}
    assert {draw(z, Sampling(top_p=0.01), rng) for _ in range(50)} == {0}
    assert {draw(z, Sampling(top_p=1.0), rng) for _ in range(600)} == {0, 1, 2, 3}


def test_greedy_takes_the_smallest_of_equal_ids():
    assert draw(np.array([0.0, 3.0, 3.0]), Sampling(temperature=0), np.random.default_rng(0)) == 1


def test_only_allowed_ids_are_drawn():
    allowed = np.array([False, True, False, True])
    rng = np.random.default_rng(0)
    assert {draw(np.zeros(4), Sampling(top_k=3), rng, allowed) for _ in range(100)} == {1, 3}
    assert draw(np.array([9.0, 0, 0, 1]), Sampling(temperature=0), rng, allowed) == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"temperature": 1e39},
        {"top_k": 0},
        {"top_p": 0},
        {"top_p": 1.1},
        {"seed": -1},
        {"min_p": -0.1},
        {"min_p": 1.1},
        {"repetition_penalty": 0},
        {"repetition_penalty": float("nan")},
    ],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(ConfigError):
        Sampling(**settings)


def test_a_cache_passes_gradients_back():
    """Token by token, the derivative of the last logits is that of the whole pass."""
    gpt, tokens = model(), [[1, 2, 3]]
    gradients = []
    for chunks in ([3], [1, 1, 1]):
        gpt.zero_grad()
        cache, start = gpt.cache(1, 3), 0
        for n in chunks:
            logits, cache = gpt.decode([tokens[0][start : start + n]], cache)
            start += n
        d = np.zeros(logits.shape)
        d[0, -1, 5] = 1.0
        logits.backward(d)
        gradients.append({name: p.grad for name, p in gpt.parameters().items()})
    for name, gradient in gradients[0].items():
        np.testing.assert_allclose(gradients[1][name], gradient, rtol=0, atol=1e-10, err_msg=name)


def test_a_cache_without_room_says_so():
    gpt = model()
    with pytest.raises(DataError, match=r"room for 2 positions, not for 3. Use grown_to\(3\)"):
        gpt.decode([[1, 2, 3]], gpt.cache(1, 2))


def test_a_cache_needs_the_causal_mask():
    gpt = model(causal=False)
    with pytest.raises(DataError, match="a KV cache is for causal models"):
        gpt.cache()


def test_allowing_nothing_is_an_error():
    with pytest.raises(ConfigError, match="no token is allowed"):
        draw(np.zeros(3), Sampling(), np.random.default_rng(0), np.zeros(3, bool))


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"weights": "int3"}, ConfigError, "weights is 'int3'. Use one of float32, bfloat16, q8_0, q4_0."),
        ({"max_new_tokens": 2.5}, ConfigError, "max_new_tokens is 2.5, but must be an integer of 0 or more."),
        ({"prompt": "12"}, DataError, "the prompt is a str. Pass token ids:"),
        ({"prompt": [1.5]}, DataError, "the prompt's tokens must be integers, not float64."),
        ({"prompt": [99]}, DataError, "the prompt's tokens hold the id 99, but the vocabulary has ids 0 to 16."),
        ({"prompt": None}, DataError, "the prompt's tokens must be integers"),
        ({"prompt": [[1, 2]]}, DataError, "the prompt's tokens must have the shape"),
        ({"allowed": [True]}, ShapeError, "allowed has the shape (1,), but must be (17,)."),
    ],
    ids=str,
)
def test_other_arguments_are_one_line(settings, kind, said):
    with pytest.raises(kind) as error:
        generate(model(), **{"prompt": [1], "max_new_tokens": 2, **settings})
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_a_prompt_is_any_sequence_of_ids():
    texts = [list(generate(model(), prompt, 5)) for prompt in ([1, 2], (1, 2), np.array([1, 2]), b"\1\2")]
    assert all(text == texts[0] for text in texts)


def test_a_stream_is_in_one_engine():
    first, second = (Engine(model(), runtime="numpy") for _ in range(2))
    stream = first.submit(Stream([1], 3))
    for status in ("queued", "running"):
        with pytest.raises(DataError, match=f"the stream is {status} already. Make another one."):
            second.submit(stream)
        first.step(1)
    assert second.step() == []
    assert len(stream.drawn) == 2


def begun(engine):
    """Three streams in an engine of two slots, of which it has drawn a token each from the first two."""
    given = [engine.submit(Stream([1, 2], 13, Sampling(seed=seed))) for seed in range(3)]
    engine.step(1)
    return given


def texts(gpt):
    return [list(generate(gpt, [1, 2], 13, Sampling(seed=seed), runtime="numpy")) for seed in range(3)]


def goes_on(engine, given, expected):
    """All get their texts after an error, with one that comes later, and no slot is lost."""
    later = Stream([1, 2], 13, Sampling(seed=0))
    list(engine.finish([later]))
    assert (engine.running, list(engine.waiting)) == ({}, [])
    assert [stream.drawn for stream in (*given, later)] == [*expected, expected[0]]


@pytest.mark.parametrize("runtime", NAMES)
def test_an_error_in_a_step_lets_its_streams_wait_again(runtime, monkeypatch):
    engine = Engine(model("float32"), 2, runtime=runtime)
    expected = [s.drawn for s in engine.finish([Stream([1, 2], 13, Sampling(seed=seed)) for seed in range(3)])]
    for advance in (lambda most: None, engine.decoder.step):

        def step(most, advance=advance):
            advance(most)
            raise KeyboardInterrupt

        given = begun(engine)
        with monkeypatch.context() as patch:
            patch.setattr(engine.decoder, "step", step)
            with pytest.raises(KeyboardInterrupt):
                engine.step(1)
        assert ([stream.status for stream in given], engine.running) == (["queued"] * 3, {})
        goes_on(engine, given, expected)


def test_an_interrupt_at_any_line_of_the_decoder_loses_nothing():
    gpt, given = model("float32"), []
    expected, engine = texts(gpt), Engine(gpt, 2, runtime="numpy")

    def begin():
        given[:] = begun(engine)

    places = at_every_point(engine.step, "numpy/decoder.py", every=3, begin=begin)
    assert len([goes_on(engine, given, expected) for _ in places]) > 10


def test_an_error_of_the_one_who_takes_tokens_changes_no_draw():
    """At any token, the last included; of a run of tokens drawn at once some are taken, some are drawn again."""
    gpt = model("float32")
    (expected, *_) = texts(gpt)
    for at in range(1, 14):
        due, engine = iter([*[False] * (at - 1), True]), Engine(gpt, runtime=SUITED[0])

        def until(token, due=due):
            if next(due, False):
                raise KeyboardInterrupt

        stream = engine.submit(Stream([1, 2], 13, Sampling(seed=0), until=until))
        with pytest.raises(KeyboardInterrupt):
            list(engine.finish([Stream([1], 20)]))
        assert list(engine.finish([Stream([1], 1)]))
        assert (stream.status, stream.drawn) == ("finished", expected)


def test_a_stream_whose_window_slid_ends_with_an_error_in_a_step(monkeypatch):
    engine = Engine(model("float32", positions="rotary", n_heads=2), 2, runtime="numpy")
    given = begun(engine)
    while len(given[0].tokens) < 13:
        engine.step(1)
    short = Stream([1], 3)
    engine.cancel(given[1])
    engine.cancel(given[2])
    engine.submit(short)
    engine.step(1)
    with monkeypatch.context() as patch:
        patch.setattr(engine.decoder, "step", lambda most: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.step()
    assert (given[0].status, short.status) == ("interrupted", "queued")
    with pytest.raises(DataError, match="the stream is interrupted already"):
        engine.submit(given[0])
