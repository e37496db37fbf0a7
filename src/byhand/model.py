"""TinyGPT: how the equations are wired. No arithmetic of its own, and no array framework by name.

Parameters and activations go by dotted names: `blocks.0.attn.w_qkv`, `blocks.0.attn.weights`, `logits`, `loss`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from byhand.config import ModelConfig
from byhand.engine import Tensor, scope
from byhand.equations import (
    add_positional,
    causal_self_attention,
    cross_entropy,
    embedding,
    gelu,
    layer_norm,
    linear,
    relu,
    residual,
    transpose,
)
from byhand.errors import DataError, ShapeError
from byhand.runtimes import numpy as reference

EPS = 1e-5  # of every LayerNorm


class Cache(Protocol):
    """Keys and values of the positions that came before, as `generate` keeps them."""

    length: int

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store this layer's new keys and values (B, H, T, D); return all of them (B, H, S, D)."""
        ...

    def advance(self, n: int) -> None:
        """Count n more positions, once every layer has stored them."""
        ...


def parameter_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return every parameter's shape by name, in the order in which data meets them. Weights are [in, out]."""
    v, t, c, f = config.vocab_size, config.seq_len, config.d_model, config.ff_width
    norm: dict[str, tuple[int, ...]] = {"gain": (c,), "bias": (c,)} if config.norm_affine else {}
    block = {
        **{f"ln_1.{k}": s for k, s in norm.items()},
        "attn.w_qkv": (c, 3 * c),
        "attn.b_qkv": (3 * c,),
        "attn.w_proj": (c, c),
        "attn.b_proj": (c,),
        **{f"ln_2.{k}": s for k, s in norm.items()},
        "mlp.w_fc": (c, f),
        "mlp.b_fc": (f,),
        "mlp.w_out": (f, c),
        "mlp.b_out": (c,),
    }
    shapes: dict[str, tuple[int, ...]] = {"wte": (v, c), "wpe": (t, c)}
    for i in range(config.n_layers):
        shapes |= {f"blocks.{i}.{name}": shape for name, shape in block.items()}
    if config.norm_position == "pre":
        shapes |= {f"ln_f.{k}": s for k, s in norm.items()}
    if not config.tied_embeddings:
        shapes["lm_head.w"] = (c, v)
    if config.lm_head_bias:
        shapes["lm_head.b"] = (v,)
    return shapes


