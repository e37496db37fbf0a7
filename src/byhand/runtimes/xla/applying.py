"""What applying an equation means while a step is traced: its precision, and attention by name.

With bfloat16, equations with matrix products multiply bfloat16 and add in float32; all others compute in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax

from byhand.engine import Tensor, scope
from byhand.engine.equation import Composite, Equation
from byhand.engine.interpreter import Evaluate, Record
from byhand.equations.linear import linear


@dataclass(frozen=True)
class TraceSettings:
    """How a trace computes.

    bfloat16   what is multiplied is rounded
    attention  "equations", or the name of a kernel of `jax.nn.dot_product_attention`: "xla", "cudnn"
    recompute  what is computed again on the way back: "nothing", "cheap" (all but products), whole "blocks"
    logits     that are computed at once
    positions  how many devices share the positions of a row: keys and values are gathered
    """

    bfloat16: bool = False
    attention: str = "equations"
    recompute: str = "nothing"
    logits: int = 1 << 24
    positions: int = 1


@dataclass(frozen=True, eq=False)
class Piece:
    """An equation as it is applied here: the same two halves, perhaps rounded or replaced."""

    name: str
    forward: Callable[..., Any]
    vjp: Callable[..., tuple[Any, ...]]
    multiplies: bool = False

    @classmethod
    def of(cls, equation: Equation) -> Piece:
        """Return the equation's own halves."""
        return cls(equation.name, equation.forward, equation.vjp, equation.products is not None)


class Applying(Record):
    """Records applications whose arrays are traced."""

    _run = Record.apply

    def __init__(self, settings: TraceSettings) -> None:
        self.settings = settings
        self._rounded: dict[tuple[int, Any], tuple[Any, Any]] = {}

    def apply(self, equation: Any, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Record a piece with the halves that this trace uses."""
        piece = equation if isinstance(equation, Piece) else Piece.of(equation)
        if self.settings.bfloat16:
            piece = self._typed(piece)
        return self._run(cast(Equation, self.watched(piece)), inputs, static, name)

    def _typed(self, piece: Piece) -> Piece:
        """Return the piece with its inputs in bfloat16 if it multiplies, else in float32."""
        kind = jnp.bfloat16 if piece.multiplies else jnp.float32

        def forward(*arrays: Any, **static: Any) -> Any:
            return piece.forward(*(self.rounded(a, kind) for a in arrays), **static)

        def vjp(saved: Any, d_result: Any, **static: Any) -> tuple[Any, ...]:
            return piece.vjp(saved, jax.tree.map(lambda d: self.rounded(d, kind), d_result), **static)

        return Piece(piece.name, forward, vjp, piece.multiplies)

    def rounded(self, array: Any, kind: Any) -> Any:
        """Return a floating-point array in this type: the same one each time, so that it is kept once."""
        if not jnp.issubdtype(array.dtype, jnp.floating) or array.dtype == kind:
            return array
        _, made = self._rounded.setdefault((id(array), kind), (array, array.astype(kind)))
        return made

    def round_as(self, array: Any, kind: Any, made: Any) -> None:
        """Take `made` wherever the array is rounded to this type."""
        self._rounded[id(array), kind] = array, made

    def watched(self, piece: Piece) -> Piece:
        """Return the piece; a subclass may look at what its forward half gives."""
        return piece

    def compose(self, composite: Composite, inputs: tuple[Any, ...], static: dict[str, Any], name: str) -> Tensor:
        """Apply the composition, or self-attention by name."""
        if composite.name != "causal_self_attention" or self.settings.attention == "equations":
            return super().compose(composite, inputs, static, name)
        with scope(name):
            return self._attention(*inputs, **static)

    def _attention(
        self, h: Tensor, w_qkv: Tensor, b_qkv: Tensor, w_proj: Tensor, b_proj: Tensor, **static: Any
    ) -> Tensor:
        def applied(piece: Piece, *inputs: Tensor, name: str, **fixed: Any) -> Any:
            return self.apply(piece, inputs, fixed, name)

        q, k, v = applied(HEADS, h, w_qkv, b_qkv, name="heads", n_heads=static["n_heads"])
        mixed = applied(attention(self.settings, static["causal"]), q, k, v, name="mixed")
        merged = applied(MERGED, mixed, name="merged")
        return applied(Piece.of(linear), merged, w_proj, b_proj, name="out")


class Evaluating(Applying):
    """Computes in the same way and records nothing."""

    _run = Evaluate.apply


def _heads(h: Any, w: Any, b: Any, *, n_heads: int) -> Any:
    """Return queries, keys and values (B, T, H, D): `linear`, with the packed parts on an axis of their own.

    Devices that share the heads have columns of each part then, and none has to be moved.
    """
    parts = jnp.einsum("btc,cpn->pbtn", h, w.reshape((w.shape[0], 3, -1))) + b.reshape((3, 1, 1, -1))
    q, k, v = parts.reshape((3, *h.shape[:2], n_heads, -1))
    return (q, k, v), (h, w, b)


def _heads_back(saved: Any, d_parts: Any, *, n_heads: int) -> Any:
    h, w, b = saved
    d = jnp.stack(d_parts).reshape((3, *h.shape[:2], -1))
    d_h = jnp.einsum("pbtn,cpn->btc", d, w.reshape((w.shape[0], 3, -1)))
    return d_h, jnp.einsum("btc,pbtn->cpn", h, d).reshape(w.shape), d.sum(axis=(1, 2)).reshape(b.shape)


HEADS = Piece("heads", _heads, _heads_back, multiplies=True)
MERGED = Piece(
    "merged",
    lambda x: (x.reshape((*x.shape[:2], -1)), (x,)),
    lambda saved, d: (d.reshape(saved[0].shape),),
)


def attention(settings: TraceSettings, causal: bool) -> Piece:
    """Return scaled dot-product attention (B, T, H, D) as a kernel that JAX names, with that kernel's derivative.

    Devices that share positions attend from their own queries to the keys of all.
    """
    tree: Any = None
    shared = settings.positions > 1

    def attend(q: Any, k: Any, v: Any) -> Any:
        kernel = cast(Any, settings.attention)
        if not shared:
            return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=kernel)
        first = lax.axis_index("sequence") * q.shape[1]
        seen = first + jnp.arange(q.shape[1])[:, None] >= jnp.arange(k.shape[1])[None, :]
        return jax.nn.dot_product_attention(q, k, v, mask=seen[None, None] if causal else None, implementation=kernel)

    def forward(q: Any, k: Any, v: Any) -> Any:
        nonlocal tree
        if shared:
            k, v = (lax.all_gather(a, "sequence", axis=1, tiled=True) for a in (k, v))
        result, back = jax.vjp(attend, q, k, v)
        leaves, tree = jax.tree.flatten(back)
        return result, tuple(leaves)

    def vjp(saved: Any, d_result: Any) -> Any:
        d_q, *d_all = jax.tree.unflatten(tree, saved)(d_result)
        return d_q, *(_scattered(d) if shared else d for d in d_all)

    return Piece("attention", forward, vjp, multiplies=True)


def _scattered(d: Any) -> Any:
    """Return a device's part of the sum over the devices that share positions, added in float32."""
    added = lax.psum_scatter(d.astype(jnp.float32), "sequence", scatter_dimension=1, tiled=True)
    return added.astype(d.dtype)
