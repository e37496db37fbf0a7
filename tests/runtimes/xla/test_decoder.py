"""Generation by XLA: NumPy's tokens, with and without a window's end, one stream or several."""

import numpy as np
import pytest

from byhand.model import TinyGPT
from byhand.runtimes.numpy.decoder import NumpyDecoder
from byhand.runtimes.protocol import Request
from byhand.runtimes.sampling import Sampling
from byhand.runtimes.streams import Stream
from byhand.runtimes.xla import decoder
from byhand.runtimes.xla.decoder import XlaDecoder
from runtimes.texts import texts
from runtimes.xla.models import FAMILY, GROUPED, NORMED, PLAIN


def confident(config):
    """A model whose next tokens do not hang on the last digit."""
    model = TinyGPT(config)
    for tensor in model.parameters().values():
        tensor.data = tensor.data * np.float32(10 if tensor.ndim > 1 else 1)
    return model


def both(model, prompts, count, sampling, weights="float32", allowed=None):
    request = Request("generate", model.config, weights=weights, streams=len(prompts))
    return [texts(kind(model, request), prompts, count, sampling, allowed) for kind in (XlaDecoder, NumpyDecoder)]


@pytest.mark.parametrize("config", FAMILY.values(), ids=FAMILY)
def test_greedy_text_is_numpys_past_the_window_too(config, monkeypatch):
    """Three streams, in runs of four tokens; one by itself is in `test_family.py`."""
    monkeypatch.setattr(decoder, "RUN", 4)
    ours, tapes = both(confident(config), [[1, 2], [3, 4], [5, 6]], 30, Sampling(0.0))
    np.testing.assert_array_equal(ours, tapes)


@pytest.mark.parametrize("config", [PLAIN, GROUPED, NORMED], ids=["plain", "grouped", "normed"])
def test_a_prompt_of_any_length(config):
    """Up to the window, just as long, and longer, one after the other."""
    model, request = confident(config), Request("generate", config)
    ours, tapes = XlaDecoder(model, request), NumpyDecoder(model, request)
    for length in (1, 7, 20, 8, 9):
        prompt = [(5 * i) % PLAIN.vocab_size for i in range(length)]
        np.testing.assert_array_equal(*(texts(each, [prompt], 3) for each in (ours, tapes)), err_msg=str(length))


def test_what_is_drawn_is_numpys_too():
    sampling = Sampling(0.9, top_k=8, top_p=0.95, seed=7)
    allowed = np.arange(PLAIN.vocab_size) != 3
    ours, tapes = both(confident(PLAIN), [[1, 2], [2, 1]], 12, sampling, "bfloat16", allowed)
    np.testing.assert_array_equal(ours, tapes)
    assert 3 not in ours
    assert len(np.unique(ours)) > 2


def test_runs_are_counted_and_end_with_the_count():
    model = confident(PLAIN)
    made = XlaDecoder(model, Request("generate", PLAIN))
    assert len(texts(made, [[1]], 5)) == 5
    assert made.made_by == {1: 5}


def test_logits_that_are_not_finite_end_the_text():
    model = confident(PLAIN)
    model.parameters()["wpe"].data[5] = np.nan
    found = Stream([1, 2], 6, Sampling(0.0))
    made = XlaDecoder(model, Request("generate", PLAIN))
    made.admit(0, found)
    while found.status == "waiting":
        made.step(found.left)
    assert found.status == "failed"
    assert len(found.drawn) <= 4
