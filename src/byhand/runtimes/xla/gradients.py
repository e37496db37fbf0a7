"""A loss and its gradients as one traced function: embedding, scan over blocks, head in chunks; then backwards.

Arrays go by name, and blocks are stacked as in `layout`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from byhand.engine import Tensor
from byhand.engine.context import interpreting
from byhand.equations.cross_entropy import cross_entropy
from byhand.layers.parameter import Arrays
from byhand.runtimes.xla.applying import Applying, Evaluating, TraceSettings
from byhand.runtimes.xla.layout import Layout, Stack
from byhand.runtimes.xla.recomputing import Keeping, Recomputing

Pull = Callable[[Any], tuple[Any, dict[str, Any]]]  # pullback: a result's cotangent -> its input's, and gradients


def loss_and_gradients(
    layout: Layout, parameters: Arrays, batch: tuple[Any, Any], weight: Any, settings: TraceSettings
) -> tuple[Any, dict[str, Any]]:
    """Return weight times the sum of the losses of a device's targets (B, T), and its gradients by name.

    They are not all-reduced yet (`Layout.summed`).
    """
    tokens, targets = batch
    leaves = tensors(layout, layout.outside(parameters))
    with interpreting(Applying(settings)):
        begun = layout.layers.begin(layout.tree(leaves), tokens, _start(tokens, settings))
    x, pulls = begun.data, []
    for stack in layout.stacks:
        x, pull = _through(layout, stack, layout.of(stack, parameters), x, settings)
        pulls.append(pull)
    loss, d_x, gradients = _finished(layout, leaves, x, targets, weight, settings)
    d_x = d_x.astype(x.dtype)
    for pull in reversed(pulls):
        d_x, of_stack = pull(d_x)
        gradients |= of_stack
    for name, d in _pulled(begun, leaves, d_x).items() if begun.requires_grad else ():
        gradients[name] = gradients[name] + d if name in gradients else d
    return loss, {n: layout.held(n, d) if n in leaves else d for n, d in gradients.items()}


def summed_loss(
    layout: Layout, parameters: Arrays, batch: tuple[Any, Any], counted: int, settings: TraceSettings
) -> tuple[Any, Any]:
    """Return the summed loss over the last `counted` targets of each row, and the number of those >= 0.

    Only one chunk's logits exist at a time.
    """
    tokens, targets = batch[0], batch[1][:, -counted:]

    def loss(logits: Tensor, y: Any) -> Any:
        return cross_entropy(logits, y).data * count_targets(y)

    return jnp.sum(_of_chunks(loss, layout, parameters, (tokens, targets), settings)), count_targets(targets)


def count_targets(targets: Any) -> Any:
    """Return the number of targets other than -1, as a float32."""
    return jnp.sum((targets >= 0).astype(jnp.float32))


def row_losses(layout: Layout, parameters: Arrays, batch: tuple[Any, Any], settings: TraceSettings) -> Any:
    """Return the summed loss (B,) of each row's targets other than -1."""

    def loss(logits: Any, y: Any) -> Any:
        return cross_entropy(Tensor(logits[None]), y[None]).data

    def losses(logits: Tensor, y: Any) -> Any:
        found = jax.vmap(jax.vmap(loss))(logits.data, jnp.maximum(y, 0))
        return jnp.sum(jnp.where(y < 0, 0.0, found), axis=1)

    return jnp.sum(_of_chunks(losses, layout, parameters, batch, settings), axis=0)


def _of_chunks(
    loss: Callable[[Tensor, Any], Any], layout: Layout, parameters: Arrays, batch: tuple[Any, Any],
    settings: TraceSettings,
) -> Any:  # fmt: skip
    """Return `loss` of each chunk's logits and targets, for the last positions, which have targets."""
    tokens, targets = batch
    tree = layout.tree(tensors(layout, layout.outside(parameters)))

    def chunk(_: None, part: tuple[Any, Any]) -> tuple[None, Any]:
        x, y = part
        return None, loss(layout.layers.finish(tree, Tensor(x)), y)

    with interpreting(Evaluating(settings)):
        x = stream(layout, parameters, tokens, _start(tokens, settings))[:, -targets.shape[1] :]
        _, found = lax.scan(chunk, None, _chunks(x, targets, layout.config.vocab_size, settings.logits))
    return found


def stream(layout: Layout, parameters: Arrays, tokens: Any, start: Any = None) -> Any:
    """Return the stream after the last block, (B, T, C), under the current interpreter."""
    x = layout.layers.begin(layout.tree(tensors(layout, layout.outside(parameters))), tokens, start).data
    for stack in layout.stacks:

        def block(x: Any, arrays: Arrays, stack: Stack = stack) -> tuple[Any, None]:
            made, _ = stack.block.apply(stack.tree(tensors(layout, arrays)), Tensor(x), start)
            return made.data, None

        x, _ = lax.scan(block, x, layout.of(stack, parameters))
    return x


