"""A training step as one traced function: micro-batches, their gradients, the update."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from byhand.errors import ConfigError
from byhand.layers.parameter import Arrays
from byhand.optim import Optimizer, State, updated
from byhand.runtimes.protocol import Batch, Shape
from byhand.runtimes.xla.applying import TraceSettings
from byhand.runtimes.xla.gradients import count_targets, loss_and_gradients
from byhand.runtimes.xla.layout import Layout
from byhand.runtimes.xla.mesh import TOKENS
from byhand.update_rules import UpdateRule

Step = Callable[[State, list[Batch], tuple[Any, Any, Any]], tuple[State, Any, Any]]


def traced_step(layout: Layout, optimizer: Optimizer, settings: TraceSettings, shapes: Sequence[Shape]) -> Step:
    """Return the step of micro-batches of these shapes: (held, batches, (lr, max_norm, t)) -> (held, loss, norm).

    Micro-batches of one shape are scanned. If loss or norm is not finite, the held arrays stay unchanged.
    """
    rules = rules_of(layout, optimizer)
    copies = [layout.mesh.copies(shape) for shape in shapes]
    shares = [math.lcm(*copies) // n for n in copies]  # so that a token on several devices counts once
    packed = {name for name, rule in rules.items() if rule.unpacked() != rule}  # held with a separate axis
    rules = {name: rule.unpacked() for name, rule in rules.items()}

    def of_tokens(parameters: Arrays, batches: list[Batch]) -> Any:
        """Return loss and gradients of a device's tokens, summed over all devices after the last micro-batch.

        Both are means over the targets of all micro-batches and devices. Each micro-batch waits for the previous one:
        hosts must issue collectives in the same order, or they deadlock.
        """
        count = sum(count_targets(targets) * share for (_, targets), share in zip(batches, shares, strict=True))
        count = lax.psum(count, TOKENS) if layout.mesh.tokens > 1 else count

        def of_batch(parameters: Arrays, batch: Batch, shape: Shape, share: int) -> Any:
            here = replace(settings, positions=layout.mesh.positions(shape[1]))
            return loss_and_gradients(layout, parameters, batch, share / count, here)

        if len(set(shapes)) == 1 < len(shapes):
            whole = jax.tree.map(lambda *parts: jnp.stack(parts), *batches)
            made = jax.eval_shape(lambda p, b: of_batch(p, b, shapes[0], 1), parameters, batches[0])
            zeros = jax.tree.map(lambda array: jnp.zeros(array.shape, array.dtype), made)
            made, _ = lax.scan(
                lambda sums, b: (_sum(sums, of_batch(parameters, b, shapes[0], 1)), None), zeros, whole
            )
        else:
            made = of_batch(parameters, batches[0], shapes[0], shares[0])
            for batch, shape, share in zip(batches[1:], shapes[1:], shares[1:], strict=True):
                made = _sum(made, of_batch(parameters, _after(made[0], batch), shape, share))
        loss, gradients = made
        loss = lax.psum(loss, TOKENS) if layout.mesh.tokens > 1 else loss
        return loss, {name: layout.summed(name, d) for name, d in gradients.items()}

    places = PartitionSpec(), {name: layout.rows_spec(name) for name in rules}
    gradients_of = layout.by_tokens(of_tokens, [layout.mesh.batch_spec(shape) for shape in shapes], places)

    def turned(arrays: Arrays) -> dict[str, Any]:
        """Swap the axes of rows and of packed parts, so that matrices occupy the last two axes; and back."""
        return {name: jnp.swapaxes(a, -3, -2) if name in packed else a for name, a in arrays.items()}

    def step(held: State, batches: list[Batch], numbers: tuple[Any, Any, Any]) -> tuple[State, Any, Any]:
        lr, max_norm, t = numbers
        loss, gradients = gradients_of(held.parameters, batches)
        limit = jnp.where(max_norm > 0, max_norm, jnp.finfo(jnp.float32).max)
        ema = optimizer.settings.ema
        made, norm = updated(State.each(turned, held), turned(gradients), t, lr, rules, limit, ema)
        sound = jnp.isfinite(loss) & jnp.isfinite(norm)
        changed = {name: held.parameters[name] for name in made.parameters}
        kept = jax.tree.map(
            lambda new, old: jnp.where(sound, new, old), State.each(turned, made), held._replace(parameters=changed)
        )
        return kept._replace(parameters=held.parameters | kept.parameters), loss, norm

    return step


def rules_of(layout: Layout, optimizer: Optimizer) -> dict[str, UpdateRule]:
    """Return how each trained array is updated; ConfigError if the optimizer treats equal blocks differently."""
    found = {}
    for name, parameter in layout.declared.items():
        if not parameter.trained:
            continue
        array = np.broadcast_to(np.float32(0), parameter.shape)
        found[name], *others = (optimizer.rule(n, array) for n in layout.names(name))
        if any(other != found[name] for other in others):
            raise ConfigError(
                f"the optimizer updates {name} otherwise in other blocks. Use --runtime loops or numpy."
            )
    return found


def _after(loss: Any, batch: Batch) -> Batch:
    """Make a batch depend on a loss by adding 0: min(|loss|, 0) is 0, and NaN as an integer, too."""
    zero = jnp.minimum(jnp.abs(loss), 0.0).astype(jnp.int32)
    return jax.tree.map(lambda tokens: tokens + zero.astype(tokens.dtype), batch)


def _sum(a: Any, b: Any) -> Any:
    return jax.tree.map(jnp.add, a, b)
