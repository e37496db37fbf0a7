"""Generation by XLA: the prompt at once, then runs of tokens, each run one call; the cache has a fixed shape.

Positions are data: one compiled program serves all of them. A prompt is padded to a power of two; no position attends
to the padding. Past the window every position moves, and the window is recomputed; without a table of positions the
cache is a ring, and the newest key takes the oldest one's place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from byhand.engine import Tensor
from byhand.engine.context import interpreting
from byhand.equations.softmax import softmax
from byhand.errors import UNSOUND_LOGITS, ConfigError, NonFiniteError
from byhand.formats.registry import FORMATS
from byhand.runtimes.protocol import Request
from byhand.runtimes.sampling import Sampling, probabilities
from byhand.runtimes.xla import compiling
from byhand.runtimes.xla.applying import Evaluating, Piece, TraceSettings
from byhand.runtimes.xla.gradients import tensors
from byhand.runtimes.xla.layout import Layout, Stack
from byhand.runtimes.xla.mesh import mesh_of

MASKED = ("causal_softmax", "window_softmax")  # they read scores, and know here which key lies in which place
RUN = 32  # tokens drawn in one call
Caches = list[tuple[Any, ...]]  # keys and values (L, B, H, S, D) of each stack


class Decoding(Evaluating):
    """Evaluates with positions from `start` on, which is data: the mask compares with it.

    The place of position p in a cache of S places is p mod S.
    """

    def __init__(self, settings: TraceSettings, start: Any) -> None:
        super().__init__(settings)
        self._start = start
        self._scores: list[Any] = []

    def apply(self, equation: Any, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Apply the equation; ConfigError if it reads scores and would take the place of a key for its position."""
        if equation.name not in MASKED and any(x is scores for x in inputs for scores in self._scores):
            raise ConfigError(
                f"the xla runtime does not generate with {equation.name}, which reads attention scores: "
                "its cache holds the keys in another order. Use --runtime numpy."
            )
        made = super().apply(equation, inputs, static, name)
        if equation.name == "attention_scores":
            self._scores.append(made)
        return made

    def watched(self, piece: Piece) -> Piece:
        """Let a query see the keys up to its own position; widen rows of tables that are kept in halves."""

        def causal(scores: Any, window: int | None = None) -> Any:
            t, s = scores.shape[-2:]
            position = self._start + jnp.arange(t)[:, None]
            age = (position - jnp.arange(s)) % s  # of the key in each place: the cache is a ring
            return softmax.forward(jnp.where((age <= position) & (age < (window or s)), scores, -jnp.inf))

        def widened(*arrays: Any, **static: Any) -> Any:
            result, saved = piece.forward(*arrays, **static)
            return jax.tree.map(lambda a: a.astype(jnp.float32), result), saved

        return Piece(piece.name, causal if piece.name in MASKED else widened, piece.vjp)


