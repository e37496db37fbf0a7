"""Arrays: their namespace, and the functions that the array API standard lacks.

Equations call only standard functions, found through the array, so the same two halves run on NumPy and under
`jax.jit`. `sigmoid`, `erf` and `scatter_add_rows` fill the gaps.
"""

from typing import Any

from byhand.errors import ShapeError

# log(erfc(x)) / x as a polynomial in x - 2, constant first: minimax on [0, 6] for the relative error of erf (Remez)
LOG_ERFC = (
    -2.682470632308342, -0.8678450868429739, -0.0279528774882507, 0.005743879680107926, -0.001086561684990628,
    0.00017708108982686935, -2.0885870239406037e-05, 8.991122705787622e-08, 9.312898565266524e-07,
    -3.6402380564285e-07, 9.510890152735956e-08, -1.863605526605522e-08, 2.558912266509619e-09,
    6.99406415291965e-11, -2.320934025354517e-10, 4.649276187010674e-11, -3.170517574362634e-12,
    8.071394396355826e-12, -1.641502080372475e-12, -5.360969814379346e-13, 1.0417853145023327e-13,
)  # fmt: skip

Array = Any  # any array of the array API standard


def namespace(x: Array) -> Any:
    """Return the array's own namespace (NumPy, `jax.numpy`, ...)."""
    return x.__array_namespace__()


def require(condition: bool, message: str) -> None:
    """Raise ShapeError with this message unless the condition holds."""
    if not condition:
        raise ShapeError(message)


def as_rows(x: Array) -> Array:
    """View x (..., C) as rows (N, C), so that a batch of products is one matrix product."""
    return x.reshape((-1, x.shape[-1]))


def as_tuple(results: Any) -> tuple[Any, ...]:
    """Return an equation's result, or results, as a tuple."""
    return results if isinstance(results, tuple) else (results,)


def sum_to_shape(d: Array, shape: tuple[int, ...]) -> Array:
    """Undo broadcasting: sum the cotangent d over every axis along which `shape` was repeated."""
    extra = d.ndim - len(shape)
    repeated = tuple(i + extra for i, n in enumerate(shape) if n == 1 and d.shape[i + extra] != 1)
    axes = tuple(range(extra)) + repeated
    if not axes:
        return d
    return namespace(d).sum(d, axis=axes, keepdims=True).reshape(shape)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)), computed from exp(-|x|) to avoid overflow."""
    xp = namespace(x)
    tail = xp.exp(-xp.abs(x))
    return xp.where(x < 0, tail, xp.ones_like(tail)) / (1.0 + tail)


def erf(x: Array) -> Array:
    """Return the error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    Equation    erf(x) = 1 - erfc(x) = -expm1(log(erfc(x))) for x >= 0, and erf(-x) = -erf(x)
    Units       relative error below 1e-15 in float64; from 6 on it is 1
    """
    xp = namespace(x)
    size = xp.minimum(xp.abs(x), 6.0 * xp.ones_like(x))
    polynomial = xp.zeros_like(x)
    for coefficient in reversed(LOG_ERFC):
        polynomial = polynomial * (size - 2.0) + coefficient
    return -xp.sign(x) * xp.expm1(size * polynomial)


def positions(start: Array, x: Array) -> Array:
    """Return the positions start, start + 1, ... of x (..., T, D): (T,), or (B, 1, ..., T) where start is (B,)."""
    steps = namespace(x).arange(x.shape[-2])
    return start + steps if start.ndim == 0 else start.reshape((-1, *(1,) * (x.ndim - 2))) + steps


def start_of(inputs: tuple[Array, ...], slot: int, index: tuple[int, ...]) -> int:
    """Return the start of the stream that contains an index of a result; 0 if the optional input is absent."""
    if len(inputs) <= slot:
        return 0
    start = inputs[slot]
    return int(start[index[0]] if getattr(start, "ndim", 0) else start)


def scatter_add_rows(n_rows: int, index: Array, rows: Array) -> Array:
    """Return (n_rows, C) whose row r is the sum of rows[i] over all i with index[i] == r.

    index (N,), rows (N, C). Rows are added in order, so the result is reproducible.
    """
    xp = namespace(rows)
    result = xp.zeros((n_rows, rows.shape[1]), dtype=rows.dtype)
    if hasattr(result, "at"):  # JAX arrays are immutable and have their own scatter
        return result.at[index].add(rows)
    if rows.shape[0] == 0:
        return result
    order = xp.argsort(index, stable=True)
    ids = index[order]
    first = xp.concat([xp.ones((1,), dtype=bool), ids[1:] != ids[:-1]])
    starts = xp.nonzero(first)[0]
    result[ids[starts]] = xp.add.reduceat(rows[order], starts, axis=0)
    return result
