"""A training step as one traced function: micro-batches, their gradients, the update."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from byhand.errors import ConfigError
from byhand.optim import AdamW, UpdateSettings, update
from byhand.runtimes.protocol import Batch, Shape
from byhand.runtimes.xla.applying import TraceSettings
from byhand.runtimes.xla.gradients import loss_and_gradients
from byhand.runtimes.xla.layout import Layout
from byhand.runtimes.xla.mesh import TOKENS

Arrays = Mapping[str, Any]  # by parameter name
Held = tuple[dict[str, Any], ...]  # parameters, m and v, on the devices
Step = Callable[[Held, list[Batch], tuple[Any, Any, Any]], tuple[Held, Any, Any]]


def traced_step(layout: Layout, optimizer: AdamW, settings: TraceSettings, shapes: Sequence[Shape]) -> Step:
    """Return the step of micro-batches of these shapes: (held, batches, (lr, max_norm, t)) -> (held, loss, norm).

    Micro-batches of one shape are scanned. If loss or norm is not finite, what is held stays as it was.
    """
    fixed = UpdateSettings(optimizer.betas, optimizer.eps, optimizer.weight_decay, decaying(layout, optimizer))
    total = sum(b * t for b, t in shapes)

    def of_batch(parameters: Arrays, batch: Batch, shape: Shape) -> Any:
        weight = shape[0] * shape[1] / total / layout.mesh.tokens
        here = replace(settings, positions=layout.mesh.positions(shape[1]))
        loss, gradients = loss_and_gradients(layout, parameters, batch, weight, here)
        return weight * loss, gradients

    def of_tokens(parameters: Arrays, batches: list[Batch]) -> Any:
        """Return loss and gradients of a device's tokens, summed over all once, after the last micro-batch."""
        made = of_batch(parameters, batches[0], shapes[0])
        if len(set(shapes)) == 1 < len(shapes):
            rest = jax.tree.map(lambda *parts: jnp.stack(parts), *batches[1:])
            made, _ = lax.scan(lambda sums, b: (_sum(sums, of_batch(parameters, b, shapes[0])), None), made, rest)
        else:
            for batch, shape in zip(batches[1:], shapes[1:], strict=True):
                made = _sum(made, of_batch(parameters, batch, shape))
        loss, gradients = made
        loss = lax.psum(loss, TOKENS) if layout.mesh.tokens > 1 else loss
        return loss, {name: layout.summed(name, d) for name, d in gradients.items()}

    places = PartitionSpec(), {name: layout.rows_spec(name) for name in layout.declared}
    gradients_of = layout.by_tokens(of_tokens, [layout.mesh.batch_spec(shape) for shape in shapes], places)

    def step(held: Held, batches: list[Batch], numbers: tuple[Any, Any, Any]) -> tuple[Held, Any, Any]:
        (parameters, m, v), (lr, max_norm, t) = held, numbers
        loss, gradients = gradients_of(parameters, batches)
        limit = jnp.where(max_norm > 0, max_norm, jnp.finfo(jnp.float32).max)
        updated, norm = update(parameters, gradients, (m, v), t, lr, fixed._replace(max_norm=limit))
        sound = jnp.isfinite(loss) & jnp.isfinite(norm)
        after = tuple(
            {name: jnp.where(sound, updated[name][i], old) for name, old in part.items()}
            for i, part in enumerate(held)
        )
        return after, loss, norm

    return step


def decaying(layout: Layout, optimizer: AdamW) -> frozenset[str]:
    """Return the arrays that weight decay acts on; ConfigError if it treats equal blocks differently."""
    found = set()
    for name, parameter in layout.declared.items():
        array = np.broadcast_to(np.float32(0), parameter.shape)
        answers = {optimizer.decays(each, array) for each in layout.names(name)}
        if len(answers) > 1:
            raise ConfigError(f"weight decay acts on {name}, but not in every block. Use --runtime loops or numpy.")
        found |= {name} if answers.pop() else set()
    return frozenset(found)


def _sum(a: Any, b: Any) -> Any:
    return jax.tree.map(jnp.add, a, b)
