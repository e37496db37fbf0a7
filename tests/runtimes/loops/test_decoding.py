"""Generation by plan: the same tokens as equation by equation, for every setting, stream and way of sampling."""

import importlib.util
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import byhand as bh
from byhand.equations import mul
from byhand.errors import ConfigError, DataError, NonFiniteError
from byhand.generation import Engine, Sampling, Stream, generate
from byhand.layers.norm import LayerNorm

if importlib.util.find_spec("numba") is None or importlib.util.find_spec("scipy") is None:
    pytest.skip("the loops runtime needs numba and scipy (extra `fast`)", allow_module_level=True)

from byhand.formats.names import NATIVE, Dtype, Multiplied, Weights
from byhand.formats.registry import FORMATS
from byhand.runtimes.loops.kernels.formats.contract import OPERANDS, PACKED, kernel_of
from byhand.runtimes.loops.run import decoding
from byhand.runtimes.loops.run.autotune import Autotuner
from byhand.runtimes.loops.run.decoding import ALONE, TOGETHER, LoopsDecoder
from byhand.runtimes.loops.run.replay import ready_for
from interrupts import at_every_point
from model_cases import BIASLESS, each_choice, lacking_kernels
from runtimes.loops.arrays import logits_of
from runtimes.texts import texts

GREEDY = Sampling(temperature=0)


def model(seed=3, **settings):
    config = {"vocab_size": 37, "seq_len": 24, "d_model": 24, "n_layers": 2, "n_heads": 2, **settings}
    made = bh.TinyGPT(bh.ModelConfig(**config), seed=seed)
    rng = np.random.default_rng(seed)
    for p in made.parameters().values():
        p.data = (p.data + 0.3 * rng.standard_normal(p.shape)).astype(np.float32)
    return made


def replayed(gpt, prompt, count, sampling=GREEDY, threads=2, blas="auto"):
    decoder = LoopsDecoder(gpt, threads=threads, blas=blas)
    return texts(decoder, [prompt], count, sampling)[:, 0].tolist()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_heads": 1},
        {"norm_position": "post", "activation": "relu"},
        {"tied_embeddings": True, "lm_head_bias": False},
        {"d_ff": 7, "d_model": 18, "n_heads": 3},
        {"logit_softcap": 2.0, "tied_embeddings": True},
        BIASLESS,
        {"activation": "swiglu", "mlp_bias": False},
        {"activation": "swiglu", "d_ff": 7, "d_model": 18, "n_heads": 3},
        *(chosen for chosen in (*each_choice(), *each_choice(norm_affine=True)) if "causal" not in chosen),
    ],
    ids=str,
)
def test_greedy_text_is_the_numpy_runtimes(settings):
    """60 tokens from 5: through the window of 24, and on past it, where the context moves; by one thread to three."""
    gpt, prompt = model(**settings), [1, 2, 3, 4, 5]
    expected = list(generate(gpt, prompt, 60, GREEDY, runtime="numpy"))
    try:
        found = [replayed(gpt, prompt, 60, threads=threads) for threads in (1, 2, 3)]
    except ConfigError as error:
        assert any(f"generates with {name} " in str(error) for name in lacking_kernels(gpt.config)), error  # noqa: PT017
    else:
        assert found == [expected] * 3


@pytest.mark.parametrize("blas", ["tiles", "scipy"])
@pytest.mark.parametrize(
    "settings", [{}, {"norm_affine": True, "activation": "relu"}, BIASLESS, {"activation": "swiglu"}], ids=str
)
def test_whatever_fills_the_cache_the_text_is_the_same(settings, blas):
    gpt, prompt = model(**settings), [i % 37 for i in range(19)]
    expected = list(generate(gpt, prompt, 20, GREEDY, runtime="numpy"))
    assert replayed(gpt, prompt, 20, blas=blas) == expected


