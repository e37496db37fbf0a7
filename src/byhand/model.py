"""TinyGPT applies its layers, from tokens to logits and loss. It names no array framework.

Parameters and activations go by dotted names: `blocks.0.attn.w_qkv`, `blocks.0.attn.weights`, `logits`, `loss`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from byhand import host
from byhand.config import ModelConfig
from byhand.engine import Tensor, scope
from byhand.equations.cross_entropy import cross_entropy
from byhand.errors import DataError, ShapeError
from byhand.layers.adapter import BLOCKS, merged, with_adapters
from byhand.layers.block import Block
from byhand.layers.cache import KVCache
from byhand.layers.embeddings import PositionEmbedding, TokenEmbedding
from byhand.layers.head import LMHead
from byhand.layers.norm import Norm, norm_of
from byhand.layers.parameter import Parameter, Tree, flat, map_tree


@dataclass(frozen=True)
class Layers:
    """A model's layers in the order of the forward pass; `first` and `norm` stand before and behind the blocks."""

    config: ModelConfig
    tokens: TokenEmbedding
    positions: PositionEmbedding | None
    first: Norm | None
    blocks: tuple[Block, ...]
    norm: Norm | None
    head: LMHead

    @classmethod
    def of(cls, config: ModelConfig) -> Layers:
        """Return the layers that the config chooses."""
        return cls(
            config,
            TokenEmbedding(config),
            PositionEmbedding(config) if config.positions == "learned" else None,
            norm_of(config) if config.embedding_norm else None,
            tuple(Block.of(config, kind) for kind in config.layer_kinds),
            norm_of(config) if config.final_norm and config.norm_position != "post" else None,
            LMHead(config),
        )

    def parameters(self) -> Tree:
        """Return every layer's parameters under the layer's name, including adapters."""
        found = {
            **self.tokens.parameters(),
            **(self.positions.parameters() if self.positions else {}),
            "ln_0": self.first.parameters() if self.first else {},
            BLOCKS: {str(i): block.parameters() for i, block in enumerate(self.blocks)},
            "ln_f": self.norm.parameters() if self.norm else {},
            "lm_head": self.head.parameters(),
        }
        return with_adapters(self.config, found)

    def begin(self, p: Tree, tokens: Any, start: Any = None) -> Tensor:
        """Return the stream (B, T, C) that enters the first block; `start` is the number of cached positions."""
        x = self.tokens.apply(p, tokens)
        if self.positions:
            x = self.positions.apply(p, x, start)
        return self.first.apply(p["ln_0"], x, "ln_0") if self.first else x

    def finish(self, p: Tree, x: Tensor) -> Tensor:
        """Return the logits (B, T, V) of the stream that leaves the last block."""
        if self.norm:
            x = self.norm.apply(p["ln_f"], x, "ln_f")
        return self.head.apply(p["lm_head"], x, p["wte"])


def declared(config: ModelConfig) -> dict[str, Parameter]:
    """Return every parameter's declaration by dotted name, in the order of the forward pass."""
    return flat(Layers.of(config).parameters())


def parameter_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return every parameter's shape by name. Weights are [in, out]."""
    return {name: parameter.shape for name, parameter in declared(config).items()}


def initial(
    declared: Mapping[str, Parameter], seed: int, dtype: str = "float32", but: Container[str] = ()
) -> dict[str, Any]:
    """Return the initial arrays of parameters, except those named in `but`."""
    wanted = {n: p for n, p in declared.items() if n not in but}
    return {n: host.normal(n, p.shape, p.mean, p.std, seed, dtype) for n, p in wanted.items()}


def matrices(config: ModelConfig) -> list[str]:
    """Return the names of the parameters that weight decay acts on with `decay="matrices"`."""
    return [name for name, parameter in declared(config).items() if parameter.decays]


