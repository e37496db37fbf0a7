"""Evaluation predicts every token but the first exactly once, with as much context as the stride leaves."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand.config import ModelConfig
from byhand.corpus.chats import ChatCorpus
from byhand.corpus.dataset import ByteDataset, Corpus
from byhand.engine import no_grad
from byhand.errors import ConfigError, DataError, NonFiniteError
from byhand.evaluate import evaluate, evaluate_chats
from byhand.model import TinyGPT
from byhand.runtimes.numpy.decoder import next_logits
from byhand.runtimes.numpy.session import NumpySession
from byhand.tokenizers.byte import BYTES
from needs import needs_loops
from toy_tokenizers import PairTokenizer

WINDOW = 6
GPT = TinyGPT(ModelConfig(vocab_size=32, seq_len=WINDOW, d_model=8), dtype="float64")
for parameter in GPT.parameters().values():
    parameter.data = parameter.data * 15


def byte_by_byte(tokens: np.ndarray, stride: int) -> float:
    """The definition: each byte from the window that counts it."""
    losses = []
    end, start = 1, 0
    while end < len(tokens):
        if end > WINDOW:
            # the window that ends with the next `stride` bytes, or with the text
            last = min(end + stride - 1, len(tokens) - 1)
            start = last - WINDOW
        else:
            last = end
            start = 0
        for target in range(end, last + 1):
            with no_grad():
                logits = GPT.forward_logits([tokens[start:target].tolist()]).data[0, -1]
            losses.append(math.log(np.exp(logits).sum()) - logits[tokens[target]])
        end = last + 1
    assert len(losses) == len(tokens) - 1
    return sum(losses) / len(losses)


@pytest.mark.parametrize("length", [2, 6, 7, 8, 13, 61])
@pytest.mark.parametrize("stride", [1, 3, 6])
def test_against_the_definition(length, stride):
    tokens = np.random.default_rng(length).integers(0, 32, length).astype(np.uint8)
    result = evaluate(GPT, ByteDataset(tokens), stride)
    assert result.tokens == length - 1
    assert result.loss == pytest.approx(byte_by_byte(tokens, stride), abs=1e-12)
    assert result.bpb == result.loss / math.log(2)
    assert result.bytes == length - 1


def test_the_default_stride_is_half_a_window_and_is_stated():
    assert evaluate(GPT, ByteDataset(np.arange(30, dtype=np.uint8))).stride == 3


def test_a_long_context_is_read_in_windows_of_1024_unless_another_is_asked_for():
    model = TinyGPT(replace(GPT.config, seq_len=4096, positions="rotary"))
    text = ByteDataset(np.arange(2000, dtype=np.uint16) % 32)
    found, asked = evaluate(model, text), evaluate(model, text, window=1024)
    assert (found.window, found.stride) == (1024, 512)
    assert found == asked
    assert evaluate(model, text, window=64).stride == 32
    with pytest.raises(ConfigError, match="window is 5000, but must be from 1 to seq_len 4096"):
        evaluate(model, text, window=5000)


def talks(sizes):
    """Conversations of random bytes, the second half of each an answer."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    ids = np.random.default_rng(1).integers(0, 32, ends[-1]).astype(np.uint8)
    learnt = np.concatenate([np.arange(size) >= size // 2 for size in sizes])
    return ChatCorpus(ids, learnt, ends, BYTES, "talks")


def test_conversations_of_like_length_are_computed_together(monkeypatch):
    """The loss is that of each alone, unpadded; no row is padded by more than a quarter, and shapes are few."""
    model = TinyGPT(replace(GPT.config, seq_len=512, positions="rotary"), dtype="float64")
    sizes = np.random.default_rng(0).integers(2, 500, 60).tolist()
    chats, shapes, nats = talks(sizes), [], 0.0
    monkeypatch.setattr("byhand.evaluate.ROWS", 1024)
    of_session = NumpySession.loss

    def loss(session, tokens, targets, *more):
        shapes.append(tokens.shape)
        return of_session(session, tokens, targets, *more)

    monkeypatch.setattr(NumpySession, "loss", loss)
    found = evaluate_chats(model, chats, "numpy")
    with no_grad():
        for i, size in enumerate(sizes):
            tokens, targets = chats.alone([i], size - 1)
            nats += model.loss(tokens, targets).item() * np.count_nonzero(targets >= 0)
    assert found.loss == pytest.approx(nats / found.tokens, rel=1e-12)
    assert found.tokens == sum(size - max(1, size // 2) for size in sizes)
    assert sum(rows * length for rows, length in shapes) < 1.25 * sum(sizes) + 1024
    assert len({length for _, length in shapes}) <= 4 * 5 + 1
    assert found.window == max(length for _, length in shapes)


def test_what_cannot_be_evaluated():
    with pytest.raises(DataError, match="at least 2"):
        evaluate(GPT, ByteDataset(np.zeros(1, np.uint8)))
    with pytest.raises(ConfigError, match="stride is 7"):
        evaluate(GPT, ByteDataset(np.zeros(9, np.uint8)), 7)
    with pytest.raises(DataError, match="hold the id 32"):
        evaluate(GPT, ByteDataset(np.full(9, 32, np.uint8)))


def float32_model(**settings):
    model = TinyGPT(ModelConfig(**{"vocab_size": 32, "seq_len": WINDOW, "d_model": 8, **settings}))
    for p in model.parameters().values():
        p.data = p.data * np.float32(15)
    return model


@needs_loops
@pytest.mark.parametrize("settings", [{}, {"causal": False}, {"tied_embeddings": True, "norm_affine": True}], ids=str)
@given(length=st.integers(2, 80), stride=st.integers(1, WINDOW), seed=st.integers(0, 99))
@settings(max_examples=12)
def test_the_loops_have_the_same_loss(settings, length, stride, seed):
    model = float32_model(**settings)
    arrays = {name: p.data for name, p in model.parameters().items()}
    text = ByteDataset(np.random.default_rng(seed).integers(0, 32, length).astype(np.uint8))
    expected, result = (evaluate(model, text, stride, runtime) for runtime in ("numpy", "loops"))
    assert result.loss == pytest.approx(expected.loss, rel=1e-5)
    assert (result.tokens, result.stride) == (expected.tokens, stride)
    assert (expected.runtime, result.runtime) == ("numpy", "loops")
    assert all(p.data is arrays[name] for name, p in model.parameters().items()), "the model was changed"


@needs_loops
def test_auto_takes_the_loops_for_long_texts_alone(monkeypatch):
    text = ByteDataset(np.zeros(50, np.uint8))
    assert evaluate(float32_model(), text).runtime == "numpy"
    monkeypatch.setattr("byhand.runtimes.loops.runtime.LEAST_OPERATIONS", 1.0)
    assert evaluate(float32_model(), text).runtime == "loops"
    assert evaluate(GPT, text).runtime == "numpy"
    monkeypatch.setattr("byhand.runtimes.loops.missing", lambda: ["numba"])
    assert evaluate(float32_model(), text).runtime == "numpy"


def test_loops_that_cannot_are_refused(monkeypatch):
    text = ByteDataset(np.zeros(50, np.uint8))
    monkeypatch.setattr("byhand.runtimes.loops.missing", lambda: ["numba"])
    with pytest.raises(ConfigError, match="needs numba"):
        evaluate(float32_model(), text, runtime="loops")
    monkeypatch.setattr("byhand.runtimes.loops.missing", list)
    with pytest.raises(ConfigError, match="float32, not float64"):
        evaluate(GPT, text, runtime="loops")


@pytest.mark.parametrize("runtime", ["numpy", pytest.param("loops", marks=needs_loops)])
@pytest.mark.parametrize("bad", [np.nan, 3e38])
def test_a_loss_that_is_not_finite_is_an_error(runtime, bad):
    model = float32_model()
    w = model.parameters()["lm_head.w"].data
    w[...] = np.sign(w) * np.float32(bad)  # finite or not, the logits are not
    with pytest.raises(NonFiniteError, match=r"the loss on the notes is (nan|inf)"):
        evaluate(model, ByteDataset(np.zeros(30, np.uint8), "the notes"), runtime=runtime)


ALPHABET = bytes(range(4))
PAIRS = PairTokenizer(ALPHABET)


@given(
    ids=st.lists(st.integers(0, 16), min_size=2, max_size=40), stride=st.integers(1, WINDOW), seed=st.integers(0, 9)
)
def test_bits_per_byte_are_all_nats_over_all_bytes(ids, stride, seed):
    """Id 16 is special: it costs nats and decodes to no byte."""
    special = PairTokenizer(ALPHABET, special=True)
    model = TinyGPT(ModelConfig(vocab_size=17, seq_len=WINDOW, d_model=8), seed, "float64")
    text, predicted = Corpus(np.array(ids), special), len(special.decode(ids[1:]))
    if not predicted:
        with pytest.raises(DataError, match="after the first stands for a byte"):
            evaluate(model, text, stride)
        return
    result = evaluate(model, text, stride)
    nats = evaluate(model, ByteDataset(np.array(ids)), stride).loss * (len(ids) - 1)
    assert (result.tokens, result.bytes) == (len(ids) - 1, predicted)
    assert result.loss * result.tokens == pytest.approx(nats, rel=1e-14)
    assert result.bpb == pytest.approx(nats / (predicted * math.log(2)), rel=1e-14)


def context_free(logits):
    """A model that gives every token these logits, whatever stands before it."""
    model = TinyGPT(ModelConfig(vocab_size=len(logits), seq_len=WINDOW, d_model=8), dtype="float64")
    for p in model.parameters().values():
        p.data = np.zeros_like(p.data)
    model.parameters()["lm_head.b"].data = np.array(logits, np.float64)
    return model


@given(st.lists(st.tuples(*[st.sampled_from(ALPHABET)] * 2), min_size=2, max_size=30), st.data())
def test_equal_models_have_equal_bits_per_byte_whatever_the_tokens(pairs, data):
    """A model of pairs that gives each the probabilities of its bytes says of a text what a model of bytes says."""
    by_byte = data.draw(st.just([0.0] * 4) | st.lists(st.floats(-3, 3), min_size=4, max_size=4))
    by_pair = [a + b for a in by_byte for b in by_byte]
    content = bytes(byte for pair in pairs for byte in pair)
    of_bytes = evaluate(
        context_free(by_byte), ByteDataset(content[1:])
    )  # what both predict begins with the second pair
    of_pairs = evaluate(context_free(by_pair), Corpus(content, PAIRS))
    assert of_pairs.bytes == of_bytes.bytes == len(content) - 2
    assert of_pairs.tokens == len(pairs) - 1
    assert of_pairs.bpb == pytest.approx(of_bytes.bpb, rel=1e-13)
    assert of_pairs.loss == pytest.approx(2 * of_bytes.loss, rel=1e-13)
    if len({*by_byte}) == 1:
        assert of_pairs.bpb == pytest.approx(2.0, rel=1e-14)


def test_a_text_of_another_vocabulary_is_refused():
    small = TinyGPT(replace(GPT.config, vocab_size=8))
    with pytest.raises(DataError, match="pairs tokenizer has 16 tokens, but the model's vocab_size is 8"):
        evaluate(small, Corpus(b"\0\1\2\3", PAIRS))


def test_a_long_evaluation_says_how_far_it_is_and_how_long_it_takes(monkeypatch, caplog):
    """Each loss takes a second here: 1,332 of them, of which the log shows about twenty."""
    clock = itertools.count()
    monkeypatch.setattr("byhand.evaluate.time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr("byhand.evaluate.ROWS", WINDOW)
    with caplog.at_level("INFO", "byhand"):
        evaluate(GPT, ByteDataset(np.zeros(4000, np.uint8), "notes"))
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "notes: 0% predicted, ETA 16m 37s"
    assert lines[-1] == "notes: 99% predicted, ETA 7s"
    assert len(lines) == 21
    caplog.clear()
    with caplog.at_level("INFO", "byhand"):
        evaluate(GPT, ByteDataset(np.zeros(8, np.uint8), "notes"))
    assert not caplog.records, "a short one says nothing"


@pytest.mark.parametrize("weights", ["bfloat16", "q8_0", "q4_0"])
def test_small_weights_cost_what_generation_with_them_would(weights):
    """Of tokens read one by one with a cache, as a decoder reads them, and of no others."""
    model = TinyGPT(ModelConfig(vocab_size=32, seq_len=24, d_model=64, n_heads=2), seed=5)
    for parameter in model.parameters().values():
        parameter.data = parameter.data * 8
    tokens = np.random.default_rng(1).integers(0, 32, 25).astype(np.uint8)
    read, losses = [int(tokens[0])], []
    for logits, target in zip(next_logits(model, read, 24, weights), tokens[1:].tolist(), strict=True):
        losses.append(np.log(np.exp(logits).sum()) - logits[target])
        read.append(target)
    kept = {name: p.data for name, p in model.parameters().items()}
    found = evaluate(model, ByteDataset(tokens), weights=weights)
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-5)
    assert found.loss != pytest.approx(evaluate(model, ByteDataset(tokens)).loss, rel=1e-4)
    assert all(p.data is kept[name] for name, p in model.parameters().items())


@needs_loops
def test_a_runtime_that_evaluates_with_float32_weights_alone_says_so():
    model, text = TinyGPT(ModelConfig(vocab_size=32, seq_len=8, d_model=8)), ByteDataset(np.arange(9, dtype=np.uint8))
    with pytest.raises(ConfigError, match=r"evaluates with float32 weights, not q8_0\. Use --runtime numpy"):
        evaluate(model, text, runtime="loops", weights="q8_0")