@pytest.mark.parametrize("length", [1, 23, 24, 25, 240])
def test_prompts_of_any_length(length):
    gpt = model()
    prompt = np.random.default_rng(0).integers(0, 37, length).tolist()
    assert replayed(gpt, prompt, 30) == list(generate(gpt, prompt, 30, GREEDY, runtime="numpy"))


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(1.0),
        Sampling(0.7, top_k=1),
        Sampling(0.8, top_k=5, seed=4),
        Sampling(0.8, top_p=0.7),
        Sampling(1.3, top_k=9, top_p=0.5),
        Sampling(1.0, top_k=400, top_p=1.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("settings", [{}, {"logit_softcap": 1.0}], ids=str)
def test_sampled_text_is_the_numpy_runtimes(sampling, settings):
    """The same uniform numbers in the same order; a difference could only come from a draw on the very edge."""
    gpt = model(**settings)
    assert replayed(gpt, [7], 200, sampling) == list(generate(gpt, [7], 200, sampling, runtime="numpy"))


@pytest.mark.parametrize("settings", [{}, {"tied_embeddings": True, "n_heads": 1}, BIASLESS], ids=str)
@pytest.mark.parametrize("streams", [2, 4, 8, 16, 64])
def test_streams_side_by_side_are_the_numpy_runtimes(settings, streams):
    """40 tokens from 6 go past the window of 24."""
    gpt = model(**settings)
    prompts = np.random.default_rng(2).integers(0, 37, (streams, 6))
    decoder = LoopsDecoder(gpt, slots=streams, threads=2)
    together = texts(decoder, prompts, 40)
    for i in {0, 1, streams // 2, streams - 1}:
        assert together[:, i].tolist() == list(generate(gpt, prompts[i], 40, GREEDY, runtime="numpy"))


@pytest.mark.parametrize("settings", [{"norm_affine": True}, BIASLESS], ids=str)
@pytest.mark.parametrize("streams", [1, 9])
def test_one_thread_that_does_all_parts_gets_the_same_bits(streams, settings):
    """Which way is chosen depends on the clock, so neither may change a number."""
    gpt = model(**settings)
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


def test_the_faster_way_is_used_and_the_other_tried_again():
    """Way 1 is faster, until way 0 is: the clock moves by what is noted."""
    autotuner, used = Autotuner(2), []
    for piece in range(2000):
        way = autotuner.choose()
        used.append(way)
        autotuner.note(way, 10, (2.0, 1.0)[way] if piece < 1000 else (0.5, 1.0)[way])
    assert used[:2] == [0, 1]
    assert 3 <= used[:1000].count(0) <= 15
    assert used[1000:].count(1) <= 200


def test_one_slow_piece_changes_nothing_and_two_do():
    """Way 0 is the faster one; another program takes the processor for a piece, then for good."""
    autotuner = Autotuner(2)
    for way, seconds in ((0, 1.0), (1, 1.5), (0, 1.0), (0, 1.0), (0, 5.0)):
        autotuner.note(way, 1, seconds)
    assert autotuner.choose() == 0
    autotuner.note(0, 1, 5.0)
    assert autotuner.choose() == 1


def test_only_allowed_tokens_are_drawn():
    allowed = np.zeros(37, bool)
    allowed[[3, 30]] = True
    drawn = list(generate(model(), [1], 50, Sampling(2.0), allowed=allowed, runtime="loops"))
    assert set(drawn) == {3, 30}


def test_it_streams_and_counts_exactly():
    first = next(generate(model(), [1], 100_000_000, runtime="loops"))
    assert 0 <= first < 37
    assert list(generate(model(), [1], 0, runtime="loops")) == []
    assert len(list(generate(model(), [1], 101, runtime="loops"))) == 101


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ConfigError, match="causal float32"):
        LoopsDecoder(model(causal=False))
    with pytest.raises(ConfigError, match="--runtime numpy"):
        list(generate(bh.TinyGPT(bh.ModelConfig(), dtype="float64"), [1], 3, runtime="loops"))
    with pytest.raises(DataError, match="hold the id 37"):
        list(generate(model(), [37], 3, runtime="loops"))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tied_embeddings": True},
        {"norm_affine": True, "activation": "relu"},
        {"d_ff": 7, "d_model": 18, "n_heads": 3},
        BIASLESS,
        {"activation": "swiglu", "mlp_bias": False},
        {"activation": "gelu_exact"},
    ],
    ids=str,
)
@pytest.mark.parametrize("streams", [1, 3, 9])
@pytest.mark.parametrize("weights", [kind.name for kind in PACKED if not kind.native])
def test_narrow_weights_are_the_rounded_model(weights, settings, streams):
    """Parts of words in the loops against a model whose matrices were rounded before; 33 logits, an odd number."""
    gpt, kind = model(vocab_size=33, **settings), FORMATS[weights]
    arrays = {n: kind.rounded(p.data) if p.ndim > 1 else p.data for n, p in gpt.parameters().items()}
    expected = bh.TinyGPT(gpt.config, arrays=arrays)
    prompts = np.random.default_rng(2).integers(0, 33, (streams, 6))
    decoder = LoopsDecoder(gpt, slots=streams, threads=2, weights=weights)
    assert {c.kernel for c in decoder.decoding.calls if "row_product" in c.kernel} == {kernel_of("row_product", kind)}
    packed = [c.operands["packed"].words for c in decoder.decoding.builder.preparations]
    assert sum(packed) < 0.7 * sum(a.size for n, a in arrays.items() if a.ndim > 1 and n not in ("wte", "wpe"))
    together = texts(decoder, prompts, 1)
    logits = expected.forward_logits(prompts).data[:, -1]
    np.testing.assert_allclose(logits_of(decoder), logits, rtol=0, atol=1e-5 * np.abs(logits).max())
    assert together[0].tolist() == logits.argmax(axis=-1).tolist()
    text = list(generate(expected, prompts[0], 30, GREEDY, runtime="numpy"))
    for runtime in ("numpy", "loops"):
        stream = Stream(prompts[0].tolist(), 30, GREEDY)
        list(Engine(gpt, runtime=runtime, weights=weights).finish([stream]))
        assert stream.drawn == text


