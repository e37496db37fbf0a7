"""Properties derived from a model's settings: widths, numbers of heads, angles, and the kind of each layer."""

from __future__ import annotations

import math
from itertools import cycle, islice
from typing import Literal, NamedTuple

from byhand.engine.equation import with_role
from byhand.equations.rotary import Scaling


class LayerKind(NamedTuple):
    """The properties of attention that may differ between layers.

    window   positions that a position attends to, itself included
    base     of the rotary angles; None without rotary positions
    scaling  of these angles; None if they are not scaled
    """

    window: int
    base: float | None
    scaling: Scaling | None


class Follows:
    """Derived properties of a ModelConfig."""

    seq_len: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int | None
    d_head: int | None
    d_ff: int | None
    positions: Literal["learned", "rotary", "none"]
    rope_base: float
    rope_fraction: float
    rope_scaling: Literal["none", "linear", "llama3", "yarn"]
    rope_factor: float
    rope_original_len: int
    rope_slow: float
    rope_fast: float | None
    rope_attention: float | None
    rope_window_base: float | None
    attention_divisor: float | None
    attention_window: int | None
    layer_pattern: str
    activation: str
    lora: int
    lora_alpha: float | None
    lora_on: str

    @property
    def fast_turns(self) -> float:
        """The turns from which pairs are unchanged: rope_fast, or 4 with llama3, 32 with yarn."""
        return (4.0 if self.rope_scaling == "llama3" else 32.0) if self.rope_fast is None else self.rope_fast

    @property
    def turned_size(self) -> float:
        """m, the factor of rotated queries and keys: rope_attention, or with yarn 0.1 ln f + 1."""
        if self.rope_scaling != "yarn":
            return 1.0
        return 0.1 * math.log(self.rope_factor) + 1 if self.rope_attention is None else self.rope_attention

    @property
    def rotary_scaling(self) -> Scaling | None:
        """How the angles are scaled; None if they are not."""
        kind, factor = self.rope_scaling, self.rope_factor
        if kind == "none" or self.positions != "rotary":
            return None
        if kind == "linear":
            return Scaling(kind, factor)
        return Scaling(kind, factor, self.rope_original_len, self.rope_slow, self.fast_turns, self.turned_size)

    @property
    def ff_width(self) -> int:
        """F, the width of the MLP: d_ff, or 4 d_model; with a gate 8/3 d_model, for the same number of parameters."""
        if self.d_ff is not None:
            return self.d_ff
        return -(-self.d_model // 3) * 8 if self.gated else 4 * self.d_model

    @property
    def lora_scale(self) -> float:
        """s, the factor of adapters."""
        return (2.0 * self.lora if self.lora_alpha is None else self.lora_alpha) / self.lora

    @property
    def lora_patterns(self) -> tuple[str, ...]:
        """The patterns of lora_on."""
        return tuple(map(str.strip, self.lora_on.split(",")))

    @property
    def gated(self) -> bool:
        """Whether the activation gates a second linear layer."""
        return self.activation in with_role("gate")

    @property
    def head_width(self) -> int:
        """D, the width of one head: d_head, or d_model / n_heads."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def kv_heads(self) -> int:
        """K, the number of key-value heads: n_kv_heads, or n_heads."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def rotary_width(self) -> int:
        """R, the number of columns of a query or key that are rotated; even."""
        return int(self.head_width * self.rope_fraction + 1e-9) // 2 * 2

    @property
    def score_divisor(self) -> float:
        """Scores are divided by its square root: attention_divisor, or the head width D."""
        return float(self.head_width) if self.attention_divisor is None else self.attention_divisor

    @property
    def visible(self) -> int:
        """The most positions visible in a layer with a window, including the current one, at most seq_len."""
        return self.seq_len if self.attention_window is None else min(self.attention_window, self.seq_len)

    @property
    def window_base(self) -> float:
        """Base of the rotary angles in layers w: rope_window_base, or rope_base."""
        return self.rope_base if self.rope_window_base is None else self.rope_window_base

    @property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """The kind of attention of each layer, by its letter in layer_pattern; all alike without one."""
        return tuple(map(self._kinds.__getitem__, self._pattern))

    @property
    def _pattern(self) -> str:
        return "".join(islice(cycle(self.layer_pattern or "w"), self.n_layers))

    @property
    def _kinds(self) -> dict[str, LayerKind]:
        """The kinds of layers by letter; without a window w equals g."""
        scaling = self.rotary_scaling
        plain = LayerKind(self.visible, self.rope_base if self.positions == "rotary" else None, scaling)
        kinds = {"g": plain._replace(window=self.seq_len), "n": LayerKind(self.seq_len, None, None), "w": plain}
        if self.rope_window_base is not None:
            kinds["w"] = LayerKind(self.visible, self.rope_window_base, None)
        return kinds

    @property
    def layer_letters(self) -> str:
        """The letter of each layer; g for a w whose window covers the context and whose rotation is g's."""
        kinds = self._kinds
        return "".join("g" if kinds[letter] == kinds["g"] else letter for letter in self._pattern)

    @property
    def cached(self) -> int:
        """The positions in a KV cache: if the window slides, the most that a layer sees, as a ring."""
        return max(kind.window for kind in self.layer_kinds) if self.slides else self.seq_len

    @property
    def slides(self) -> bool:
        """Whether the cache stays valid past seq_len: nothing depends on the text's first position."""
        return self.positions != "learned"
