"""How well a model predicts a whole text, every byte but the first exactly once."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np

from byhand.config import Runtime
from byhand.corpus.dataset import ByteDataset
from byhand.engine import no_grad
from byhand.equations import cross_entropy
from byhand.errors import ConfigError, DataError, NonFiniteError
from byhand.flops import step_flops
from byhand.model import TinyGPT
from byhand.runtimes import loops

log = logging.getLogger(__name__)
EVERY = 2.0  # seconds between two lines about how far it is
ROWS = 4096  # tokens computed at once


LEAST_WORK = 3e10  # operations from which on loading the loops runtime pays: about two seconds of NumPy
Losses = Callable[[np.ndarray, int], float]  # the sum of the last so many losses of rows (B, T+1), in nats


@dataclass(frozen=True)
class Evaluation:
    """loss in nats per byte, bpb in bits per byte, how many bytes were predicted, the stride, what computed it."""

    loss: float
    bpb: float
    tokens: int
    stride: int
    runtime: str = "numpy"


def evaluate(model: TinyGPT, text: ByteDataset, stride: int | None = None, runtime: Runtime = "auto") -> Evaluation:
    """Slide a window of seq_len over the text; the first predicts all its bytes, each further one its last `stride`.

    So every byte has at least seq_len - stride bytes of context (fewer only at the start of the text). The default,
    seq_len / 2, costs two passes over the text; stride 1 gives each byte all the window allows and costs seq_len.
    runtime auto takes the loops where they are, can compute the model, and the text is worth loading them.
    Raises NonFiniteError if the loss is NaN or infinite.
    """
    window = model.config.seq_len
    stride = max(1, window // 2) if stride is None else stride
    if not 1 <= stride <= window:
        raise ConfigError(
            f"stride is {stride}, but must lie between 1 and seq_len {window}. Use --stride {max(1, window // 2)}."
        )
    if len(text) < 2:
        raise DataError(f"{text.name} holds {len(text)} byte, but predicting takes at least 2. Use a longer text.")
    predicted = len(text) - 1
    work = step_flops(model.config, 1) / 3 * max(1, predicted / stride)
    chosen = _chosen(model, runtime, work)
    with _by_loops(model) if chosen == "loops" else nullcontext(partial(_by_numpy, model)) as losses:
        if predicted <= window:
            total = losses(text.rows(np.zeros(1, np.int64), predicted + 1), predicted)
        else:
            # The last window ends with the text, and counts only what the one before it left.
            starts = np.arange(stride, predicted - window + 1, stride, dtype=np.int64)
            reached = window + stride * len(starts)
            total = losses(text.rows(np.zeros(1, np.int64), window + 1), window)
            total += _sum_over(losses, window, text, starts, stride)
            if reached < predicted:
                total += _sum_over(losses, window, text, np.array([predicted - window]), predicted - reached)
    loss = total / predicted
    if not math.isfinite(loss):
        raise NonFiniteError(
            f"the loss on {text.name} is {loss}: the model's weights are damaged, or too large. "
            "Use an earlier checkpoint of the run, or train again with a lower --lr."
        )
    return Evaluation(loss, loss / math.log(2), predicted, stride, chosen)


def _sum_over(losses: Losses, window: int, text: ByteDataset, starts: np.ndarray, counted: int) -> float:
    """Sum the losses of the last `counted` bytes of each window."""
    size, sums, said = max(1, ROWS // window), [], time.monotonic()
    for i in range(0, len(starts), size):
        sums.append(losses(text.rows(starts[i : i + size], window + 1), counted))
        if time.monotonic() - said > EVERY:
            said = time.monotonic()
            log.info("%s: %.0f%% predicted", text.name, 100 * min(i + size, len(starts)) / len(starts))
    return math.fsum(sums)


def _chosen(model: TinyGPT, runtime: Runtime, work: float) -> str:
    """Return what computes so many operations. ConfigError if loops are asked for and cannot."""
    missing = loops.missing()
    if runtime == "loops" and missing:
        raise ConfigError(
            f"the loops runtime needs {' and '.join(missing)}. Use pip install 'byhand[fast]', or --runtime numpy."
        )
    if runtime == "loops" and str(model.dtype) != "float32":
        raise ConfigError(f"the loops runtime computes in float32, not {model.dtype}. Use --runtime numpy.")
    pays = not missing and str(model.dtype) == "float32" and work >= LEAST_WORK
    return "loops" if runtime == "loops" or (runtime == "auto" and pays) else "numpy"


@contextmanager
def _by_loops(model: TinyGPT) -> Iterator[Losses]:
    """The runtime moves the model's arrays into its memory; they are put back afterwards."""
    from byhand.runtimes.loops.run.training import LoopsRuntime

    arrays = {name: p.data for name, p in model.parameters().items()}
    try:
        computing = LoopsRuntime(model)

        def losses(rows: np.ndarray, counted: int) -> float:
            return computing.loss(rows[:, :-1], rows[:, 1:], counted) * counted * len(rows)

        yield losses
    finally:
        for name, p in model.parameters().items():
            p.data = arrays[name]


def _by_numpy(model: TinyGPT, rows: np.ndarray, counted: int) -> float:
    rows = rows.astype(np.int64)
    with no_grad(), np.errstate(all="ignore"):  # what is not finite is named in the end
        logits = model.forward_logits(rows[:, :-1]).data[:, -counted:]
        return cross_entropy(logits, rows[:, -counted:]).item() * counted * len(rows)
