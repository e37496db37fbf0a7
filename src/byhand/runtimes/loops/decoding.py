"""Generation by plan: the prompt fills the KV cache in one plan, then each token replays another.

Sampling is inside, so a run of tokens is one call; runs grow until a call takes about ten milliseconds, which keeps
streaming smooth and makes what Python does between them small.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from byhand.config import Weights
from byhand.engine import Record, Tensor, interpreting
from byhand.errors import ConfigError
from byhand.runtimes.bfloat16 import rounded
from byhand.runtimes.loops import cores
from byhand.runtimes.loops.arena import Arena
from byhand.runtimes.loops.blas import find_blas
from byhand.runtimes.loops.draft import OWN_SIGNAL, PART, PARTS, Buffer, Call, Draft
from byhand.runtimes.loops.groups import DECODING, FILLING, Fusion, groups_of
from byhand.runtimes.loops.layout import padded, place_by_lifetime, place_in_order
from byhand.runtimes.loops.native import yield_address
from byhand.runtimes.loops.plan import Share, own_signal
from byhand.runtimes.loops.record import Graph, RecordedCache
from byhand.runtimes.loops.replay import WIDTH, replay
from byhand.runtimes.loops.team import Team
from byhand.runtimes.numpy import token_array

LONGEST_RUN = 256  # tokens in a call
CALL_SECONDS = 0.01


class Model(Protocol):
    """What decoding is recorded from."""

    config: Any

    def parameters(self) -> dict[str, Tensor]:
        """Return the parameters by name."""
        ...

    def forward_logits(self, tokens: Any, cache: Any = None) -> Tensor:
        """Return logits (B, T, V)."""
        ...


class LoopsDecoder:
    """Continues streams of tokens with one model, with its weights as they are when the decoder is made.

    model    causal, float32
    streams  number of texts that are continued side by side
    threads  all cores if not given
    weights  "float32", or "bfloat16": every matrix and table rounded to it, so that half as much is read
    """

    def __init__(
        self,
        model: Model,
        streams: int = 1,
        threads: int | None = None,
        blas: str = "auto",
        weights: Weights = "float32",
    ) -> None:
        config, parameters = model.config, model.parameters()
        if not config.causal or any(str(p.dtype) != "float32" for p in parameters.values()):
            raise ConfigError("the loops runtime generates with causal float32 models. Use the numpy runtime.")
        self.model = model
        self.streams = streams
        self.threads = threads or cores()
        self.blas = find_blas(blas)
        self.weights = weights
        self.arena = Arena({n: Tensor(p.data) for n, p in parameters.items()}, self.threads, training=False)
        if weights == "bfloat16":
            for p in (p for p in self.arena.parameters.values() if p.ndim > 1):
                p.data[...] = rounded(p.data)
        self._inputs = {
            "tokens": Buffer("tokens", (streams, 1), "input", "int32"),
            "position": Buffer("position", (1,), "own", "int32"),
            "drawn": Buffer("drawn", (LONGEST_RUN, streams), "input", "int32"),
            "allowed": Buffer("allowed", (config.vocab_size,), "input"),
        }
        cache = (streams, config.n_heads, config.head_width, padded(config.seq_len))
        self._caches = [
            (Buffer(f"blocks.{i}.keys", cache, "input"), Buffer(f"blocks.{i}.values", cache, "input"))
            for i in range(config.n_layers)
        ]
        self._native = np.array([self.blas.sgemm, yield_address()], np.int64)
        self._signals = np.zeros(own_signal(self.threads), np.int64)
        self._controls = np.zeros(4 + LONGEST_RUN * streams)
        self._shares, self._tables = self._decoding()
        self._fillings: dict[int, tuple[Share, np.ndarray, Draft]] = {}

    def generate(
        self,
        prompt: Any,
        count: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        rng: np.random.Generator | None = None,
        allowed: Any = None,
    ) -> Iterator[np.ndarray]:
        """Yield token ids (n, streams), run by run, until `count` of each stream are drawn.

        prompt (streams, P), P at least 1. The context is the last seq_len tokens at positions from 0: past the
        window each token fills the cache anew.
        """
        tokens = token_array(prompt, self.model.config.vocab_size)
        if tokens.shape[0] != self.streams:
            raise ConfigError(f"the decoder was made for {self.streams} streams, not for {tokens.shape[0]}.")
        rng = rng or np.random.default_rng(1)
        c = self._controls
        c[0], c[1], c[2] = temperature, top_k or 0, 1.0 if top_p is None else top_p
        team, window, run = Team(self.threads), self.model.config.seq_len, 4
        try:
            while count > 0:
                context = tokens[:, -window:]
                self._fill(context, allowed)
                room = window - context.shape[1] + 1
                while room > 0 and count > 0:
                    n = min(run, room, count)
                    begun = perf_counter()
                    drawn = self._run(team, n, rng.random(n * self.streams))
                    fitting = CALL_SECONDS * n / (perf_counter() - begun)
                    run = max(1, min(LONGEST_RUN, 2 * run, int(fitting)))
                    tokens = np.concatenate([tokens[:, -window:], drawn.T], axis=1)
                    room, count = room - n, count - n
                    yield drawn
        finally:
            team.close()

    def logits(self) -> np.ndarray:
        """Return the logits (streams, V) of the last position as sampling left them: for tests and for looking."""
        return self._shares[0].array(self._logits)[:, 0]

    def _resources(self) -> tuple[np.ndarray, ...]:
        return self.arena.memory, self.arena.words, self._controls, self._signals, self._native

    def _position(self, share: Share | None = None) -> np.ndarray:
        return (share or self._shares[0]).array(self._inputs["position"])

    def _run(self, team: Team, n: int, uniforms: np.ndarray) -> np.ndarray:
        """Draw n tokens for each stream in one call for each thread."""
        self._controls[3] = self._position()[0]
        self._controls[4 : 4 + uniforms.size] = uniforms
        self._signals[:] = 0
        team.run(lambda i: replay(self._tables[i], 0, len(self._tables[i]), n, *self._resources()))
        return self._shares[0].array(self._inputs["drawn"])[:n].astype(np.int64)

    def _fill(self, context: np.ndarray, allowed: Any) -> None:
        """Put all positions but the last into the cache; the last is the first that decoding reads."""
        length = context.shape[1] - 1
        if length and length not in self._fillings:
            self._fillings[length] = self._filling(length)
        share = self._shares[0]
        share.array(self._inputs["tokens"])[:, 0] = context[:, -1]
        for each in self._shares:
            self._position(each)[0] = length
        share.array(self._inputs["allowed"])[:] = 1.0 if allowed is None else allowed
        if length:
            filler, table, draft = self._fillings[length]
            filler.array(draft.inputs["tokens"])[...] = context[:, :-1]
            _write_constants(filler, draft)
            self.blas.set_threads(self.threads)
            replay(table, 0, len(table), 1, *self._resources())
        self.blas.set_threads(1)
        _write_constants(share, self._draft)

    def _record(self, length: int) -> Graph:
        cache, tokens = RecordedCache(), np.zeros((self.streams, length), np.int64)
        with interpreting(Record()):
            return Graph(self.model.forward_logits(tokens, cache), {"tokens": tokens}, cache)

    def _decoding(self) -> tuple[list[Share], list[np.ndarray]]:
        """Return the shares of the decoding plan and their tables: every thread the same calls, its own columns."""
        draft = self._draft = Draft(
            self._record(1), self.model.parameters(), inputs=self._inputs, caches=self._caches,
            halves=self.weights == "bfloat16",
        )  # fmt: skip
        self._emit(draft, DECODING)
        self._logits = draft.result(draft.graph.nodes[-1])
        rows, vocab = self.streams, self.model.config.vocab_size
        draft.emit(
            "sample", None, 0, logits=self._logits, allowed=self._inputs["allowed"], tokens=self._inputs["tokens"],
            position=self._inputs["position"], drawn=self._inputs["drawn"], rows=rows, vocab=vocab, part=PART,
            parts=PARTS,
        )  # fmt: skip
        draft.emit("barrier", None, 0, own=OWN_SIGNAL, shares=PARTS)
        inputs = _touched([*draft.calls, *draft.preparations], "input")
        end = place_in_order([*inputs, *draft.constants.values()])
        end = place_in_order(_touched(draft.calls, "value"), end)
        own = place_in_order(_touched(draft.calls, "own"))
        base = self.arena.workspace
        shares = [
            Share(i, rows, draft.calls, self._inputs, self.arena, base, base, base + end + i * own, self.threads)
            for i in range(self.threads)
        ]
        self._end = end + self.threads * own
        self.arena.reserve(self._end)
        for share in shares:
            table = _table(share, draft.preparations)
            replay(table, 0, len(table), 1, *self._resources())
        return shares, [_table(share, share.calls) for share in shares]

    def _filling(self, length: int) -> tuple[Share, np.ndarray, Draft]:
        """Return the plan that fills the cache with so many positions: it ends with the last layer's cache."""
        draft = Draft(self._record(length), self.model.parameters(), caches=self._caches)
        self._emit(draft, FILLING, last="attention")
        end = place_in_order([*draft.constants.values(), *draft.inputs.values()], self._end)
        end = place_by_lifetime(draft.calls, end)
        self.arena.reserve(end)
        share = Share(
            0, self.streams, draft.calls, draft.inputs, self.arena, self.arena.workspace, self.arena.workspace
        )
        return share, _table(share, share.calls), draft

    def _emit(self, draft: Draft, fusions: tuple[Fusion, ...], last: str = "") -> None:
        groups = groups_of(draft.graph, fusions)
        if last:
            groups = groups[: 1 + max(i for i, group in enumerate(groups) if group.rule == last)]
        strange = next((group.nodes[-1] for group in groups if group.rule == "reference"), None)
        if strange is not None:
            raise ConfigError(f"no kernel generates with {strange.equation.name}. Use the numpy runtime.")
        for group in groups:
            group.forward(draft, group)
        for name, buffer in draft.parameter_buffers.items():
            buffer.offset = self.arena.place[name]
        draft.graph.forget_numbers()


def _touched(calls: list[Call], kind: str) -> list[Buffer]:
    """Return the buffers of this kind in the order in which calls touch them."""
    return list({id(b): b for call in calls for b in call.buffers if b.kind == kind}.values())


def _table(share: Share, calls: list[Call]) -> np.ndarray:
    return np.array([share.row(call, 0) for call in calls], np.int64).reshape(-1, WIDTH)


def _write_constants(share: Share, draft: Draft) -> None:
    for value, buffer in draft.constants.items():
        share.array(buffer)[:] = value