def test_settings_offer_the_formats_that_kernels_compute_with():
    assert {*get_args(Weights)} == {kind.name for kind in PACKED}
    assert {*get_args(Multiplied)} - {"float32"} == {kind.name for kind in OPERANDS} == {*get_args(Dtype)} - {*NATIVE}
    with pytest.raises(ConfigError, match="reads no weights of float16"):
        LoopsDecoder(model(), weights="float16")


@pytest.mark.parametrize("allowed", [None, "some"])
@pytest.mark.parametrize(
    ("sampling", "threads"), [(GREEDY, 1), (GREEDY, 3), (Sampling(1.0), 2), (Sampling(0.7, top_k=3, top_p=0.9), 3)]
)
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf])
def test_logits_that_are_not_finite_end_the_text(bad, sampling, threads, allowed):
    gpt = model()
    gpt.parameters()["lm_head.b"].data[30] = bad
    mask = np.ones(37, bool) if allowed else None
    for runtime in ("numpy", "loops"):
        with pytest.raises(NonFiniteError, match="logits are not finite"):
            list(generate(gpt, [1, 2], 9, sampling, runtime=runtime, allowed=mask))
    decoder = LoopsDecoder(gpt, slots=5, threads=threads)
    with pytest.raises(NonFiniteError, match="logits are not finite"):
        texts(decoder, np.ones((5, 3), int), 9, sampling)


@pytest.mark.parametrize("runtime", ["numpy", "loops"])
def test_what_may_not_be_drawn_may_be_anything(runtime):
    """-inf bans an id, and one that is not allowed is never looked at."""
    gpt = model()
    gpt.parameters()["lm_head.b"].data[[3, 4]] = np.nan, -np.inf
    allowed = np.arange(37) != 3
    drawn = set(generate(gpt, [1], 200, Sampling(5.0), runtime=runtime, allowed=allowed))
    assert not drawn & {3, 4}
    assert len(drawn) > 5
    gpt.parameters()["lm_head.b"].data[:] = -np.inf
    with pytest.raises(NonFiniteError, match="logits are not finite"):
        list(generate(gpt, [1], 3, runtime=runtime))


@pytest.mark.parametrize("runtime", ["numpy", "loops"])
def test_what_was_drawn_before_the_logits_went_wrong_is_yielded(runtime):
    """A token table that is not finite in one row: the text ends after that token, whenever it comes."""
    gpt = model()
    whole = list(generate(gpt, [1, 2], 15, Sampling(2.0), runtime="numpy"))
    last = next(i for i in range(4, 15) if whole[i] not in (1, 2, *whole[:i]))
    gpt.parameters()["wte"].data[whole[last]] = np.nan
    text, drawn = generate(gpt, [1, 2], 15, Sampling(2.0), runtime=runtime), []
    with pytest.raises(NonFiniteError):
        drawn.extend(iter(text))
    assert drawn == whole[: last + 1]


def test_loops_without_a_cache_are_refused_and_auto_says_what_it_takes():
    gpt = model()
    with pytest.raises(ConfigError, match="with a KV cache"):
        generate(gpt, [1], 3, use_cache=False, runtime="loops")
    text = generate(gpt, [1], 3, GREEDY, use_cache=False)
    assert (text.runtime, "KV cache" in text.why) == ("numpy", True)
    assert list(text) == list(generate(gpt, [1], 3, GREEDY))
    assert [(t.runtime, t.why) for t in (generate(gpt, [1], 3), generate(gpt, [1], 3, runtime="numpy"))] == [
        ("loops", ""),
        ("numpy", ""),
    ]
    assert "causal float32" in generate(model(causal=False), [1], 3).why


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
    gpt, prompt = model(), [1, 2, 3, 4]
    expected = list(generate(gpt, prompt, 6, GREEDY, runtime="numpy"))
    decoder = LoopsDecoder(gpt, threads=3)
    decoder.autotuner = Always(TOGETHER)

    def run():
        return texts(decoder, [prompt], 6)[:, 0].tolist()

    points = 0
    for point in at_every_point(run, "loops/run/decoding.py", "loops/run/runner.py", "loops/run/thread_team.py"):
        points += 1
        assert run() == expected, point
    assert points > 50


def test_a_decoder_leaves_the_model_as_it_is():
    gpt = model()
    before = {name: p.data for name, p in gpt.parameters().items()}
    list(generate(gpt, [1], 30, GREEDY, runtime="loops", weights="bfloat16"))
    assert all(p.data is before[name] for name, p in gpt.parameters().items())


@pytest.mark.parametrize("settings", [{}, {"norm_affine": True, "activation": "relu"}, BIASLESS], ids=str)
@pytest.mark.parametrize("weights", [kind.name for kind in PACKED])
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
    list(generate(model(**settings), prompt, 3, runtime="loops", weights=weights))
    assert [bool(new) for new in rounds] == [True, *[False] * (len(rounds) - 1)]
