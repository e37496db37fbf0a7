"""How well a model predicts a whole text, every byte but the first exactly once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from byhand.data import ByteDataset
from byhand.engine import no_grad
from byhand.equations import cross_entropy
from byhand.errors import ConfigError, DataError
from byhand.model import TinyGPT

ROWS = 4096  # tokens computed at once


@dataclass(frozen=True)
class Evaluation:
    """loss in nats per byte, bpb in bits per byte, how many bytes were predicted, and the stride."""

    loss: float
    bpb: float
    tokens: int
    stride: int


def evaluate(model: TinyGPT, text: ByteDataset, stride: int | None = None) -> Evaluation:
    """Slide a window of seq_len over the text; the first predicts all its bytes, each further one its last `stride`.

    So every byte has at least seq_len - stride bytes of context (fewer only at the start of the text). The default,
    seq_len / 2, costs two passes over the text; stride 1 gives each byte all the window allows and costs seq_len.
    """
    window = model.config.seq_len
    stride = max(1, window // 2) if stride is None else stride
    if not 1 <= stride <= window:
        raise ConfigError(
            f"stride is {stride}, but must lie between 1 and seq_len {window}. Use --stride {window // 2}."
        )
    if len(text) < 2:
        raise DataError(f"{text.name} holds {len(text)} byte, but predicting takes at least 2. Use a longer text.")
    predicted = len(text) - 1
    if predicted <= window:
        total = _sum_of_losses(model, text.rows(np.zeros(1, np.int64), predicted + 1), predicted)
    else:
        # The last window ends with the text, and counts only what the one before it left.
        starts = np.arange(stride, predicted - window + 1, stride, dtype=np.int64)
        reached = window + stride * len(starts)
        total = _sum_of_losses(model, text.rows(np.zeros(1, np.int64), window + 1), window)
        total += _sum_over(model, text, starts, stride)
        if reached < predicted:
            total += _sum_over(model, text, np.array([predicted - window]), predicted - reached)
    loss = total / predicted
    return Evaluation(loss, loss / math.log(2), predicted, stride)


def _sum_over(model: TinyGPT, text: ByteDataset, starts: np.ndarray, counted: int) -> float:
    """Sum the losses of the last `counted` bytes of each window."""
    window = model.config.seq_len
    size = max(1, ROWS // window)
    return math.fsum(
        _sum_of_losses(model, text.rows(starts[i : i + size], window + 1), counted)
        for i in range(0, len(starts), size)
    )


def _sum_of_losses(model: TinyGPT, rows: np.ndarray, counted: int) -> float:
    """Sum the losses, in nats, of the last `counted` targets of each row (B, T+1)."""
    with no_grad():
        logits = model.forward_logits(rows[:, :-1]).data[:, -counted:]
        return cross_entropy(logits, rows[:, -counted:]).item() * counted * len(rows)
