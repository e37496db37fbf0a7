"""Arrays: their namespace, and the functions that the array API standard lacks.

Equations call only functions of the standard, found through the array, so that the same two halves run on NumPy and
under `jax.jit`. `sigmoid` and `scatter_add_rows` fill the gaps.
"""

from typing import Any

from byhand.errors import ShapeError

Array = Any  # any array of the array API standard


def namespace(x: Array) -> Any:
    """Return the module of functions that the array itself names (NumPy, `jax.numpy`, ...)."""
    return x.__array_namespace__()


def require(condition: bool, message: str) -> None:
    """Raise ShapeError with this one line unless the condition holds."""
    if not condition:
        raise ShapeError(message)


def as_rows(x: Array) -> Array:
    """View x (..., C) as rows (N, C), so that a batch of products is one matrix product."""
    return x.reshape((-1, x.shape[-1]))


def sum_to_shape(d: Array, shape: tuple[int, ...]) -> Array:
    """Undo broadcasting: sum the cotangent d over every axis along which an array of `shape` was repeated."""
    extra = d.ndim - len(shape)
    repeated = tuple(i + extra for i, n in enumerate(shape) if n == 1 and d.shape[i + extra] != 1)
    axes = tuple(range(extra)) + repeated
    if not axes:
        return d
    return namespace(d).sum(d, axis=axes, keepdims=True).reshape(shape)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)): the exponential is of -|x| on both sides of 0, so that it cannot overflow."""
    xp = namespace(x)
    tail = xp.exp(-xp.abs(x))
    return xp.where(x < 0, tail, xp.ones_like(tail)) / (1.0 + tail)


def scatter_add_rows(n_rows: int, index: Array, rows: Array) -> Array:
    """Return (n_rows, C) whose row r is the sum of rows[i] over all i with index[i] == r.

    index (N,), rows (N, C). Rows are added in their order, so the result does not vary from run to run.
    """
    xp = namespace(rows)
    result = xp.zeros((n_rows, rows.shape[1]), dtype=rows.dtype)
    if hasattr(result, "at"):  # JAX arrays are immutable and bring their own scatter
        return result.at[index].add(rows)
    if rows.shape[0] == 0:
        return result
    order = xp.argsort(index, stable=True)
    ids = index[order]
    first = xp.concat([xp.ones((1,), dtype=bool), ids[1:] != ids[:-1]])
    starts = xp.nonzero(first)[0]
    result[ids[starts]] = xp.add.reduceat(rows[order], starts, axis=0)
    return result
