"""Generation by every runtime: the reference's text, for every setting, prompt, number of streams and sampling."""

from functools import cache

import numpy as np
import pytest

import byhand as bh
from byhand.config import ModelConfig
from byhand.errors import ConfigError, DataError, NonFiniteError
from byhand.formats.registry import FORMATS
from byhand.generation import Sampling, Stream, generate
from byhand.runtimes.protocol import Request
from model_cases import BIASLESS, LOCAL, MIXED, each_choice, lacking_kernels
from runtimes.registered import NAMES, OTHERS, REFERENCE, SUITED, able, ways
from runtimes.texts import texts

GREEDY = Sampling(temperature=0)
LLAMA = {
    "positions": "rotary", "n_heads": 4, "n_kv_heads": 2, "norm": "rms", "norm_affine": True,
    "attention_bias": "none", "mlp_bias": False, "lm_head_bias": False,
}  # fmt: skip
QWEN = {  # with a window, and a cap
    "positions": "rotary", "n_heads": 4, "n_kv_heads": 1, "d_head": 6, "rope_pairing": "neighbours",
    "rope_fraction": 0.5, "qk_norm": True, "norm": "rms", "norm_affine": True, "attention_bias": "qkv",
    "attention_window": 3, "logit_softcap": 2.0, "tied_embeddings": True,
}  # fmt: skip
POST = {
    "norm_position": "post", "norm_affine": True, "activation": "relu", "tied_embeddings": True, "lm_head_bias": False
}  # fmt: skip
BLIND = {"positions": "none", "qk_norm": True, "attention_window": 5}
EVERYWHERE = [{}, POST, LLAMA, QWEN, BLIND, MIXED, LOCAL]
CHOICES = [
    {"n_heads": 1}, {"norm_position": "post", "activation": "relu"}, {"tied_embeddings": True, "lm_head_bias": False},
    {"d_ff": 7, "d_model": 18, "n_heads": 3}, {"logit_softcap": 2.0, "tied_embeddings": True}, BIASLESS,
    {"activation": "swiglu", "mlp_bias": False}, {"activation": "swiglu", "d_ff": 7, "d_model": 18, "n_heads": 3},
    *(chosen for chosen in each_choice() if "causal" not in chosen),
]  # fmt: skip
SWEPT = [chosen for chosen in each_choice(norm_affine=True) if "causal" not in chosen]
CASES = [
    pytest.param(settings, *way.values, id=f"{way.id}-{settings}",
                 marks=[] if settings is MIXED or (settings not in SWEPT and way.values[0]["runtime"] in SUITED)
                 else pytest.mark.slow)
    for way in ways({}, {"threads": 1}, {"threads": 3})
    for settings in (*EVERYWHERE, *([*CHOICES, *SWEPT] if "threads" not in way.values[0] else ()))
]  # fmt: skip
THREADS = ways({}, {"threads": 1}, {"threads": 3}, names=NAMES)


@cache
def of(vocab_size=37, **settings):
    """Return a model whose next tokens differ: the same one for all that asks for these settings."""
    config = {"vocab_size": vocab_size, "seq_len": 24, "d_model": 24, "n_layers": 2, "n_heads": 2, **settings}
    made = bh.TinyGPT(ModelConfig(**config), seed=3)
    rng = np.random.default_rng(3)
    for p in made.parameters().values():
        p.data = (p.data + 0.3 * rng.standard_normal(p.shape)).astype(np.float32)
    return made


DECODERS, TEXTS = {}, {}


def decoder(gpt, way, slots=1, **asked):
    """Return a way's decoder of a model: the same one for several tests, as XLA compiles it for seconds."""
    request = Request("generate", gpt.config, streams=slots, **way, **asked)
    runtime, key = able(request), (id(gpt), request)
    if key not in DECODERS:
        DECODERS[key] = runtime.decoder(gpt, request)
    return DECODERS[key]


def text(gpt, prompt, count, sampling=GREEDY, **more):
    """The reference's text, computed once for all who hold theirs against it."""
    key = (id(gpt), tuple(prompt), count, sampling, *more)
    if key not in TEXTS:
        TEXTS[key] = gpt, list(generate(gpt, prompt, count, sampling, runtime=REFERENCE, **more))
    return TEXTS[key][1]


@pytest.mark.parametrize(("settings", "way"), CASES)
def test_greedy_text_is_the_references(settings, way):
    """40 tokens from 5: through the window of 24, and on past it, where the context moves."""
    gpt, prompt = of(**settings), [1, 2, 3, 4, 5]
    try:
        found = texts(decoder(gpt, way), [prompt], 40)
    except ConfigError as error:
        assert any(f"generates with {name} " in str(error) for name in lacking_kernels(gpt.config)), error  # noqa: PT017
    else:
        assert found[:, 0].tolist() == text(gpt, prompt, 40)