class TinyGPT:
    """A decoder-only Transformer.

    config  its shape (ModelConfig)
    seed    decides the initial parameters
    dtype   "float32" or "float64": every parameter, activation and gradient
    arrays  parameters by name, instead of initial ones
    """

    def __init__(
        self, config: ModelConfig, seed: int = 1, dtype: str = "float32", arrays: Mapping[str, Any] | None = None
    ) -> None:
        self.config = config
        self.layers = Layers.of(config)
        if arrays is None:
            arrays = initial(declared(config), seed, dtype)
        shapes = parameter_shapes(config)
        _check_arrays(arrays, shapes)
        self._parameters = {name: _leaf(name, arrays[name], p.trained) for name, p in declared(config).items()}
        self._tree = map_tree(self.layers.parameters(), self._parameters.__getitem__)

    @property
    def dtype(self) -> Any:
        """The type of every parameter and activation."""
        return self._parameters["wte"].dtype

    def parameters(self) -> dict[str, Tensor]:
        """Return the parameters by dotted name, in the order of the forward pass."""
        return dict(self._parameters)

    def merged(self) -> TinyGPT:
        """Return the equivalent model without adapters, up to rounding; itself if it has none."""
        if not self.config.lora:
            return self
        config, arrays = merged(self.config, {name: p.data for name, p in self._parameters.items()})
        return TinyGPT(config, arrays=arrays)

    def cache_shapes(self) -> list[tuple[int, int]]:
        """Return (K, D) of each block's cached keys and values."""
        return [block.attention.cache_shape for block in self.layers.blocks]

    def zero_grad(self) -> None:
        """Clear every parameter's gradient."""
        for parameter in self._parameters.values():
            parameter.grad = None

    def loss(self, tokens: Any, targets: Any) -> Tensor:
        """Return the mean cross-entropy in nats of targets (B, T) after tokens (B, T); -1 means no target."""
        tokens = self._checked(tokens)
        return self.loss_of(tokens, host.target_array(targets, self.config.vocab_size))

    def forward_logits(self, tokens: Any) -> Tensor:
        """Return logits (B, T, V) for tokens (B, T), ids in [0, V); T is at most seq_len."""
        return self.logits_of(self._checked(tokens))

    def cache(self, streams: int = 1, places: int = 0) -> KVCache:
        """Return an empty cache for `streams` streams with `places` places (`KVCache.grown_to` adds more).

        Raises DataError for models without the causal mask.
        """
        if not self.config.causal:
            raise DataError(
                "a KV cache is for causal models: without the mask earlier positions see later ones. Leave it out."
            )
        shapes = [(streams, heads, places, width) for heads, width in self.cache_shapes()]
        kept = tuple((Tensor(host.zeros(s, self.dtype)), Tensor(host.zeros(s, self.dtype))) for s in shapes)
        return KVCache(kept, host.zeros((streams,), "int64"))

    def decode(self, tokens: Any, cache: KVCache) -> tuple[Tensor, KVCache]:
        """Return the logits (B, T, V) of tokens (B, T) that follow the cached ones, and the extended cache.

        With a position table, T + cache.length is at most seq_len. Without one, a cache of `config.cached` places
        continues token by token: each attends to the last positions that its layer sees.
        """
        tokens = self._checked(tokens, int(cache.length.max()))
        needed = int(cache.length.max()) + tokens.shape[1]
        if needed > cache.places and (tokens.shape[1] > 1 or cache.places < self.config.cached):
            raise DataError(
                f"the cache has room for {cache.places} positions, not for {needed}. Use grown_to({needed})."
            )
        return self.forward(tokens, cache)

    def loss_of(self, tokens: Any, targets: Any) -> Tensor:
        """Return the loss of checked arrays; no branch depends on a value, so it can be traced."""
        return cross_entropy(self.logits_of(tokens), targets, name="loss")

    def logits_of(self, tokens: Any) -> Tensor:
        """Return the logits of a checked array; no branch depends on a value, so it can be traced."""
        return self.forward(tokens)[0]

    def forward(self, tokens: Any, cache: Any = None) -> tuple[Tensor, Any]:
        """Return the logits of a checked array, and the cache with its keys and values; it can be traced."""
        p, layers = self._tree, self.layers
        start = cache.length if cache else None
        kept: list[Any] = list(cache.blocks) if cache else [None] * len(layers.blocks)
        x = layers.begin(p, tokens, start)
        for i, block in enumerate(layers.blocks):
            with scope(f"{BLOCKS}.{i}"):
                x, kept[i] = block.apply(p[BLOCKS][str(i)], x, start, kept[i])
        return layers.finish(p, x), cache and KVCache(tuple(kept), start + tokens.shape[1])

    def read_out(self, x: Tensor) -> Tensor:
        """Return the logits (B, T, V) that the final norm and the head make of any state (B, T, C) of the stream."""
        return self.layers.finish(self._tree, x)

    def _checked(self, tokens: Any, before: int = 0) -> Any:
        """Return tokens as an array (B, T) of ids; DataError if one is out of range, or T is too long."""
        tokens = host.token_array(tokens, self.config.vocab_size)
        length = before + tokens.shape[1]
        if length > self.config.seq_len and not self.config.slides:
            raise DataError(
                f"{length} tokens, but the model's seq_len is {self.config.seq_len}. "
                f"Pass the last {self.config.seq_len}."
            )
        return tokens


def _leaf(name: str, array: Any, trained: bool) -> Tensor:
    leaf = Tensor(array, requires_grad=trained, name=name)
    leaf.frozen = not trained
    return leaf


def _check_arrays(arrays: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
    """Raise ShapeError unless the arrays match the parameters exactly, in one floating-point type."""
    missing, extra = sorted(set(shapes) - set(arrays)), sorted(set(arrays) - set(shapes))
    if missing or extra:
        wrong = f"lacks {missing[0]!r}" if missing else f"has {extra[0]!r}, which the model does not know"
        raise ShapeError(f"the set of parameters {wrong}. Check that config and weights belong together.")
    for name, shape in shapes.items():
        if not hasattr(arrays[name], "shape"):
            raise ShapeError(f"parameter {name} is a {type(arrays[name]).__name__}. Pass arrays.")
        if tuple(arrays[name].shape) != shape:
            raise ShapeError(f"parameter {name} has shape {tuple(arrays[name].shape)}, but the config says {shape}.")
        if str(arrays[name].dtype) != str(arrays["wte"].dtype) or str(arrays[name].dtype) not in host.FLOATS:
            raise ShapeError(f"parameter {name} is {arrays[name].dtype}. Use float32 or float64 for all.")
