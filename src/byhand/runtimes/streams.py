"""Streams: texts that are being continued, as data; runtimes read them and give them the tokens that they draw."""

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
    """One text: its tokens, how they are drawn, and how far it is.

    tokens    ids: the prompt, at least one, then what was drawn
    count     tokens to draw at most
    allowed   booleans (V,): which ids may be drawn; None allows all
    stop      ids that end it; the one drawn is not kept
    until     called with each token when it is appended; None, or how many of the drawn ones stay, as it ends there
    keeps     its slot keeps the cache when it has ended, and it goes on with what one that keeps has left: of the
              tokens that both begin with only the last is read again. The weights must be the same then
    scored    whether `logprobs` are kept: of each drawn token, in nats (`sampling.log_probability`)
    read, reused  tokens of the prompt that were read when it was admitted, and that its slot's cache had
    times     seconds of a clock and tokens drawn by then: at admission, after the first step, after the latest
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
        self._uniforms = 0, np.empty(0)  # drawn from rng but not used yet, behind those of so many tokens
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
        """Return the uniform numbers of the next n tokens; each is used up by the token that it draws and that stays.

        So a step that is interrupted, after some of its tokens or before all, changes no later draw.
        """
        before, unused = self._uniforms
        drawn = self.count - self.left
        unused = unused[drawn - before :]
        if len(unused) < n:
            unused = np.append(unused, self._rng.random(n - len(unused)))
        self._uniforms = drawn, unused
        return unused[:n]

    def take(self, ids: Sequence[int], logprobs: Sequence[float] = ()) -> None:
        """Append drawn ids up to the one that ends it; -1 says that logits were not finite."""
        plain = not self.stop and not self.scored and self.until is None
        if plain and len(ids) < self.left and min(ids) >= 0:  # most runs
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
        """Forget a slot's stream; return how many positions its cache has."""
        self.streams[slot] = None
        return 0

    def running(self) -> dict[int, Stream]:
        """Return the streams by slot."""
        return {slot: stream for slot, stream in enumerate(self.streams) if stream is not None}


class LogitsDecoder(Slots):
    """A decoder whose runtime gives logits; see `Decoder`. A token is drawn as `sampling.draw` says."""

    def step(self, most: int) -> None:
        """Draw one token of each stream."""
        running = self.running()
        for stream, logits in zip(running.values(), self.logits(running), strict=True):
            stream.draw(logits)
        self.made_by[1] += 1

    def logits(self, running: dict[int, Stream]) -> Sequence[np.ndarray]:
        """Return the logits (V,) after each stream's tokens."""
        raise NotImplementedError