PROMPTED = [
    pytest.param(settings, *way.values, id=f"{name}-{way.id}",
                 marks=pytest.mark.slow if way.values[0]["runtime"] == "xla" and name != "qwen" else [])
    for name, settings in (("plain", {}), ("llama", LLAMA), ("qwen", QWEN), ("mixed", MIXED))
    for way in ways({}, {"threads": 2, "blas": "scipy"})
]  # fmt: skip


@pytest.mark.parametrize(("settings", "way"), PROMPTED)
def test_prompts_of_any_length(settings, way):
    """Up to the window, just as long, and longer, one after the other."""
    gpt = of(**settings)
    for length in (1, 19, 23, 240, 24, 25):
        prompt = np.random.default_rng(0).integers(0, 37, length).tolist()
        assert texts(decoder(gpt, way), [prompt], 30)[:, 0].tolist() == text(gpt, prompt, 30), length


SAMPLINGS = [
        Sampling(1.0), Sampling(0.7, top_k=1), Sampling(0.8, top_k=5, seed=4), Sampling(0.8, top_p=0.7),
        Sampling(1.3, top_k=9, top_p=0.5), Sampling(1.0, top_k=400, top_p=1.0), Sampling(0.9, 8, 0.95, 7),
        Sampling(0.9, min_p=0.15, repetition_penalty=1.3), Sampling(1.2, 9, 0.9, 3, 0.1, 0.8),
        Sampling(0.0, repetition_penalty=1.6),
]  # fmt: skip
SAMPLED = [
    pytest.param(name, settings, sampling, id=f"{name}-{settings}-{sampling}",
                 marks=[] if name in SUITED or sampling is SAMPLINGS[-2] else pytest.mark.slow)
    for name in OTHERS for sampling in SAMPLINGS
    for settings in ({}, *([{"logit_softcap": 1.0}] if name in SUITED and sampling is SAMPLINGS[-2] else ()))
]  # fmt: skip


@pytest.mark.parametrize(("runtime", "settings", "sampling"), SAMPLED)
def test_sampled_text_is_the_references(runtime, settings, sampling):
    """The same uniform numbers in the same order; a difference could only come from a draw on the very edge."""
    gpt, allowed = of(**settings), np.arange(37) != 3
    for mask in (allowed, None):
        more = {} if mask is None else {"allowed": mask}
        found = texts(decoder(gpt, {"runtime": runtime}), [[7]], 50, sampling, mask)[:, 0]
        assert found.tolist() == text(gpt, [7], 50, sampling, **more)
        assert mask is None or 3 not in found