class TinyGPT:
    """A decoder-only Transformer.

    config  its shape (ModelConfig)
    seed    decides the initial parameters
    dtype   "float32" or "float64": every parameter, activation and gradient
    arrays  parameters by name, instead of initial ones
    """

    def __init__(
        self,
        config: ModelConfig,
        seed: int = 1,
        dtype: str = "float32",
        arrays: Mapping[str, Any] | None = None,
    ) -> None:
        self.config = config
        shapes = parameter_shapes(config)
        if arrays is None:
            arrays = reference.initial_parameters(shapes, config.n_layers, seed, dtype)
        _check_arrays(arrays, shapes)
        self._parameters = {name: Tensor(arrays[name], requires_grad=True, name=name) for name in shapes}

    @property
    def dtype(self) -> Any:
        """The type of every parameter and activation."""
        return self._parameters["wte"].dtype

    def parameters(self) -> dict[str, Tensor]:
        """Return the parameters by dotted name, in the order in which data meets them."""
        return dict(self._parameters)

    def zero_grad(self) -> None:
        """Forget every parameter's gradient."""
        for parameter in self._parameters.values():
            parameter.grad = None

    def loss(self, tokens: Any, targets: Any) -> Tensor:
        """Return the mean cross-entropy in nats of targets (B, T) after tokens (B, T), a scalar."""
        logits = self.forward_logits(tokens)
        targets = reference.token_array(targets, self.config.vocab_size, "targets")
        return cross_entropy(logits, targets, name="loss")

    def forward_logits(self, tokens: Any, cache: Cache | None = None) -> Tensor:
        """Return logits (B, T, V) for tokens (B, T), ids in [0, V), with T + cache.length <= seq_len."""
        tokens = reference.token_array(tokens, self.config.vocab_size)
        start = cache.length if cache else 0
        if cache and not self.config.causal:
            raise DataError(
                "a cache holds what earlier positions saw, but without causal mask they see later ones too."
            )
        if start + tokens.shape[1] > self.config.seq_len:
            raise DataError(
                f"{start + tokens.shape[1]} tokens, but the model's seq_len is {self.config.seq_len}. "
                f"Pass the last {self.config.seq_len}."
            )
        p = self._parameters
        x = embedding(p["wte"], tokens, name="tok")
        x = add_positional(x, p["wpe"], start=start, name="x")
        for i in range(self.config.n_layers):
            with scope(f"blocks.{i}"):
                x = self._block(x, i, cache)
        if cache:
            cache.advance(tokens.shape[1])
        if self.config.norm_position == "pre":
            x = self._norm(x, "ln_f", "ln_f")
        weight = transpose(p["wte"]) if self.config.tied_embeddings else p["lm_head.w"]
        bias = [p["lm_head.b"]] if self.config.lm_head_bias else []
        return linear(x, weight, *bias, name="logits")

    def _block(self, x: Tensor, i: int, cache: Cache | None) -> Tensor:
        """Attention, then the MLP, each added to the stream; LN before the sublayer, or after the sum."""
        block = f"blocks.{i}"
        if self.config.norm_position == "pre":
            x = residual(x, self._attention(self._norm(x, block, "ln_1"), i, cache), name="x_mid")
            return residual(x, self._mlp(self._norm(x, block, "ln_2"), block), name="x_out")
        x = self._norm(residual(x, self._attention(x, i, cache), name="x_mid"), block, "ln_1")
        return self._norm(residual(x, self._mlp(x, block), name="x_out"), block, "ln_2")

    def _norm(self, x: Tensor, block: str, name: str) -> Tensor:
        prefix = name if block == name else f"{block}.{name}"
        affine = [self._parameters[f"{prefix}.{k}"] for k in ("gain", "bias")] if self.config.norm_affine else []
        return layer_norm(x, *affine, eps=EPS, name=name)

    def _attention(self, x: Tensor, i: int, cache: Cache | None) -> Tensor:
        weights = [self._parameters[f"blocks.{i}.attn.{k}"] for k in ("w_qkv", "b_qkv", "w_proj", "b_proj")]
        extend = None if cache is None else lambda k, v: cache.extend(i, k, v)
        return causal_self_attention(
            x, *weights, n_heads=self.config.n_heads, causal=self.config.causal, extend=extend, name="attn"
        )

    def _mlp(self, x: Tensor, block: str) -> Tensor:
        w_fc, b_fc, w_out, b_out = (self._parameters[f"{block}.mlp.{k}"] for k in ("w_fc", "b_fc", "w_out", "b_out"))
        activation = gelu if self.config.activation == "gelu" else relu
        with scope("mlp"):
            pre = linear(x, w_fc, b_fc, name="pre")
            return linear(activation(pre, name="act"), w_out, b_out, name="out")


def _check_arrays(arrays: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
    """Raise ShapeError unless the arrays are exactly the parameters, in one floating-point type."""
    missing, extra = sorted(set(shapes) - set(arrays)), sorted(set(arrays) - set(shapes))
    if missing or extra:
        wrong = f"lacks {missing[0]!r}" if missing else f"has {extra[0]!r}, which the model does not know"
        raise ShapeError(f"the set of parameters {wrong}. Check that config and weights belong together.")
    for name, shape in shapes.items():
        if not hasattr(arrays[name], "shape"):
            raise ShapeError(f"parameter {name} is a {type(arrays[name]).__name__}. Pass arrays.")
        if tuple(arrays[name].shape) != shape:
            raise ShapeError(f"parameter {name} has shape {tuple(arrays[name].shape)}, but the config says {shape}.")
        if str(arrays[name].dtype) != str(arrays["wte"].dtype) or str(arrays[name].dtype) not in reference.DTYPES:
            raise ShapeError(f"parameter {name} is {arrays[name].dtype}. Use float32 or float64 for all.")
