"""A model's loss on a whole text; predicts every token but the first exactly once."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from byhand.config import WINDOW
from byhand.corpus.chats import ChatCorpus
from byhand.corpus.dataset import Corpus, bits_per_byte, padded
from byhand.errors import ConfigError, DataError, NonFiniteError
from byhand.flops import step_flops
from byhand.formats.names import Weights
from byhand.memory import require_room
from byhand.model import TinyGPT
from byhand.quantities import counted, duration
from byhand.runtimes.protocol import Request, Runtime, TrainingSession
from byhand.runtimes.registry import Choice, begin

log = logging.getLogger(__name__)
EVERY, LINES = 2.0, 20  # at least so many seconds between progress lines; at most about 20 lines
ROWS = 4096  # tokens computed at once
SMALLER = "Use a smaller model."


class Windows(NamedTuple):
    """Windows computed together: their starts, their length, and how many trailing tokens each scores."""

    starts: np.ndarray
    length: int
    counted: int


@dataclass(frozen=True)
class Evaluation:
    """A model's loss on a text.

    loss     nats per token
    bpb      bits per byte: total nats / ln 2 / `bytes`
    tokens   predicted tokens
    stride   tokens between windows
    runtime  name of the runtime used
    why      why auto did not take a faster runtime; "" if it did
    bytes    bytes of the predicted tokens
    window   tokens of the longest window
    """

    loss: float
    bpb: float
    tokens: int
    stride: int
    runtime: str = "numpy"
    why: str = ""
    bytes: int = 0
    window: int = 0


def window_of(model: TinyGPT, window: int | None = None) -> int:
    """Return the tokens of an evaluation's window: the given one, or the model's context, at most 1024."""
    most = model.config.seq_len
    if window is None:
        return min(most, WINDOW)
    if not 1 <= window <= most:
        raise ConfigError(f"window is {window}, but must be from 1 to seq_len {most}. Use --window {most}.")
    return window


def evaluate(
    model: TinyGPT,
    text: Corpus,
    stride: int | None = None,
    runtime: str = "auto",
    moves: bool = False,
    weights: Weights = "float32",
    window: int | None = None,
) -> Evaluation:
    """Slide a window over the text; the first predicts all its tokens, each further one its last `stride`.

    So every token has at least window - stride tokens of context (fewer only at the start of the text). The default,
    window / 2, costs two passes over the text; stride 1 gives each token the most context and costs `window` passes.
    The window is seq_len, at most 1024, unless given.
    runtime auto takes the fastest one that can compute the model and is worth loading for this text.
    weights: their type, as in generation; with blocks of integers, activations are rounded too.
    moves: the model is not needed afterwards, so its arrays may stay where the runtime moved them.
    Raises NonFiniteError if the loss is NaN or infinite, DataError if the text has another vocabulary.
    """
    text.tokenizer.require_vocabulary(model.config.vocab_size)
    window = window_of(model, window)
    stride = max(1, window // 2) if stride is None else stride
    if not 1 <= stride <= window:
        raise ConfigError(
            f"stride is {stride}, but must be from 1 to the window's {window}. Use --stride {max(1, window // 2)}."
        )
    if len(text) < 2:
        raise DataError(
            f"{text.name} holds {counted(len(text), text.unit)}, but predicting takes at least 2. Use a longer text."
        )
    predicted = len(text) - 1
    passes = _passes(predicted, window, stride)
    work = step_flops(model.config, 1, window) / 3 * max(1, predicted / stride)
    request = Request(
        "evaluate", model.config, runtime, str(model.dtype), operations=work, moves=moves, weights=weights
    )
    shapes = sorted({(len(block.starts), block.length) for blocks in passes for block in blocks})
    require_room("evaluation", request, SMALLER, max(shapes, key=math.prod))
    with evaluating(model, request, lambda session: session.prepare([], shapes)) as (session, choice):
        total, report = 0.0, progress(text.name, predicted)
        for blocks in passes:
            total += math.fsum(_losses(session, text, blocks, report))
    return _found(text, total / predicted, predicted, text.count_bytes(1), (window, stride), choice)


def evaluate_chats(
    model: TinyGPT, chats: ChatCorpus, runtime: str = "auto", moves: bool = False, weights: Weights = "float32"
) -> Evaluation:
    """Predict the answers of conversations, each alone; batches those of similar length, padded to the longest.

    Arguments and errors are those of `evaluate`.
    """
    chunks = list(_alike(chats, model.config.causal, model.config.seq_len))
    longest = chunks[0][1]
    work = step_flops(model.config, 1, longest) / 3 * chats.count
    request = Request(
        "evaluate", model.config, runtime, str(model.dtype), operations=work, moves=moves, weights=weights
    )
    shapes = sorted({(len(chunk), length) for chunk, length in chunks})
    require_room("evaluation", request, SMALLER, max(shapes, key=math.prod))
    with evaluating(model, request, lambda session: session.prepare([], shapes)) as (session, choice):
        sums, report = list[float](), progress(chats.name, chats.count)
        predicted, stood_for = 0, 0.0
        for chunk, length in chunks:
            tokens, targets = chats.alone(chunk, length)
            answers = int(np.count_nonzero(targets >= 0))
            sums.append(session.loss(tokens, targets) * answers)
            predicted, stood_for = predicted + answers, stood_for + chats.bytes_of(tokens, targets)
            report(len(chunk))
    return _found(chats, math.fsum(sums) / predicted, predicted, round(stood_for), (longest, longest), choice)


def _alike(chats: ChatCorpus, causal: bool, most: int) -> Iterator[tuple[list[int], int]]:
    """Yield batches of conversations with the length of their rows, longest first."""
    numbers, first = sorted(range(chats.count), key=chats.size, reverse=True), 0
    while first < len(numbers):
        length = padded(chats.size(numbers[first]) - 1, most) if causal else most
        chunk = numbers[first : first + max(1, ROWS // length)]
        yield chunk, length
        first += len(chunk)


def _found(
    text: Corpus, loss: float, predicted: int, stood_for: int, windows: tuple[int, int], choice: Choice
) -> Evaluation:
    if not math.isfinite(loss):
        raise NonFiniteError(
            f"the loss on {text.name} is {loss}: the model's weights are damaged, or too large. "
            "Use an earlier checkpoint of the run, or train again with a lower --lr."
        )
    if not stood_for:
        raise DataError(f"no token of {text.name} after the first stands for a byte. Use another text.")
    bpb = bits_per_byte(loss, stood_for / predicted)
    window, stride = windows
    return Evaluation(loss, bpb, predicted, stride, choice.runtime.name, choice.why, stood_for, window)


@contextmanager
def evaluating(
    model: TinyGPT, request: Request, prepare: Callable[[TrainingSession], object]
) -> Iterator[tuple[TrainingSession, Choice]]:
    """Return a session for the `with` block, and the choice of its runtime: one for which `prepare` succeeds."""
    arrays = {} if request.moves else {name: p.data for name, p in model.parameters().items()}

    def ready(chosen: Runtime) -> TrainingSession:
        session = chosen.session(model, None, request)
        prepare(session)
        return session

    try:
        yield begin(request, ready)
    finally:
        for name, data in arrays.items():
            model.parameters()[name].data = data  # a session may have moved them


def _passes(predicted: int, window: int, stride: int) -> list[list[Windows]]:
    """Return the windows that together predict each token once: the first, the following, and one for the rest."""
    if predicted <= window:
        return [[Windows(np.zeros(1, np.int64), predicted, predicted)]]
    starts = np.arange(stride, predicted - window + 1, stride, dtype=np.int64)
    size = max(1, ROWS // window)
    following = [Windows(starts[i : i + size], window, stride) for i in range(0, len(starts), size)]
    passes = [[Windows(np.zeros(1, np.int64), window, window)], following]
    # The last window ends with the text and scores only the rest.
    left = predicted - window - stride * len(starts)
    return [*passes, [Windows(np.array([predicted - window]), window, left)]] if left else passes


def _losses(
    session: TrainingSession, text: Corpus, blocks: list[Windows], report: Callable[[int], None]
) -> Iterator[float]:
    """Yield the sum of each block's losses in nats."""
    for block in blocks:
        rows = text.rows(block.starts, block.length + 1)
        predicted = block.counted * len(rows)
        yield session.loss(rows[:, :-1], rows[:, 1:], block.counted) * predicted
        report(predicted)


def progress(name: str, tokens: int) -> Callable[[int], None]:
    """Return a function that takes the number of tokens just predicted and logs progress and ETA."""
    begun, done, due = time.monotonic(), 0, EVERY

    def report(more: int) -> None:
        nonlocal done, due
        done += more
        took = time.monotonic() - begun
        if took > due and done < tokens:
            left = took / done * (tokens - done)
            due = took + max(EVERY, (took + left) / LINES)
            log.info("%s: %.0f%% predicted, ETA %s", name, 100 * done / tokens, duration(left))

    return report
