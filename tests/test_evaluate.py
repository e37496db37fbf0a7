"""Evaluation predicts every byte but the first exactly once, with as much context as the stride leaves."""

import math

import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.data import ByteDataset
from byhand.engine import no_grad
from byhand.errors import ConfigError, DataError
from byhand.evaluate import evaluate
from byhand.model import TinyGPT

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


@pytest.mark.parametrize("length", [2, 3, 6, 7, 8, 9, 12, 13, 20, 61])
@pytest.mark.parametrize("stride", [1, 2, 3, 5, 6])
def test_against_the_definition(length, stride):
    tokens = np.random.default_rng(length).integers(0, 32, length).astype(np.uint8)
    result = evaluate(GPT, ByteDataset(tokens), stride)
    assert result.tokens == length - 1
    assert result.loss == pytest.approx(byte_by_byte(tokens, stride), abs=1e-12)
    assert result.bpb == pytest.approx(result.loss / math.log(2))


def test_the_default_stride_is_half_a_window_and_is_stated():
    assert evaluate(GPT, ByteDataset(np.arange(30, dtype=np.uint8))).stride == 3


def test_what_cannot_be_evaluated():
    with pytest.raises(DataError, match="at least 2"):
        evaluate(GPT, ByteDataset(np.zeros(1, np.uint8)))
    with pytest.raises(ConfigError, match="stride is 7"):
        evaluate(GPT, ByteDataset(np.zeros(9, np.uint8)), 7)
    with pytest.raises(DataError, match="hold the id 32"):
        evaluate(GPT, ByteDataset(np.full(9, 32, np.uint8)))