def _start(rows: Any, settings: TraceSettings) -> Any:
    """Return the position of the first token of a device's rows (B, T, ...); None: 0."""
    return lax.axis_index("sequence") * rows.shape[1] if settings.positions > 1 else None


def _through(layout: Layout, stack: Stack, arrays: Arrays, x: Any, settings: TraceSettings) -> tuple[Any, Pull]:
    """Scan the blocks of a stack; return the resulting stream and the pullback."""
    places = []

    def applied(interpreter: Applying, leaves: dict[str, Tensor], x: Any) -> tuple[Tensor, Tensor]:
        entered = Tensor(x, requires_grad=True)
        with interpreting(interpreter):
            return entered, stack.block.apply(stack.tree(leaves), entered, _start(x, settings))[0]

    def gather_rounded(interpreter: Applying, leaves: dict[str, Tensor], arrays: Arrays) -> None:
        """Round matrices before the all-gather; XLA drops the unused float32 one.

        They are sent as integers, since XLA widens halves in collectives between CPUs.
        """
        kind = settings.multiplied
        if not settings.products.native and layout.mesh.fsdp > 1:
            for n, a in arrays.items():
                bits = lax.bitcast_convert_type(a.astype(kind), jnp.dtype(f"uint{8 * kind.itemsize}"))
                gathered = lax.bitcast_convert_type(layout.whole(n, bits), kind)
                interpreter.round_as(leaves[n].data, kind, gathered)

    def forth(x: Any, arrays: Arrays) -> tuple[Any, Any]:
        leaves = tensors(layout, arrays)
        keeping = Keeping(settings, [x, *(t.data for t in leaves.values())])
        gather_rounded(keeping, leaves, arrays)
        _, made = applied(keeping, leaves, x)
        places[:] = keeping.places
        return made.data.astype(x.dtype), (x, keeping.arrays)

    def back(d: Any, before: tuple[Arrays, tuple[Any, list[Any]]]) -> tuple[Any, dict[str, Any]]:
        arrays, (x, kept) = before
        leaves = tensors(layout, arrays)
        recomputing = Recomputing(settings, places, kept)
        gather_rounded(recomputing, leaves, arrays)
        entered, made = applied(recomputing, leaves, x)
        gradients = {n: layout.held(n, g) for n, g in _pulled(made, leaves, d).items()}
        return jnp.asarray(entered.grad, d.dtype), gradients

    x, kept = lax.scan(forth, x, arrays)
    return x, lambda d: lax.scan(back, d, (arrays, kept), reverse=True)


def _finished(
    layout: Layout, leaves: dict[str, Tensor], x: Any, targets: Any, weight: Any, settings: TraceSettings
) -> tuple[Any, Any, dict[str, Any]]:
    """Return weight times the summed loss, the cotangent of the last block's stream x, and the gradients."""
    xs, ys = _chunks(x, targets, layout.config.vocab_size, settings.logits)

    def chunk(x: Any, y: Any) -> tuple[Any, Any]:
        fresh = {n: Tensor(leaf.data, leaf.requires_grad, n) for n, leaf in leaves.items()}
        entered = Tensor(x, requires_grad=True)
        with interpreting(Applying(settings)):
            loss = cross_entropy(layout.layers.finish(layout.tree(fresh), entered), y)
        share = count_targets(y) * weight
        gradients = _pulled(loss, fresh, share)
        return (loss.data * share, gradients), entered.grad

    def add(sums: Any, part: tuple[Any, Any]) -> tuple[Any, Any]:
        made, d = chunk(*part)
        return jax.tree.map(jnp.add, sums, made), d

    if len(xs) == 1:
        (loss, gradients), d_x = chunk(xs[0], ys[0])
        return loss, d_x, gradients
    zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(chunk, xs[0], ys[0])[0])
    (loss, gradients), d_x = lax.scan(add, zeros, (xs, ys))
    return loss, jnp.moveaxis(d_x, 0, 1).reshape(x.shape), gradients


def _chunks(x: Any, targets: Any, vocab_size: int, most: int) -> tuple[Any, Any]:
    """Return stream and targets in n chunks of positions, (n, B, T / n, ...), with at most `most` logits each."""
    b, t = targets.shape
    n = next(n for n in range(1, t + 1) if t % n == 0 and (n == t or b * (t // n) * vocab_size <= most))
    xs, ys = (jnp.moveaxis(a.reshape((b, n, t // n, *a.shape[2:])), 1, 0) for a in (x, targets))
    return xs, ys


def tensors(layout: Layout, arrays: Arrays) -> dict[str, Tensor]:
    """Return the arrays as tensors, each in the shape its layer uses; trained ones require gradients."""
    learns = layout.declared
    return {n: Tensor(layout.whole(n, a), requires_grad=learns[n].trained, name=n) for n, a in arrays.items()}


def _pulled(made: Tensor, leaves: Mapping[str, Tensor], d: Any) -> dict[str, Any]:
    """Walk back from a result; return the gradients of the leaves that it depends on."""
    made.backward(d)
    return {n: leaf.grad.astype(leaf.dtype) for n, leaf in leaves.items() if leaf.grad is not None}
