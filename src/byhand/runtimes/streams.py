"""Streams: texts in generation, as data; runtimes read them and append the tokens they draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from byhand.errors import NonFiniteError
from byhand.model_config import ModelConfig
from byhand.runtimes.sampling import Candidates, Sampling, draw, likeliest, log_probabilities

PIECE, SCORED_PIECE = 256, 64  # positions of a prompt that are read at once; of each scored one there are V logits


@dataclass(eq=False)
class Stream:
    """One text: its tokens, its sampling settings, its progress.

    tokens    ids: the prompt, at least one, then the drawn ones
    count     tokens to draw at most
    allowed   booleans (V,): which ids may be drawn; None allows all
    stop      ids that end it; the one drawn is not kept
    until     called with each token when it is appended; None, or how many of the drawn ones stay, as it ends there
    keeps     its slot keeps the cache when it has ended, and it goes on with what one that keeps has left: of the
              tokens that both begin with only the last is read again. The weights must be the same then
    scored    whether `logprobs` are kept: of each drawn token, in nats (`sampling.log_probabilities`)
    top       how many of the likeliest tokens `tops` has beside each of `logprobs`, and `prompt_tops`
    prompt_scored  whether `prompt_logprobs` are kept, of the prompt's tokens but the first; its whole prompt is read,
              also with a count of 0. The prompt was not drawn, so these are among all tokens, allowed or not
    ended     the stop token that ended it, its ln p (NaN if not `scored`) and the likeliest: it is in no other list
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
    top: int = 0
    prompt_scored: bool = False
    logprobs: list[float] = field(default_factory=list)
    tops: list[Candidates] = field(default_factory=list)
    prompt_logprobs: list[float] = field(default_factory=list)
    prompt_tops: list[Candidates] = field(default_factory=list)
    ended: tuple[int, float, Candidates] | None = None
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
        if self.count == 0 and not self.unscored:
            self.status = "finished"

    @property
    def drawn(self) -> list[int]:
        """The ids that were drawn so far."""
        return self.tokens[self.prompt :]

    @property
    def left(self) -> int:
        """How many tokens may still be drawn."""
        return self.count - (len(self.tokens) - self.prompt)

    @property
    def unscored(self) -> bool:
        """Whether log-probabilities of its prompt are asked for, and not all there."""
        return self.prompt_scored and len(self.prompt_logprobs) < self.prompt - 1

    @property
    def by_hand(self) -> bool:
        """Whether `draw` must draw its tokens: no plan can."""
        return bool(self.sampling.counts or self.sampling.logit_bias or (self.scored and self.top))

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

    def take(self, ids: Sequence[int], logprobs: Sequence[float] = (), tops: Sequence[Candidates] = ()) -> None:
        """Append drawn ids up to the one that ends it; -1 says that logits were not finite."""
        plain = not self.stop and not self.scored and self.until is None
        if plain and len(ids) < self.left and min(ids) >= 0:  # the common case
            self.tokens += ids
            return
        for i, token in enumerate(ids):
            if token < 0 or token in self.stop:
                self.status = "failed" if token < 0 else "finished"
                if token >= 0:
                    self.ended = token, float(logprobs[i]) if self.scored else np.nan, tops[i] if tops else []
                return
            self.tokens.append(token)
            if self.scored:
                self.logprobs.append(float(logprobs[i]))
                if tops:
                    self.tops.append(tops[i])
            if self.until and (kept := self.until(token)) is not None:
                del self.tokens[self.prompt + kept :], self.logprobs[kept:], self.tops[kept:]
                self.status = "finished"
                return
            if self.left == 0:
                self.status = "finished"
                return

    def draw(self, logits: np.ndarray) -> None:
        """Draw the next token from logits (V,)."""
        try:
            (uniform,) = [0.0] if self.sampling.greedy else self.uniforms(1)
            drawn = self.drawn if self.sampling.counts else ()
            token = draw(logits, self.sampling, uniform, self.allowed, self.tokens, drawn)
        except NonFiniteError:
            return self.take([-1])
        if not self.scored:
            return self.take([token])
        logp = log_probabilities(logits, self.allowed)
        return self.take([token], [float(logp[token])], [likeliest(logp, self.top)] if self.top else ())

    def score(self, logits: np.ndarray) -> None:
        """Note how likely the prompt's next tokens are by logits (n, V), and pass over those behind them."""
        known = self.prompt_logprobs
        for row in logits[: self.prompt - 1 - len(known)]:
            if not np.isfinite(np.max(row)):
                self.status = "failed"
                return
            logp = log_probabilities(row)
            known.append(float(logp[self.tokens[len(known) + 1]]))
            if self.top:
                self.prompt_tops.append(likeliest(logp, self.top))


class Slots:
    """A decoder's slots, and the stream in each; see `Decoder`.

    ahead    how many positions of a prompt are left to the first `step`
    reading  by slot whose prompt is not read yet: how many positions its cache has; in the order of admission
    """

    ahead = 0

    def __init__(self, slots: int, config: ModelConfig) -> None:
        self.slots = slots
        self.stale = True
        self.streams: list[Stream | None] = [None] * slots
        self.reading: dict[int, int] = {}
        self.made_by: Counter[int] = Counter()
        self.filled = 0
        self._window, self._places = config.seq_len, config.cached

    def admit(self, slot: int, stream: Stream, kept: int = 0) -> None:
        """Begin a stream in a free slot whose cache has its first `kept` tokens."""
        self.streams[slot], self.reading[slot] = stream, kept

    def free(self, slot: int) -> int:
        """Release a slot; return the number of positions in its cache."""
        self.streams[slot] = None
        return self.reading.pop(slot, 0)

    def running(self) -> dict[int, Stream]:
        """Return the streams whose prompts are read, by slot."""
        return {i: stream for i, stream in enumerate(self.streams) if stream is not None and i not in self.reading}

    def read(self) -> None:
        """Read a piece of a prompt, or as many short ones as have no more positions together.

        A piece ends at a multiple of its size, so it is the same in any company. A prompt that is longer than the
        cache is read at once.
        """
        room = PIECE
        for slot, begin in list(self.reading.items()):
            stream = self.streams[slot]
            assert stream is not None
            context = stream.tokens[-self._window :]
            count = len(context) - self.ahead
            while slot in self.reading and stream.status not in ("failed", "finished"):
                size = SCORED_PIECE if stream.unscored else PIECE
                end = count if len(context) > self._places else min(count, (begin // size + 1) * size)
                if end - begin > room < PIECE:
                    return
                self.fill(slot, context, begin, end)
                room, begin = room - (end - begin), end
                self.reading[slot] = end
                if end == count:
                    del self.reading[slot]
                    if not stream.left and stream.status != "failed":
                        stream.status = "finished"

    def fill(self, slot: int, context: list[int], begin: int, end: int) -> None:
        """Read positions of a slot's context into its cache, and score them; the last piece makes it ready."""
        raise NotImplementedError


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
