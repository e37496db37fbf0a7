"""Broadcasting for `add`, `mul` and `matmul`: the check, and an element's source."""

from byhand.engine.arrays import Array, require


def require_broadcast(equation: str, a: Array, b: Array, inner: int = 0) -> None:
    """Raise ShapeError unless shapes agree from the right, where 1 matches any length; `inner` axes are exempt."""
    pairs = zip(reversed(a.shape[: a.ndim - inner]), reversed(b.shape[: b.ndim - inner]), strict=False)
    require(
        all(m == n or 1 in (m, n) for m, n in pairs),
        f"{equation}: shapes {a.shape} and {b.shape} do not broadcast; from the right, lengths must be equal or 1",
    )


def broadcast_index(index: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in an array of `shape` of the element at `index` of the broadcast result."""
    last = index[len(index) - len(shape) :]
    return tuple(0 if n == 1 else i for i, n in zip(last, shape, strict=True))
