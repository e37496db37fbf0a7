"""A token drawn on the device: the equations of `runtimes.sampling.draw`, with the host's random numbers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from byhand.equations.softmax import softmax
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.equations.top_p import top_p
from byhand.runtimes.sampling import COLDEST, Sampling


def draws(sampling: Sampling) -> bool:
    """Return whether a token takes a random number."""
    return sampling.temperature >= COLDEST


def drawn(logits: Any, u: Any, sampling: Sampling, allowed: Any = None) -> tuple[Any, Any]:
    """Return an id for each row of logits (B, V) and number u (B,), and whether the logits could be drawn from."""
    if allowed is not None:
        logits = jnp.where(allowed, logits, -jnp.inf)
    sound = jnp.all(jnp.isfinite(jnp.max(logits, axis=-1)))
    if not draws(sampling):
        return jnp.argmax(logits, axis=-1).astype(jnp.int32), sound
    z, _ = temperature.forward(logits, tau=sampling.temperature)
    if sampling.top_k is not None:
        z, _ = top_k.forward(z, k=sampling.top_k)
    if sampling.top_p is not None:
        z, _ = top_p.forward(z, p=sampling.top_p)
    cumulative = jnp.cumsum(softmax.forward(z)[0], axis=-1)
    most = cumulative[:, -1:]
    below = jnp.minimum(u[:, None] * most, jnp.nextafter(most, jnp.zeros_like(most)))
    return jnp.sum(cumulative <= below, axis=-1).astype(jnp.int32), sound