@pytest.mark.parametrize(
    ("runtime", "settings", "streams"),
    [
        *((name, settings, streams) for name in SUITED if name != REFERENCE
          for settings, streams in ((BIASLESS, 2), ({"tied_embeddings": True, "n_heads": 1}, 8), ({}, 64))),
        *((name, settings, 3) for name in OTHERS for settings in ((POST, BLIND) if name in SUITED else (BLIND,))),
    ],
    ids=str,
)  # fmt: skip
def test_streams_side_by_side_are_the_references(runtime, settings, streams):
    """40 tokens from 6 go past the window of 24."""
    gpt, prompts = of(**settings), np.random.default_rng(2).integers(0, 37, (streams, 6))
    together = texts(decoder(gpt, {"runtime": runtime}, streams), prompts, 40)
    for i in {0, 1, streams // 2, streams - 1}:
        assert together[:, i].tolist() == text(gpt, prompts[i], 40)


@pytest.mark.parametrize(
    ("runtime", "settings"),
    [(name, settings) for settings in ({}, {"tied_embeddings": True}, BIASLESS, {"activation": "swiglu"})
     for name in (NAMES if not settings else [name for name in SUITED if name != REFERENCE])],
    ids=str,
)  # fmt: skip
def test_text_by_narrow_weights_is_that_of_the_rounded_model(runtime, settings):
    gpt, kind, sampling = of(**settings), FORMATS["bfloat16"], Sampling(2.0)
    arrays = {n: kind.rounded(p.data) if p.ndim > 1 else p.data for n, p in gpt.parameters().items()}
    before = {name: p.data for name, p in gpt.parameters().items()}
    expected = text(bh.TinyGPT(gpt.config, arrays=arrays), [1], 100, sampling)
    made = decoder(gpt, {"runtime": runtime}, weights="bfloat16")
    assert texts(made, [[1]], 100, sampling)[:, 0].tolist() == expected
    assert all(p.data is before[name] for name, p in gpt.parameters().items()), "the model is left as it is"
    assert settings or expected != text(gpt, [1], 100, sampling), "nothing was rounded"


@pytest.mark.parametrize("runtime", NAMES)
def test_tokens_are_counted_exactly(runtime):
    made = decoder(of(), {"runtime": runtime})
    before = sum(made.made_by.values())
    for count in (1, 5, 101):
        assert len(texts(made, [[1]], count)) == count
    assert runtime == REFERENCE or sum(made.made_by.values()) - before == 107
    able(Request("generate", of().config, runtime))
    assert 0 <= next(generate(of(), [1], 100_000_000, runtime=runtime)) < 37
    assert list(generate(of(), [1], 0, runtime=runtime)) == []


@pytest.mark.parametrize("runtime", NAMES)
def test_only_allowed_tokens_are_drawn(runtime):
    drawn = texts(decoder(of(), {"runtime": runtime}), [[1]], 50, Sampling(2.0), np.isin(np.arange(37), (3, 30)))
    assert {*drawn.ravel().tolist()} == {3, 30}


@pytest.fixture
def changed():
    """Return a function that changes some numbers of a model's array as long as the test lasts."""
    kept = []

    def change(gpt, name, index, numbers):
        p = gpt.parameters()[name]
        kept.append((p, p.data))
        p.data = p.data.copy()
        p.data[index] = numbers
        forget()

    def forget():
        for made in DECODERS.values():
            made.stale = True

    yield change
    for p, data in reversed(kept):
        p.data = data
    forget()


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLINGS[-2]], ids=str)
@pytest.mark.parametrize(
    ("way", "slots"),
    [pytest.param(*way.values, slots, id=f"{way.id}-{slots}") for way in THREADS
     for slots in ((1, 5) if way.values[0]["runtime"] in SUITED else (1,))],
)  # fmt: skip
def test_logits_that_are_not_finite_end_the_text(changed, way, sampling, slots):
    gpt = of()
    for bad in (np.nan, -np.nan, np.inf):
        changed(gpt, "lm_head.b", 30, bad)
        for mask in (None, np.ones(37, bool)):
            with pytest.raises(NonFiniteError, match="logits are not finite"):
                texts(decoder(gpt, way, slots), np.ones((slots, 6), int), 9, sampling, mask)


@pytest.mark.parametrize("runtime", NAMES)
def test_what_may_not_be_drawn_may_be_anything(changed, runtime):
    """-inf bans an id, and an id that is not allowed is never read."""
    gpt, way = of(), {"runtime": runtime}
    changed(gpt, "lm_head.b", [3, 4], (np.nan, -np.inf))
    drawn = {*texts(decoder(gpt, way), [[1]], 200, Sampling(5.0), np.arange(37) != 3).ravel().tolist()}
    assert not drawn & {3, 4}
    assert len(drawn) > 5
    changed(gpt, "lm_head.b", slice(None), -np.inf)
    with pytest.raises(NonFiniteError, match="logits are not finite"):
        texts(decoder(gpt, way), [[1]], 3)


@pytest.mark.parametrize("runtime", NAMES)
def test_what_was_drawn_before_the_logits_went_wrong_is_yielded(changed, runtime):
    """A table that is not finite in one row: of the tokens, and the text ends after that one; or of the positions."""
    gpt, made = of(), decoder(of(), {"runtime": runtime})
    whole = text(gpt, [1], 21, Sampling(2.0))
    last = next(i for i in range(4, 15) if whole[i] not in (1, *whole[:i]))
    kept = {name: p.data for name, p in gpt.parameters().items()}
    for table, row, count in (("wpe", 20, 20), ("wte", whole[last], last + 1)):
        changed(gpt, table, row, np.nan)
        stream = Stream([1], 21, Sampling(2.0))
        made.admit(0, stream)
        made.read()
        while stream.status == "waiting":
            made.step(stream.left)
        made.free(0)
        assert (stream.status, stream.drawn) == ("failed", whole[:count])
        gpt.parameters()[table].data = kept[table]


@pytest.mark.parametrize("runtime", OTHERS)
def test_what_it_cannot_do_is_refused(runtime):
    able(Request("generate", of().config, runtime))
    with pytest.raises(ConfigError, match="causal"):
        generate(of(causal=False), [1], 3, runtime=runtime)
    with pytest.raises(ConfigError, match="KV cache"):
        generate(of(), [1], 3, use_cache=False, runtime=runtime)
    with pytest.raises(DataError, match="hold the id 37"):
        list(generate(of(), [37], 3, runtime=runtime))
