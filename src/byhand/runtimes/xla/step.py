"""A training step as one traced function: micro-batches, their gradients, the update."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from byhand.errors import ConfigError
from byhand.layers.parameter import Arrays
from byhand.optim import AdamW, update
from byhand.runtimes.protocol import Batch, Shape
from byhand.runtimes.xla.applying import TraceSettings
from byhand.runtimes.xla.gradients import loss_and_gradients
from byhand.runtimes.xla.layout import Layout
from byhand.runtimes.xla.mesh import TOKENS

Held = tuple[dict[str, Any], ...]  # parameters, m, v and averages, on the devices
Step = Callable[[Held, list[Batch], tuple[Any, Any, Any]], tuple[Held, Any, Any]]


def traced_step(layout: Layout, optimizer: AdamW, settings: TraceSettings, shapes: Sequence[Shape]) -> Step:
    """Return the step of micro-batches of these shapes: (held, batches, (lr, max_norm, t)) -> (held, loss, norm).

    Micro-batches of one shape are scanned. If loss or norm is not finite, the held arrays stay unchanged.
    """
    fixed = optimizer.settings(decaying(layout, optimizer))
    packed = {name for name, parts in fixed.parts.items() if name in layout.declared and parts > 1}
    fixed = fixed._replace(parts=dict.fromkeys(fixed.parts, 1))  # held with a separate axis
    total = sum(b * t for b, t in shapes)

    def of_batch(parameters: Arrays, batch: Batch, shape: Shape) -> Any:
        weight = shape[0] * shape[1] / total / layout.mesh.tokens
        here = replace(settings, positions=layout.mesh.positions(shape[1]))
        loss, gradients = loss_and_gradients(layout, parameters, batch, weight, here)
        return weight * loss, gradients

    def of_tokens(parameters: Arrays, batches: list[Batch]) -> Any:
        """Return loss and gradients of a device's tokens, summed over all devices after the last micro-batch.

        Each micro-batch waits for the one before: hosts must reach their exchanges in the same order, or they
        deadlock.
        """
        if len(set(shapes)) == 1 < len(shapes):
            whole = jax.tree.map(lambda *parts: jnp.stack(parts), *batches)
            made = jax.eval_shape(lambda p, b: of_batch(p, b, shapes[0]), parameters, batches[0])
            zeros = jax.tree.map(lambda array: jnp.zeros(array.shape, array.dtype), made)
            made, _ = lax.scan(lambda sums, b: (_sum(sums, of_batch(parameters, b, shapes[0])), None), zeros, whole)
        else:
            made = of_batch(parameters, batches[0], shapes[0])
            for batch, shape in zip(batches[1:], shapes[1:], strict=True):
                made = _sum(made, of_batch(parameters, _after(made[0], batch), shape))
        loss, gradients = made
        loss = lax.psum(loss, TOKENS) if layout.mesh.tokens > 1 else loss
        return loss, {name: layout.summed(name, d) for name, d in gradients.items()}

    places = PartitionSpec(), {name: layout.rows_spec(name) for name in layout.declared}
    gradients_of = layout.by_tokens(of_tokens, [layout.mesh.batch_spec(shape) for shape in shapes], places)

    def step(held: Held, batches: list[Batch], numbers: tuple[Any, Any, Any]) -> tuple[Held, Any, Any]:
        parameters, (lr, max_norm, t) = held[0], numbers
        loss, gradients = gradients_of(parameters, batches)
        parameters, m, v, averages, gradients = _turned((*held, gradients), packed)
        limit = jnp.where(max_norm > 0, max_norm, jnp.finfo(jnp.float32).max)
        updated, norm = update(parameters, gradients, (m, v, averages), t, lr, fixed._replace(max_norm=limit))
        sound = jnp.isfinite(loss) & jnp.isfinite(norm)
        made = _turned([{name: updated[name][i] for name in part} for i, part in enumerate(held)], packed)
        after = jax.tree.map(lambda new, old: jnp.where(sound, new, old), tuple(made), held)
        return after, loss, norm

    return step


def _turned(held: Sequence[Arrays], packed: Collection[str]) -> list[dict[str, Any]]:
    """Swap the axes of rows and of packed parts, so that the last two axes are those of a matrix; and back."""
    return [{name: jnp.swapaxes(a, -3, -2) if name in packed else a for name, a in part.items()} for part in held]


def decaying(layout: Layout, optimizer: AdamW) -> frozenset[str]:
    """Return the arrays that weight decay acts on; ConfigError if the optimizer treats equal blocks differently."""
    found = set()
    for name, parameter in layout.declared.items():
        array = np.broadcast_to(np.float32(0), parameter.shape)
        answers = {
            (optimizer.decays(n, array), optimizer.scales.get(n), optimizer.parts.get(n)) for n in layout.names(name)
        }
        if len(answers) > 1:
            raise ConfigError(
                f"the optimizer updates {name} otherwise in other blocks. Use --runtime loops or numpy."
            )
        found |= {name} if answers.pop()[0] else set()
    return frozenset(found)


def _after(loss: Any, batch: Batch) -> Batch:
    """Make a batch depend on a loss and leave it unchanged: min(|loss|, 0) is 0, and NaN as an integer is 0, too."""
    zero = jnp.minimum(jnp.abs(loss), 0.0).astype(jnp.int32)
    return jax.tree.map(lambda tokens: tokens + zero.astype(tokens.dtype), batch)


def _sum(a: Any, b: Any) -> Any:
    return jax.tree.map(jnp.add, a, b)
