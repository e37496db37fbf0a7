"""How equations are applied while a step is traced: precision, and attention kernels.

Equations with matrix products multiply in the format of products, if one is set, and accumulate in float32; all
others compute in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import lax

from byhand.engine import Tensor, scope
from byhand.engine.equation import Composite, Equation
from byhand.engine.interpreter import Evaluate, Record
from byhand.engine.tensor import as_tensor
from byhand.equations.linear import linear
from byhand.equations.low_rank import adapted
from byhand.equations.rms_norm import rms_norm
from byhand.formats.registry import FLOAT32, Format
from byhand.runtimes.xla.halves import ADAPTED, HEADS, MERGED, TURNED, WHOLE_NORMED, Halves


@dataclass(frozen=True)
class TraceSettings:
    """How a trace computes.

    products   format to which matmul inputs are rounded
    attention  "equations", or a kernel of `jax.nn.dot_product_attention`: "xla", "cudnn"
    recompute  what the backward pass recomputes: "nothing", "cheap" (all but products), whole "blocks"
    logits     the most logits computed at once
    positions  number of devices that shard the positions of a row: keys and values are all-gathered
    """

    products: Format = FLOAT32
    attention: str = "equations"
    recompute: str = "nothing"
    logits: int = 1 << 24
    positions: int = 1

    @property
    def multiplied(self) -> Any:
        """The type of matmul inputs."""
        return jnp.dtype(self.products.name)


class Applying(Record):
    """Records applications on traced arrays."""

    _run = Record.apply

    def __init__(self, settings: TraceSettings) -> None:
        self.settings = settings
        self._rounded: dict[tuple[int, Any], tuple[Any, Any]] = {}

    def apply(self, equation: Any, inputs: tuple[Tensor, ...], static: dict[str, Any], name: str) -> Any:
        """Record an application, with this trace's halves."""
        halves = equation if isinstance(equation, Halves) else Halves.of(equation)
        if not self.settings.products.native:
            halves = self._typed(halves)
        return self._run(cast(Equation, self.wrapped(halves)), inputs, static, name)

    def _typed(self, halves: Halves) -> Halves:
        """Return halves that cast their inputs: to the type of products if they contain any, else to float32."""
        kind = self.settings.multiplied if halves.multiplies else jnp.dtype(jnp.float32)

        def forward(*arrays: Any, **static: Any) -> Any:
            return halves.forward(*(self.rounded(a, kind) for a in arrays), **static)

        def vjp(saved: Any, d_result: Any, **static: Any) -> tuple[Any, ...]:
            return halves.vjp(saved, jax.tree.map(lambda d: self.rounded(d, kind), d_result), **static)

        return Halves(halves.name, forward, vjp, halves.multiplies)

    def rounded(self, array: Any, kind: Any) -> Any:
        """Cast a floating-point array; caches the copy, so that the backward pass keeps only one."""
        if not jnp.issubdtype(array.dtype, jnp.floating) or array.dtype == kind:
            return array
        _, made = self._rounded.setdefault((id(array), kind), (array, array.astype(kind)))
        return made

    def round_as(self, array: Any, kind: Any, made: Any) -> None:
        """Cache `made` as the array's copy in this type."""
        self._rounded[id(array), kind] = array, made

    def wrapped(self, halves: Halves) -> Halves:
        """Return the halves; a subclass may wrap the forward one."""
        return halves

    def compose(self, composite: Composite, inputs: tuple[Any, ...], static: dict[str, Any], name: str) -> Tensor:
        """Apply the composition, or a self-attention kernel."""
        if composite.name != "causal_self_attention" or self.settings.attention == "equations":
            return super().compose(composite, inputs, static, name)
        with scope(name):
            return self._attention(*inputs, **static)

    def _attention(
        self, h: Any, w_qkv: Any, b_qkv: Any, w_proj: Any, b_proj: Any, q_gain: Any = None, k_gain: Any = None,
        *cache: Any, n_heads: int, n_kv_heads: int, causal: bool, window: int | None, qk_eps: float | None,
        rotary_settings: dict[str, Any] | None, adapters: tuple[Any, Any] = (None, None), qk_over: str = "head",
        divisor: float | None = None,
    ) -> Any:  # fmt: skip
        """Apply the parts of `causal_self_attention` with positions before heads, (B, T, H, D).

        It names each setting of the composition, so that a new one raises an error instead of being ignored.
        """

        def applied(halves: Halves, *inputs: Any, name: str, **fixed: Any) -> Any:
            return self.apply(halves, tuple(as_tensor(x) for x in inputs if x is not None), fixed, name)

        of_qkv, of_proj = adapters
        if of_qkv:  # adapts the matrix, before its columns are split into heads
            *thin, scale = of_qkv
            w_qkv = applied(ADAPTED, w_qkv, *thin, name="w_qkv", scale=scale)
        q, k, v = applied(HEADS, h, w_qkv, b_qkv, name="heads", n_heads=n_heads, n_kv_heads=n_kv_heads)
        (start,) = cache or (None,)  # only the composition handles cached keys and values
        if qk_eps is not None:
            normed = WHOLE_NORMED if qk_over == "heads" else Halves.of(rms_norm)
            q = applied(normed, q, q_gain, name="q_normed", eps=qk_eps)
            k = applied(normed, k, k_gain, name="k_normed", eps=qk_eps)
        if rotary_settings is not None:
            q = applied(TURNED, q, start, name="q_turned", **rotary_settings)
            k = applied(TURNED, k, start, name="k_turned", **rotary_settings)
        attend = attention(self.settings, causal, window if causal else None, divisor)
        mixed = applied(attend, q, k, v, name="mixed")
        merged = applied(MERGED, mixed, name="merged")
        return adapted(applied(Halves.of(linear), merged, w_proj, b_proj, name="out"), merged, of_proj)


class Evaluating(Applying):
    """Computes the same without recording."""

    _run = Evaluate.apply


def attention(settings: TraceSettings, causal: bool, window: int | None, divisor: float | None = None) -> Halves:
    """Return scaled dot-product attention (B, T, H, D) by one of JAX's kernels, with that kernel's derivative.

    A position attends to the last `window` positions, or to all. If positions are sharded, each device attends from
    its own queries to the all-gathered keys.
    """
    tree: Any = None
    scale = None if divisor is None else divisor**-0.5
    shared = settings.positions > 1

    def attend(q: Any, k: Any, v: Any) -> Any:
        kernel = cast(Any, settings.attention)
        local = None if window is None or window >= k.shape[1] else (window - 1, 0)
        if not shared:
            return jax.nn.dot_product_attention(
                q, k, v, scale=scale, is_causal=causal, implementation=kernel, local_window_size=local
            )
        first = lax.axis_index("sequence") * q.shape[1]
        before = first + jnp.arange(q.shape[1])[:, None] - jnp.arange(k.shape[1])[None, :]
        seen = (before >= 0) & (before < (window or k.shape[1]))
        mask = seen[None, None] if causal else None
        return jax.nn.dot_product_attention(q, k, v, scale=scale, mask=mask, implementation=kernel)

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

    return Halves("attention", forward, vjp, multiplies=True)


def _scattered(d: Any) -> Any:
    """Reduce-scatter in float32 over the devices that shard positions."""
    added = lax.psum_scatter(d.astype(jnp.float32), "sequence", scatter_dimension=1, tiled=True)
    return added.astype(d.dtype)
