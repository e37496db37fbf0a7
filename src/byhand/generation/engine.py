"""Engine: the one loop of generation. Streams are admitted to slots, advance together, and leave.

Each stream has its own length, `Sampling`, stop tokens and texts, and log-probabilities, and gets the same text as
alone. Streams join and leave between any two tokens: `submit` and `cancel` take effect before the next step. A stream
that keeps its cache (`Stream.keeps`), as in a conversation, leaves it to the next one with the same beginning.

Threads may share an engine: they take turns at `step`, which advances the streams of all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from byhand.engine.graph.outline import Outline
from byhand.errors import UNSOUND_LOGITS, ConfigError, DataError, NonFiniteError, ShapeError
from byhand.files.unread import read
from byhand.formats.names import Weights
from byhand.host import token_array
from byhand.runtimes.protocol import Decoder, Request, Runtime
from byhand.runtimes.registry import Choice, begin
from byhand.runtimes.streams import Stream

LIVE = ("queued", "running")
LONGEST_STEP = 1 << 20  # tokens; a runtime draws fewer


class Full(DataError):
    """No more streams may wait."""


class Engine:
    """A model's decoder and the streams in it.

    slots    streams that are continued side by side; others wait
    queue    how many may wait, at most; None: any number
    lock     held while streams change: what another thread may continue is read under it
    runtime, weights, threads, cache, moves: see `Request`
    """

    def __init__(
        self, model: Any, slots: int = 1, *, runtime: str = "auto", weights: Weights = "float32", threads: int = 0,
        cache: bool = True, moves: bool = False, queue: int | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(slots, int) or slots < 1:
            raise ConfigError(f"slots is {slots!r}, but must be an integer of 1 or more.")
        if any(isinstance(p.data, Outline) for p in model.parameters().values()):
            raise ConfigError("another engine has moved the model's arrays to its own memory. Load the model again.")
        if model.config.lora:
            model = model.merged()
        self._config = model.config
        request = Request(
            "generate",
            model.config,
            runtime,
            str(model.dtype),
            threads,
            weights=weights,
            cache=cache,
            streams=slots,
            moves=moves,
        )

        def ready(chosen: Runtime) -> Decoder:
            return chosen.decoder(model if chosen.packs else read(model), request)

        found: tuple[Decoder, Choice] = begin(request, ready)
        self.decoder, self.choice = found
        self.queue = queue
        self.waiting: deque[Stream] = deque()
        self.running: dict[int, Stream] = {}
        self.lock = Lock()
        self._held: dict[int, list[int]] = {}  # by free slot: the tokens in its cache

    def submit(self, stream: Stream) -> Stream:
        """Queue a stream for a slot; DataError or ConfigError if it cannot be continued, Full if too many wait."""
        vocab_size, seq_len = self._config.vocab_size, self._config.seq_len
        if not isinstance(stream.count, (int, np.integer)) or stream.count < 0:
            raise ConfigError(f"count is {stream.count!r}, but must be an integer of 0 or more.")
        token_array([stream.tokens], vocab_size, "the prompt's tokens")
        if stream.allowed is not None and np.shape(stream.allowed) != (vocab_size,):
            raise ShapeError(f"allowed has the shape {np.shape(stream.allowed)}, but must be ({vocab_size},).")
        if stream.allowed is not None and not np.any(stream.allowed):
            raise ConfigError("no token is allowed. Allow at least one.")
        if unknown := [token for token, _ in stream.sampling.logit_bias if token >= vocab_size]:
            raise DataError(
                f"logit_bias names the token {unknown[0]}, but the ids end at {vocab_size - 1}. Leave it out."
            )
        if stream.prompt_scored and not self._config.causal:
            raise ConfigError("without the causal mask, logits are not of next tokens. Leave prompt_scored out.")
        if stream.prompt_scored and stream.prompt > seq_len:
            raise DataError(
                f"the prompt has {stream.prompt:,} tokens, but seq_len is {seq_len:,}. Score a shorter one."
            )
        if stream.status not in ("waiting", "finished"):
            raise DataError(f"the stream is {stream.status} already. Make another one.")
        if stream.status == "waiting":
            if self.queue is not None and sum(s.status == "queued" for s in self.waiting) >= self.queue:
                raise Full(f"{self.queue} texts wait already. Try again later.")
            stream.status = "queued"
            self.waiting.append(stream)
        return stream

    def cancel(self, stream: Stream) -> None:
        """End a stream, queued or running. The next step frees its slot, since a dropped generator may call this at
        any moment, even within a step.
        """
        if stream.status in ("waiting", *LIVE):
            stream.status = "finished"

    def step(self, most: int = LONGEST_STEP) -> list[Stream]:
        """Admit queued streams, read a piece of a prompt, draw up to `most` tokens of each stream that is read.

        Returns all that had a slot. A stream that ends leaves its slot. Its status says how it ended. An error, such
        as Ctrl-C, lets all that run wait again, to be read anew, as nobody knows how far the decoder is with them. It
        ends a stream whose window has slid: its cache began with tokens that are left behind.
        """
        with self.lock:
            self._free_ended()  # cancelled streams, and those left over by an interrupted step
            for stream in [each for each in list(self.waiting) if each.status != "queued"]:  # cancelled too
                self.waiting.remove(stream)
            while self.waiting and len(self.running) < self.decoder.slots:
                self._admit()
            held = list(self.running.values())
            try:
                self.decoder.read()
                self._free_ended()  # whose prompt was all that was asked for
                advanced = [stream for i, stream in self.running.items() if i not in self.decoder.reading]
                if advanced:
                    self.decoder.step(min(max(1, most), *(stream.left for stream in advanced)))
                for stream in advanced:
                    stream.times = [*stream.times[:2], (perf_counter(), len(stream.drawn))]
            except BaseException:
                self._forget()
                for stream in reversed(held):
                    if stream.status == "running":
                        self._put_back(stream)
                raise
            finally:
                self._free_ended()
            return held

    def forget(self) -> None:
        """Drop all caches, and reread the weights when a stream begins and all slots are free."""
        with self.lock:
            self._forget()

    def _forget(self) -> None:
        self._held.clear()
        self.decoder.stale = True
        for stream in self.running.values():
            stream.keeps = False

    def _admit(self) -> None:
        """Begin the stream that has waited longest in the slot that holds most of it; on failure it keeps waiting."""
        stream = self.waiting[0]
        if stream.status != "queued":  # cancelled
            del self.waiting[0]
            return
        free = [slot for slot in range(self.decoder.slots) if slot not in self.running]
        slot = max(free, key=lambda slot: (self._kept(slot, stream), slot not in self._held))
        kept = self._kept(slot, stream)
        self._held.pop(slot, None)
        stream.read, stream.reused = min(len(stream.tokens), self._config.seq_len) - kept, kept
        stream.times = [(perf_counter(), len(stream.drawn))]
        if stream.unscored:  # an error came while it was read
            del stream.prompt_logprobs[:], stream.prompt_tops[:]
        try:
            self.decoder.admit(slot, stream, kept)
        except BaseException:  # including an interrupt
            self.decoder.free(slot)
            self._forget()
            raise
        self.running[slot] = stream
        del self.waiting[0]  # no call in between, so no interrupt
        if stream.status == "queued":
            stream.status = "running"

    def _kept(self, slot: int, stream: Stream) -> int:
        """Return how many of a stream's leading tokens a free slot holds; the last one is always computed."""
        tokens, held = stream.tokens, self._held.get(slot, [])
        if not stream.keeps or stream.unscored or len(tokens) > self._config.cached:
            return 0
        most = min(len(held), len(tokens) - 1)
        return next((i for i in range(most) if held[i] != tokens[i]), most)

    def _put_back(self, stream: Stream) -> None:
        config = self._config
        if stream.left == 0 and not stream.unscored:  # the error came with its last token
            stream.status = "finished"
        elif config.slides and stream.drawn and len(stream.tokens) > config.seq_len:
            stream.status = "interrupted"
        else:
            stream.status = "queued"
            self.waiting.appendleft(stream)

    def _free_ended(self) -> None:
        for slot, stream in list(self.running.items()):
            if stream.status != "running":
                length = self.decoder.free(slot)
                whole = max(length, len(stream.tokens)) <= self._config.cached  # the ring has not wrapped
                if stream.keeps and stream.status == "finished" and whole:
                    self._held[slot] = stream.tokens[:length]
                del self.running[slot]

    def finish(self, streams: Iterable[Stream]) -> Iterator[Stream]:
        """Continue streams, as many at once as there are slots; yield each, in order, when it has ended.

        Raises NonFiniteError at a stream whose logits were not finite.
        """
        return (sound(stream) for stream in self.follow(streams) if stream.status not in LIVE)

    def follow(self, streams: Iterable[Stream]) -> Iterator[Stream]:
        """Like `finish`, but also yield the oldest unfinished stream after each step.

        So each is yielded while it grows, and once when it has ended.
        """
        given, order = iter(streams), deque[Stream]()
        more = True  # not all given streams have been submitted
        while more or order:
            while more and len(self.waiting) < self.decoder.slots:
                stream = next(given, None)
                if more := stream is not None:
                    order.append(self.submit(stream))
            while order and order[0].status not in LIVE:
                yield order.popleft()
            if more or order:
                self.step()
            if order and order[0].status in LIVE:
                yield order[0]


def sound(stream: Stream) -> Stream:
    """Return the stream; NonFiniteError if its logits were not finite."""
    if stream.status == "failed":
        raise NonFiniteError(UNSOUND_LOGITS)
    return stream
