"""Generation by XLA: prefill, then runs of tokens, one call each; the cache has a fixed shape.

Positions are data, so one compiled program serves all. Prompts are padded to a power of two; no position attends to
the padding. Past the window every position shifts, and the window is recomputed; without a position table the cache
is a ring buffer: the newest key replaces the oldest.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from byhand.engine import Tensor
from byhand.engine.context import interpreting
from byhand.equations.extend_cache import extend_cache
from byhand.formats.registry import FORMATS
from byhand.runtimes.protocol import Request
from byhand.runtimes.streams import Slots, Stream
from byhand.runtimes.xla import compiling
from byhand.runtimes.xla.applying import Evaluating, TraceSettings
from byhand.runtimes.xla.drawing import Draws, Kind, drawn
from byhand.runtimes.xla.gradients import tensors
from byhand.runtimes.xla.halves import Halves
from byhand.runtimes.xla.layout import Layout, Stack
from byhand.runtimes.xla.mesh import mesh_of

RUN = 32  # tokens drawn in one call
Caches = list[tuple[Any, ...]]  # keys and values (L, B, H, S, D) of each stack
State = tuple[Caches, Any]  # and the logits (B, V) after each stream


class Decoding(Evaluating):
    """Evaluates; writes caches in place (they are donated) and widens narrow tables row by row."""

    def wrapped(self, halves: Halves) -> Halves:
        """Cast results to float32, since tables may have a narrower type; write into the cache in place."""

        def widened(*arrays: Any, **static: Any) -> Any:
            scale = static.pop("scale", None) if halves.name == "embedding" else None  # applied after widening
            result, saved = halves.forward(*arrays, **static)
            wide = jax.tree.map(lambda a: a.astype(jnp.float32), result)
            return wide if scale is None else wide * scale, saved

        return Halves(halves.name, _extended if halves.name == "extend_cache" else widened, halves.vjp)


def _extended(kept: Any, x: Any, start: Any) -> Any:
    """Apply `extend_cache` as a scatter of one row per stream instead of a select over all rows."""
    if x.shape[2] > 1:
        return extend_cache.forward(kept, x, start)
    return kept.at[jnp.arange(len(x)), :, start % kept.shape[2]].set(x[:, :, 0]), ()


class XlaDecoder(Slots):
    """Continues streams on a device; see `Decoder`."""

    def __init__(self, model: Any, request: Request) -> None:
        compiling.prepare()
        self._model = model
        self._weights = FORMATS[request.weights]
        self._layout = Layout(model.layers, model.config, mesh_of(""))
        self._prefill = jax.jit(self._prefilled, static_argnums=3)
        self._insert = jax.jit(_inserted, donate_argnums=0)
        self._continue = jax.jit(self._continued, donate_argnums=1, static_argnums=6)
        self._decode = jax.jit(self._run, donate_argnums=1, static_argnums=2)
        super().__init__(request.streams, model.config)
        self._idle = model.config.cached - 1  # the place in which a slot without a stream writes
        self._lengths = np.full(self.slots, self._idle, np.int32)
        self._held: dict[str, Any] = {}  # parameters on the device
        self._state: State = ([], None)

    def admit(self, slot: int, stream: Stream, kept: int = 0) -> None:
        """Begin a stream in a free slot."""
        if not any(self.streams):
            if self.stale:
                self._held, self.stale = self._parameters(), False
            if self._state[1] is None or self._state[1].is_deleted():  # donated to a call that was interrupted
                self._state = self._empty()
        super().admit(slot, stream, kept)

    def free(self, slot: int) -> int:
        """Forget a slot's stream; its row writes into the last place from now on, so that is not kept."""
        length = self.reading.get(slot, int(self._lengths[slot]))
        super().free(slot)
        self._lengths[slot] = self._idle
        return length if length > self._idle + 1 else min(length, self._idle)

    def step(self, most: int) -> None:
        """Draw a run of tokens in one call; past the window, one token and recompute the window."""
        running = self.running()
        window, slides = self._model.config.seq_len, self._model.config.slides
        room = most if slides else max(1, window - int(self._lengths[list(running)].max()))
        by_hand = [slot for slot, stream in running.items() if stream.by_hand]
        n = 1 if by_hand else min(RUN, most, room)
        full = [] if slides else [slot for slot in running if self._lengths[slot] == window]
        for slot in by_hand:
            running[slot].draw(np.asarray(self._state[1][slot]))
        settings = Draws.of([running.get(slot) for slot in range(self.slots)], self._model.config.vocab_size)
        drawn_by_plan = {slot: stream for slot, stream in running.items() if not stream.by_hand}
        u = np.zeros((RUN, self.slots), np.float32)
        for slot, stream in drawn_by_plan.items():
            u[:n, slot] = 0.0 if stream.sampling.greedy else stream.uniforms(n)
        self._state, ids, scores, made = self._decode(
            self._held, self._state, settings.kind, settings.arrays, self._lengths, u, n
        )
        ids, scores, made = np.asarray(ids), np.asarray(scores), int(made)
        self.made_by[1] += made
        for slot in running:
            self._lengths[slot] = min(self._lengths[slot] + made, np.iinfo(np.int32).max)
        for slot, stream in drawn_by_plan.items():
            stream.take(ids[:made, slot].tolist(), scores[:made, slot].tolist())
        for slot in full:
            if running[slot].status not in ("finished", "failed"):
                self.fill(slot, running[slot].tokens[-window:], 0, window)

    def fill(self, slot: int, context: list[int], begin: int, end: int) -> None:
        """Prefill a slot with positions of a context, padded to a power of two."""
        config, stream, tokens = self._model.config, self.streams[slot], context[begin:end]
        room = config.cached - begin if begin else config.seq_len
        padded = np.full((1, min(room, 1 << (len(tokens) - 1).bit_length())), tokens[0], np.int32)
        padded[0, : len(tokens)] = tokens  # the others are of the text's own too: another may be NaN
        scores = stream is not None and stream.unscored
        if begin:
            self._state, all_logits = self._continue(
                self._held, self._state, padded, slot, begin, len(tokens), scores
            )
        else:
            made, all_logits = self._prefill(self._held, padded, len(tokens), scores)
            self._state = self._insert(self._state, made, slot, len(tokens))
        if stream is not None and scores:
            stream.score(np.asarray(all_logits)[0, : len(tokens)])
        if end == len(context):
            self._lengths[slot] = end
        self.filled += len(tokens)

    def _parameters(self) -> dict[str, Any]:
        held = self._layout.placed({name: p.data for name, p in self._model.parameters().items()})
        if self._weights.native:
            return held
        tables = {name for name, p in self._layout.declared.items() if len(p.shape) > 1}
        return {name: a.astype(self._weights.name) if name in tables else a for name, a in held.items()}

    def _empty(self) -> State:
        """Return empty caches for all slots, and logits."""
        return self._caches(self.slots, self._model.config.cached), jnp.zeros(
            (self.slots, self._model.config.vocab_size), jnp.float32
        )

    def _caches(self, streams: int, places: int) -> Caches:
        return [
            tuple(jnp.zeros((stack.count, streams, heads, places, width), jnp.float32) for _ in range(2))
            for stack in self._layout.stacks
            for heads, width in [stack.block.attention.cache_shape]
        ]

    def _run(
        self,
        parameters: Any,
        state: State,
        kind: Kind,
        settings: Any,
        lengths: Any,
        u: Any,
        n: Any,
    ) -> tuple[State, Any, Any, Any]:
        """Draw n tokens, each from the logits after the previous one; stop if logits are not finite."""

        def going(carry: Any) -> Any:
            i, *_, sound, _ = carry
            return (i < n) & sound

        def token(carry: Any) -> Any:
            i, (caches, logits), ids, scores, _, occurred = carry
            given = settings | {"occurred": occurred}
            drawn_ids, score, sound = drawn(logits, u[i], kind, given)
            if kind.penalises:
                occurred = occurred.at[jnp.arange(len(drawn_ids)), drawn_ids].set(True)
            at = lengths + i * settings["runs"]
            caches, after = self._forward(parameters, jnp.maximum(drawn_ids, 0)[:, None], caches, at, 0)
            ids, scores = ids.at[i].set(drawn_ids), scores.at[i].set(score)
            return i + 1, (caches, after), ids, scores, sound, occurred

        empty = jnp.zeros(u.shape, jnp.int32), jnp.zeros(u.shape, jnp.float32)
        begun = jnp.int32(0), state, *empty, jnp.bool_(True), settings.get("occurred", ())
        made, state, ids, scores, *_ = lax.while_loop(going, token, begun)
        return state, ids, scores, made

    def _prefilled(self, parameters: Any, tokens: Any, length: Any, scores: bool) -> tuple[State, Any]:
        """Return the cache of a padded prompt (1, T), the logits after position length - 1, and all if it scores."""
        empty = self._caches(1, tokens.shape[1])
        return self._filled(parameters, tokens, empty, jnp.zeros(1, jnp.int32), length - 1, scores)

    def _filled(
        self, parameters: Any, tokens: Any, caches: Caches, start: Any, last: Any, scores: bool
    ) -> tuple[State, Any]:
        if not scores:
            return self._forward(parameters, tokens, caches, start, last), ()
        caches, logits = self._forward(parameters, tokens, caches, start)
        return (caches, lax.dynamic_slice_in_dim(logits, last, 1, axis=1)[:, 0]), logits

    def _continued(
        self, parameters: Any, state: State, tokens: Any, slot: Any, start: Any, length: Any, scores: bool
    ) -> tuple[State, Any]:
        """Return the state with padded tokens (1, T) behind the first `start` positions of a slot, and all logits."""
        caches, logits = state
        own = jax.tree.map(lambda a: lax.dynamic_slice_in_dim(a, slot, 1, axis=1), caches)
        (own, after), every = self._filled(parameters, tokens, own, jnp.full(1, start, jnp.int32), length - 1, scores)
        caches = jax.tree.map(lambda a, b: lax.dynamic_update_slice_in_dim(a, b, slot, axis=1), caches, own)
        return (caches, lax.dynamic_update_slice_in_dim(logits, after, slot, axis=0)), every

    def _forward(
        self, parameters: Any, tokens: Any, caches: Caches, start: Any, last: Any = None
    ) -> tuple[Caches, Any]:
        """Return the caches with tokens (B, T) from start (B,) on, and the logits after number `last`, or all."""
        layout, after = self._layout, []
        outside = layout.tree(tensors(layout, layout.outside(parameters)))
        with interpreting(Decoding(TraceSettings())):
            x = layout.layers.begin(outside, tokens, start).data
            for stack, cache in zip(layout.stacks, caches, strict=True):
                x, cache = lax.scan(partial(self._block, stack, start), x, (layout.of(stack, parameters), cache))
                after.append(cache)
            if last is None:
                return after, layout.layers.finish(outside, Tensor(x)).data
            x = lax.dynamic_slice_in_dim(x, last, 1, axis=1)
            return after, layout.layers.finish(outside, Tensor(x)).data[:, 0]

    def _block(self, stack: Stack, start: Any, x: Any, given: Any) -> tuple[Any, Any]:
        arrays, (keys, values) = given
        kept = Tensor(keys), Tensor(values)
        made, after = stack.block.apply(stack.tree(tensors(self._layout, arrays)), Tensor(x), start, kept)
        return made.data, tuple(t.data for t in after or ())


def _inserted(state: State, made: State, slot: Any, length: Any) -> State:
    """Return the state with a prompt's cache and logits in a slot; a long prompt fills it with its last positions."""
    (caches, logits), (new, after) = state, made

    def put(all_slots: Any, one: Any) -> Any:
        places = jnp.arange(all_slots.shape[3])
        position = length - 1 - (length - 1 - places) % len(places)  # the last position stored in each place
        rows = jnp.take(one, jnp.clip(position, 0, one.shape[3] - 1), axis=3)
        return lax.dynamic_update_slice_in_dim(all_slots, rows, slot, axis=1)

    caches = [tuple(map(put, *pair)) for pair in zip(caches, new, strict=True)]
    return caches, lax.dynamic_update_slice_in_dim(logits, after, slot, axis=0)
