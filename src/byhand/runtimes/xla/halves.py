"""Halves of equations as applied in a trace, and attention's with positions before heads, (B, T, H, D)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from byhand.engine.equation import Equation
from byhand.equations.low_rank import low_rank
from byhand.equations.rms_norm import rms_norm
from byhand.equations.rotary import rotary


@dataclass(frozen=True, eq=False)
class Halves:
    """The two halves of an equation as applied in a trace, perhaps wrapped or replaced."""

    name: str
    forward: Callable[..., Any]
    vjp: Callable[..., tuple[Any, ...]]
    multiplies: bool = False

    @classmethod
    def of(cls, equation: Equation) -> Halves:
        """Return the equation's own halves."""
        return cls(equation.name, equation.forward, equation.vjp, equation.products is not None)


def _heads(h: Any, w: Any, b: Any = None, *, n_heads: int, n_kv_heads: int) -> Any:
    """Return queries (B, T, H, D), keys and values (B, T, K, D): `linear` with a separate axis for the packed parts.

    So each tensor-parallel device holds columns of each part, and only grouped queries are resharded.
    """
    group, shape = n_heads // n_kv_heads, h.shape[:2]
    parts = jnp.einsum("btc,cpn->pbtn", h, w.reshape((w.shape[0], group + 2, -1)))
    if b is not None:
        parts = parts + b.reshape((group + 2, 1, 1, -1))
    parts = parts.reshape((group + 2, *shape, n_kv_heads, -1))
    q = parts[0] if group == 1 else jnp.moveaxis(parts[:group], 0, 2).reshape((*shape, n_heads, -1))
    return (q, parts[-2], parts[-1]), (h, w) if b is None else (h, w, b)


def _heads_back(saved: Any, d_parts: Any, *, n_heads: int, n_kv_heads: int) -> Any:
    h, w, *b = saved
    group, shape = n_heads // n_kv_heads, h.shape[:2]
    if group > 1:
        d_q, *d_others = d_parts
        d_parts = *jnp.moveaxis(d_q.reshape((*shape, group, n_kv_heads, -1)), 2, 0), *d_others
    d = jnp.stack(d_parts).reshape((group + 2, *shape, -1))
    d_h = jnp.einsum("pbtn,cpn->btc", d, w.reshape((w.shape[0], group + 2, -1)))
    d_w = jnp.einsum("btc,pbtn->cpn", h, d).reshape(w.shape)
    return (d_h, d_w, *(d.sum(axis=(1, 2)).reshape(bias.shape) for bias in b))


def _turned(x: Any, start: Any = None, **settings: Any) -> Any:
    """Apply `rotary` to (B, T, H, D)."""
    result, saved = rotary.forward(jnp.swapaxes(x, 1, 2), start, **settings)
    return jnp.swapaxes(result, 1, 2), saved


def _turned_back(saved: Any, d: Any, **settings: Any) -> Any:
    d_x, *start = rotary.vjp(saved, jnp.swapaxes(d, 1, 2), **settings)
    return jnp.swapaxes(d_x, 1, 2), *start


def _adapted(w: Any, down: Any, up: Any, *, scale: float) -> Any:
    """Return w + scale down up; w and up may have a separate axis for the packed parts."""
    made, saved = low_rank.forward(w.reshape((w.shape[0], -1)), down, up.reshape((up.shape[0], -1)), scale=scale)
    return made.reshape(w.shape), (*saved, up)


def _adapted_back(saved: Any, d: Any, *, scale: float) -> Any:
    *thin, up = saved
    _, d_down, d_up = low_rank.vjp(thin, d.reshape((d.shape[0], -1)), scale=scale)
    return d, d_down, d_up.reshape(up.shape)


def _whole_normed(x: Any, gain: Any = None, **settings: Any) -> Any:
    """Apply `heads_rms_norm` to (B, T, H, D): concatenated heads are one row."""
    result, saved = rms_norm.forward(x.reshape((*x.shape[:2], -1)), gain, **settings)
    return result.reshape(x.shape), saved


def _whole_normed_back(saved: Any, d: Any, **settings: Any) -> Any:
    d_x, *d_gain = rms_norm.vjp(saved, d.reshape((*d.shape[:2], -1)), **settings)
    return d_x.reshape(d.shape), *d_gain


ADAPTED = Halves("adapted", _adapted, _adapted_back)
HEADS = Halves("heads", _heads, _heads_back, multiplies=True)
WHOLE_NORMED = Halves("whole_normed", _whole_normed, _whole_normed_back)
TURNED = Halves("turned", _turned, _turned_back)
MERGED = Halves(
    "merged", lambda x: (x.reshape((*x.shape[:2], -1)), (x,)), lambda saved, d: (d.reshape(saved[0].shape),)
)