class XlaDecoder:
    """Continues streams on a device; see `Decoder`."""

    def __init__(self, model: Any, request: Request) -> None:
        compiling.prepare()
        self._model = model
        self._weights = FORMATS[request.weights]
        self._layout = Layout(model.layers, model.config, mesh_of(""))
        self._programs: dict[Any, tuple[Callable[..., Any], ...]] = {}
        self.made_by: Counter[int] = Counter()

    def generate(
        self, prompts: Sequence[Sequence[int]], count: int, sampling: Sampling, allowed: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Yield runs of ids, (n, streams)."""
        window, slides = self._model.config.seq_len, self._model.config.slides
        rng = np.random.default_rng(sampling.seed)
        text = np.array(prompts, np.int32)
        parameters = self._parameters()
        prefill, decode, slide = self._compiled(sampling, allowed)
        length = min(text.shape[1], window)
        padded = np.zeros((len(text), min(window, 1 << (length - 1).bit_length())), np.int32)
        padded[:, :length] = text[:, -length:]
        caches, logits = prefill(parameters, padded, length)
        state = caches, np.int32(length)
        while count:
            if length == window and caches is not None and not slides:
                caches, state = None, text[:, -window:]
            kept = slides or length < window
            n = min(RUN, count) if slides or not kept else min(RUN, count, window - length)
            u = np.zeros((RUN, len(text)), np.float32)
            if not sampling.greedy:
                u[:n] = rng.random((n, len(text)))
            state, logits, ids, made = (decode if kept else slide)(parameters, state, logits, u, n)
            ids, made = np.asarray(ids), int(made)
            if made:
                text = np.concatenate([text, ids[:made].T], axis=1)
                self.made_by[1] += made
                yield ids[:made]
            if made < n:
                raise NonFiniteError(UNSOUND_LOGITS)
            length, count = length + n if slides else min(length + n, window), count - n

    def _parameters(self) -> dict[str, Any]:
        held = self._layout.placed({name: p.data for name, p in self._model.parameters().items()})
        if self._weights.native:
            return held
        tables = {name for name, p in self._layout.declared.items() if len(p.shape) > 1}
        return {name: a.astype(self._weights.name) if name in tables else a for name, a in held.items()}

    def _compiled(self, sampling: Sampling, allowed: np.ndarray | None) -> tuple[Callable[..., Any], ...]:
        """Return prefill, and runs of tokens with the cache and past the window."""
        key = (replace(sampling, seed=0), None if allowed is None else allowed.tobytes())
        if key not in self._programs:
            runs = (partial(self._run, feed, sampling, allowed) for feed in (self._fed, self._slid))
            self._programs[key] = jax.jit(self._prefilled), *(jax.jit(run, donate_argnums=1) for run in runs)
        return self._programs[key]

    def _run(
        self, feed: Callable[..., Any], sampling: Sampling, allowed: Any, *given: Any
    ) -> tuple[Any, Any, Any, Any]:
        """Draw n tokens, each from the logits after the one before; stop if logits are not finite."""
        parameters, state, logits, u, n = given

        def going(carry: Any) -> Any:
            i, *_, sound = carry
            return (i < n) & sound

        def token(carry: Any) -> Any:
            i, state, logits, ids, _ = carry
            drawn_ids, sound = drawn(logits, u[i], sampling, allowed)
            state, after = feed(parameters, state, drawn_ids)
            return i + sound, state, after, ids.at[i].set(drawn_ids), sound

        begun = (jnp.int32(0), state, logits, jnp.zeros(u.shape, jnp.int32), jnp.bool_(True))
        made, state, logits, ids, _ = lax.while_loop(going, token, begun)
        return state, logits, ids, made

    def _prefilled(self, parameters: Any, tokens: Any, length: Any) -> tuple[Caches, Any]:
        """Return the caches of padded prompts (B, T) and the logits after position length - 1."""
        config = self._model.config
        empty = [
            tuple(jnp.zeros((stack.count, len(tokens), heads, config.seq_len, width), jnp.float32) for _ in range(2))
            for stack in self._layout.stacks
            for heads, width in [stack.block.attention.cache_shape]
        ]
        return self._forward(parameters, tokens, empty, jnp.int32(0), length - 1)

    def _fed(self, parameters: Any, state: tuple[Caches, Any], tokens: Any) -> tuple[tuple[Caches, Any], Any]:
        caches, position = state
        caches, logits = self._forward(parameters, tokens[:, None], caches, position, 0)
        return (caches, position + 1), logits

    def _slid(self, parameters: Any, window: Any, tokens: Any) -> tuple[Any, Any]:
        window = jnp.concatenate([window[:, 1:], tokens[:, None]], axis=1)
        return window, self._prefilled(parameters, window, window.shape[1])[1]

    def _forward(self, parameters: Any, tokens: Any, caches: Caches, start: Any, last: Any) -> tuple[Caches, Any]:
        """Return the caches with tokens (B, T) from position start on, and the logits (B, V) after number last."""
        layout, after = self._layout, []
        outside = layout.tree(tensors(layout, layout.outside(parameters)))
        with interpreting(Decoding(TraceSettings(), start)):
            x = layout.layers.begin(outside, tokens, start).data
            for stack, cache in zip(layout.stacks, caches, strict=True):
                x, cache = lax.scan(partial(self._block, stack, start), x, (layout.of(stack, parameters), cache))
                after.append(cache)
            x = lax.dynamic_slice_in_dim(x, last, 1, axis=1)
            return after, layout.layers.finish(outside, Tensor(x)).data[:, 0]

    def _block(self, stack: Stack, start: Any, x: Any, given: Any) -> tuple[Any, Any]:
        arrays, cache = given
        after = []

        def extend(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            after.extend(
                lax.dynamic_update_slice_in_dim(old, new.data, start % old.shape[2], axis=2)
                for old, new in zip(cache, (k, v), strict=True)
            )
            return Tensor(after[0]), Tensor(after[1])

        made = stack.block.apply(stack.tree(tensors(self._layout, arrays)), Tensor(x), start, extend)
        return made.data, tuple(after)


def drawn(logits: Any, u: Any, sampling: Sampling, allowed: Any) -> tuple[Any, Any]:
    """Return an id for each row of logits (B, V) and random number u (B,), and whether the logits are finite.

    The same inverse CDF as `runtimes.sampling.draw`, on the device.
    """
    if allowed is not None:
        logits = jnp.where(allowed, logits, -jnp.inf)
    sound = jnp.all(jnp.isfinite(jnp.max(logits, axis=-1)))
    if sampling.greedy:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32), sound
    cumulative = jnp.cumsum(probabilities(logits, sampling), axis=-1)
    most = cumulative[:, -1:]
    below = jnp.minimum(u[:, None] * most, jnp.nextafter(most, jnp.zeros_like(most)))
    return jnp.sum(cumulative <= below, axis=-1).astype(jnp.int32), sound
