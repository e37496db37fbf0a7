"""Drawing tokens on a device: all streams' settings as arrays, and one traced draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from byhand.equations.min_p import log_ratio
from byhand.equations.softmax import softmax
from byhand.equations.top_k import ranks
from byhand.runtimes.sampling import Sampling
from byhand.runtimes.streams import Stream


class Kind(NamedTuple):
    """The features that the program needs, because some stream uses them.

    cuts       by top-k or top-p
    bans       some ids
    scored     with log-probabilities
    floors     by min-p
    penalises  repetition
    forced     tokens that were drawn by hand
    """

    cuts: bool
    bans: bool
    scored: bool
    floors: bool
    penalises: bool
    forced: bool


@dataclass(frozen=True)
class Draws:
    """The sampling settings of all slots: arrays, and the features that the program needs."""

    kind: Kind
    arrays: dict[str, Any]

    @classmethod
    def of(cls, streams: list[Stream | None], vocab_size: int) -> Draws:
        """Return those of the streams; a slot without one draws the likeliest, which nobody reads."""
        planned = [stream if stream and not stream.by_hand else None for stream in streams]
        each = [stream.sampling if stream else Sampling(0.0) for stream in planned]
        running = [stream for stream in planned if stream]
        bans = any(stream.allowed is not None for stream in running)
        cuts = any(s.top_k is not None or s.top_p is not None for s in each)
        arrays = {
            "runs": np.array([stream is not None for stream in streams]),
            "greedy": np.array([s.greedy for s in each]),
            "tau": np.array([1.0 if s.greedy else s.temperature for s in each], np.float32),
            "k": np.array([s.top_k or vocab_size for s in each], np.int32),
            "p": np.array([np.inf if s.top_p is None else s.top_p for s in each], np.float32),
        }
        if bans:
            everything = np.ones(vocab_size, bool)
            allowed = (everything if s is None or s.allowed is None else s.allowed for s in planned)
            arrays["allowed"] = np.stack([np.asarray(a, bool) for a in allowed])
        if floors := any(s.min_p for s in each):
            arrays["log_p"] = np.array([log_ratio(s.min_p or 0) for s in each], np.float32)
        if penalises := any(s.penalises for s in each):
            arrays["r"] = np.array([s.repetition_penalty for s in each], np.float32)
            arrays["occurred"] = np.zeros((len(streams), vocab_size), bool)
            for row, stream in zip(arrays["occurred"], planned, strict=True):
                row[stream.tokens if stream and stream.sampling.penalises else []] = True
        if forced := len(running) < sum(stream is not None for stream in streams):
            by_hand = [stream if stream and stream.by_hand else None for stream in streams]
            arrays["forced"] = np.array([stream.tokens[-1] if stream else -1 for stream in by_hand], np.int32)
        return cls(Kind(cuts, bans, any(stream.scored for stream in running), floors, penalises, forced), arrays)


def drawn(logits: Any, u: Any, kind: Kind, settings: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return ids (B,) from logits (B, V) and uniform u (B,), their log-probabilities, and whether all are finite.

    The inverse CDF of `runtimes.sampling.draw`, on the device, with settings for each row; the id is -1 where a row's
    logits are not finite.
    """
    if kind.bans:
        logits = jnp.where(settings["allowed"], logits, -jnp.inf)
    draws = settings["runs"] & (settings["forced"] < 0) if kind.forced else settings["runs"]
    bad = draws & ~jnp.isfinite(jnp.max(logits, axis=-1))
    z = logits
    if kind.penalises:
        r = settings["r"][:, None]
        z = jnp.where(settings["occurred"], jnp.where(z > 0, z / r, z * r), z)
    likeliest = jnp.argmax(z, axis=-1)
    z = z / settings["tau"][:, None]
    least = jnp.max(z, axis=-1) + settings["log_p"] if kind.floors else None
    if kind.cuts:
        rank = ranks(z)
        z = jnp.where(rank < settings["k"][:, None], z, -jnp.inf)
        order = jnp.argsort(rank, axis=-1)
        by_rank = jnp.take_along_axis(softmax.forward(z)[0], order, axis=-1)
        before = jnp.cumsum(by_rank, axis=-1) - by_rank
        kept = (before < settings["p"][:, None]) | (jnp.arange(z.shape[-1]) == 0)
        z = jnp.where(jnp.take_along_axis(kept, rank, axis=-1), z, -jnp.inf)
    if least is not None:
        z = jnp.where(z >= least[:, None], z, -jnp.inf)
    cumulative = jnp.cumsum(softmax.forward(z)[0], axis=-1)
    most = cumulative[:, -1:]
    below = jnp.minimum(u[:, None] * most, jnp.nextafter(most, jnp.zeros_like(most)))
    sampled = jnp.sum(cumulative <= below, axis=-1)
    ids = jnp.where(settings["greedy"], likeliest, sampled).astype(jnp.int32)
    scores = jnp.zeros(ids.shape, jnp.float32)
    if kind.scored:
        scores = jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), ids[:, None], axis=-1)[:, 0]
    if kind.forced:
        ids = jnp.where(settings["forced"] < 0, ids, settings["forced"])
    return jnp.where(bad, -1, ids), scores, ~jnp.any(bad)
