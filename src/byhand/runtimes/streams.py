"""Streams: texts in generation, as data; runtimes read them and append the tokens they draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from byhand.errors import NonFiniteError
from byhand.runtimes.sampling import Sampling, draw, log_probability


@dataclass(eq=False)
class Stream:
    """One text: its tokens, its sampling settings, its progress.

    tokens    ids: the prompt, at least one, then the drawn ones
    count     tokens to draw at most
    allowed   booleans (V,): the ids that may be drawn; None allows all
    stop      ids that end it; the drawn one is dropped
    until     called after each appended token; returns None, or the number of drawn tokens to keep, which ends it
    keeps     its slot keeps the cache when it ends, and it reuses an earlier such stream's cache: of their common
              prefix it recomputes only the last token. Requires unchanged weights
    scored    whether `logprobs` are kept: of each drawn token, in nats (`sampling.log_probability`)
    read, reused  prompt tokens computed at admission, and found in the slot's cache
    times     clock in seconds and tokens drawn so far: at admission, after the first step, after the latest
    status    queued: in an engine; failed: logits were not finite; interrupted: by an error, after its window slid
    """

    tokens: list[int]
    count: int
    sampling: Sampling = field(default_factory=Sampling)
    allowed: np.ndarray | None = None
    stop: frozenset[int] = frozenset()
    scored: bool = False
    until: Callable[[int], int | None] | None = None
    keeps: bool = False
    logprobs: list[float] = field(default_factory=list)
    read: int = 0
    reused: int = 0
    times: list[tuple[float, int]] = field(default_factory=list)
    status: Literal["waiting", "queued", "running", "finished", "failed", "interrupted"] = "waiting"

    def __post_init__(self) -> None:
        self.tokens = np.asarray(self.tokens).tolist()  # its own: streams may begin with the same list
        if self.allowed is not None:
            self.allowed = np.asarray(self.allowed, bool)
        self.prompt = len(self.tokens)
        self._rng = np.random.default_rng(self.sampling.seed)
        self._uniforms = 0, np.empty(0)  # number of tokens drawn before, and unused numbers of rng
        if self.count == 0:
            self.status = "finished"

    @property
    def drawn(self) -> list[int]:
        """The ids that were drawn so far."""
        return self.tokens[self.prompt :]

    @property
    def left(self) -> int:
        """How many tokens may still be drawn."""
        return self.count - (len(self.tokens) - self.prompt)

    def uniforms(self, n: int) -> np.ndarray:
        """Return the uniform numbers of the next n tokens; only a token that is kept consumes its number.

        So an interrupted step, even after some of its tokens, changes no later draw.
        """
        before, unused = self._uniforms
        drawn = self.count - self.left
        unused = unused[drawn - before :]
        if len(unused) < n:
            unused = np.append(unused, self._rng.random(n - len(unused)))
        self._uniforms = drawn, unused
        return unused[:n]

    def take(self, ids: Sequence[int], logprobs: Sequence[float] = ()) -> None:
        """Append drawn ids up to the one that ends it; -1 means that the logits were not finite."""
        plain = not self.stop and not self.scored and self.until is None
        if plain and len(ids) < self.left and min(ids) >= 0:  # the common case
            self.tokens += ids
            return
        for i, token in enumerate(ids):
            if token < 0 or token in self.stop:
                self.status = "failed" if token < 0 else "finished"
                return
            self.tokens.append(token)
            if self.scored:
                self.logprobs.append(float(logprobs[i]))
            if self.until and (kept := self.until(token)) is not None:
                del self.tokens[self.prompt + kept :], self.logprobs[kept:]
                self.status = "finished"
                return
            if self.left == 0:
                self.status = "finished"
                return

    def draw(self, logits: np.ndarray) -> None:
        """Draw the next token from logits (V,)."""
        try:
            (uniform,) = [0.0] if self.sampling.greedy else self.uniforms(1)
            token = draw(logits, self.sampling, uniform, self.allowed, self.tokens)
        except NonFiniteError:
            return self.take([-1])
        return self.take([token], [log_probability(logits, token, self.allowed)] if self.scored else ())


class Slots:
    """A decoder's slots, and the stream in each; see `Decoder`."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.stale = True
        self.streams: list[Stream | None] = [None] * slots
        self.made_by: Counter[int] = Counter()
        self.filled = 0

    def admit(self, slot: int, stream: Stream, kept: int = 0) -> None:
        """Begin a stream in a free slot whose cache has its first `kept` tokens."""
        self.streams[slot] = stream

    def free(self, slot: int) -> int:
        """Release a slot; return the number of positions in its cache."""
        self.streams[slot] = None
        return 0

    def running(self) -> dict[int, Stream]:
        """Return the streams by slot."""
        return {slot: stream for slot, stream in enumerate(self.streams) if stream is not None}


class LogitsDecoder(Slots):
    """A decoder whose runtime returns logits; see `Decoder`. `sampling.draw` draws the tokens."""

    def step(self, most: int) -> None:
        """Draw one token for each stream."""
        running = self.running()
        for stream, logits in zip(running.values(), self.logits(running), strict=True):
            stream.draw(logits)
        self.made_by[1] += 1

    def logits(self, running: dict[int, Stream]) -> Sequence[np.ndarray]:
        """Return the logits (V,) after each stream's tokens."""
        raise NotImplementedError
