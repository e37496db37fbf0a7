"""The shape of a model, in a frozen dataclass that checks itself on construction.

Fields are the flags of `byhand train` (`d_model` is `--d-model`) and the keys of a TOML file. The string below a
field is its help text; the pages show the one below that, if any, in Chinese.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Literal

from byhand import equations as _registered  # noqa: F401  (importing the package fills the registry)
from byhand.config_checks import (
    LARGE,
    LATER,
    MOST,
    at_least,
    at_most,
    brief,
    check_types,
    needs,
    require_scaling,
    usual,
)  # fmt: skip
from byhand.engine.equation import with_role
from byhand.equations.rotary import SCALINGS, Scaling
from byhand.errors import ConfigError

WITH_LORA = needs("lora", 8, *range(1, MOST["lora"] + 1))


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a GPT. The defaults are the seed documents' model: pre-norm, no gain or bias in LayerNorm."""

    vocab_size: int = 256
    """V: number of tokens in the vocabulary (256 for bytes)."""
    """V：词表中的词元数（字节级为 256）"""
    seq_len: int = 64
    """T: longest context, in tokens."""
    """T：最长上下文，以词元计"""
    d_model: int = 64
    """C: width of the residual stream."""
    """C：残差流的宽度"""
    n_layers: int = 1
    """L: number of blocks."""
    """L：块数"""
    n_heads: int = 1
    """H: attention heads; must divide d_model unless d_head is given."""
    """H：注意力头数；不给 d_head 时必须整除 d_model"""
    n_kv_heads: int | None = field(default=None, metadata=LATER)
    """K: heads of keys and values; each serves H / K heads of queries. H if not given."""
    """K：键和值的头数，每个由 H / K 个查询头共用；不给则为 H"""
    d_head: int | None = field(default=None, metadata=LATER)
    """D: width of a head; d_model / n_heads if not given."""
    """D：一个头的宽度；不给则为 d_model / n_heads"""
    d_ff: int | None = None
    """F: width of the MLP; if not given, 4 d_model, or with a gate 8/3 d_model rounded up to a multiple of 8."""
    """F：前馈网络的宽度；不给则为 4 d_model，带门控时为 8/3 d_model（向上取到 8 的倍数）"""
    positions: Literal["learned", "rotary", "none"] = field(default="learned", metadata=LATER)
    """learned: a table added to the tokens. rotary: queries and keys turned by their position. none: neither."""
    """learned：加到词元上的可学习位置表。rotary：按位置旋转查询与键。none：两者都不用"""
    rope_base: float = field(default=10000.0, metadata=LATER | needs("positions", "rotary"))
    """Base of the rotary angles: the slowest pair turns by about 1/base radians per position."""
    """旋转角的底数：最慢的一对每个位置约转 1/base 弧度"""
    rope_fraction: float = field(default=1.0, metadata=LATER | needs("positions", "rotary"))
    """Fraction of a head's width that is rotated."""
    """每个头的宽度中，参与旋转的比例；R 为参与旋转的列数"""
    rope_pairing: Literal["halves", "neighbours"] = field(
        default="halves", metadata=LATER | needs("positions", "rotary")
    )
    """Which of the R rotated numbers pair up. halves: i and i + R/2 (Hugging Face). neighbours: 2i and 2i + 1."""
    """哪两个数一起旋转。halves：第 i 与 i + R/2 个（Hugging Face）。neighbours：第 2i 与 2i + 1 个（论文）"""
    rope_scaling: Literal["none", "linear", "llama3", "yarn"] = field(
        default="none", metadata=LATER | needs("positions", "rotary")
    )
    """Slower turns for longer texts than those of the training. linear: of all pairs. llama3, yarn: of slow ones."""
    """为比训练时更长的文本放慢旋转。linear：各对同样放慢。llama3、yarn：只放慢转得慢的对"""
    rope_factor: float = field(default=8.0, metadata=LATER | needs("rope_scaling", *SCALINGS))
    """f: a pair is slowed by at most this factor."""
    """f：一对数最多放慢到几分之一"""
    rope_original_len: int = field(default=8192, metadata=LATER | needs("rope_scaling", "llama3", "yarn"))
    """L: context, in tokens, before it was stretched."""
    """L：拉长之前的上下文长度，以词元计"""
    rope_slow: float = field(default=1.0, metadata=LATER | needs("rope_scaling", "llama3", "yarn"))
    """Pairs with fewer turns than this in rope_original_len positions are slowed by the whole factor."""
    """在 rope_original_len 个位置内转动的圈数少于此值的对，按整个倍数放慢"""
    rope_fast: float | None = field(default=None, metadata=LATER | needs("rope_scaling", "llama3", "yarn"))
    """Pairs with more turns than this stay as they are; 4 with llama3, 32 with yarn if not given."""
    """转动的圈数多于此值的对不变；不给则 llama3 为 4，yarn 为 32"""
    rope_attention: float | None = field(default=None, metadata=LATER | needs("rope_scaling", "yarn"))
    """m: factor of turned queries and keys; 0.1 ln f + 1 if not given."""
    """m：旋转后的查询和键乘以此数；不给则为 0.1 ln f + 1"""
    qk_norm: bool = field(default=False, metadata=LATER)
    """Normalise every query and key by RMSNorm before their dot product."""
    """点积之前先用均方根归一化处理每个查询和键"""
    attention_window: int | None = field(default=None, metadata=LATER)
    """Largest number of positions that one attends to, itself included; all if not given."""
    """每个位置最多看多少个位置（含自己）；不给则不限"""
    attention_bias: Literal["all", "qkv", "none"] = field(default="all", metadata=LATER)
    """Biases in attention. all: both projections. qkv: only that to queries, keys and values. none: neither."""
    """注意力中的偏置：两个投影都有，只有查询、键、值的投影有，或都没有"""
    mlp_bias: bool = field(default=True, metadata=LATER)
    """Give the linear layers of the MLP biases."""
    """前馈网络的线性层是否带偏置"""
    norm: Literal["layer", "rms"] = field(default="layer", metadata=LATER)
    """layer: LayerNorm. rms: RMSNorm, which does not subtract the mean."""
    """层归一化，或不减均值的均方根归一化"""
    norm_eps: float = field(default=1e-5, metadata=LATER)
    """Added to the variance, or to the mean square, under the root."""
    """开方之前加到方差（或均方）上的微小常数"""
    norm_position: Literal["pre", "post"] = "pre"
    """pre: x + f(LN(x)), with a final LN. post: LN(x + f(x)), without."""
    """pre：x + f(LN(x))，所有块之后再做一次 LN。post：LN(x + f(x))，之后不再做 LN"""
    parallel_residual: bool = field(default=False, metadata=LATER | needs("norm_position", "pre"))
    """Let attention and MLP of a block read the same stream: x + attn(LN(x)) + mlp(LN'(x))."""
    """同一块的注意力与前馈网络读取同一个残差流：x + attn(LN(x)) + mlp(LN'(x))"""
    norm_affine: bool = False
    """Give every LayerNorm a learned gain and bias, or every RMSNorm a learned gain."""
    """归一化是否带可学习的参数：层归一化为增益与偏置，均方根归一化只有增益"""
    activation: Literal[with_role("activation", "gate")] = "gelu"  # pyright: ignore[reportInvalidTypeForm]  (late)
    """Non-linearity of the MLP; gated ones, such as swiglu, multiply a second linear layer by it."""
    """前馈网络的激活函数；带门控的（如 swiglu）还用激活值作门，乘以另一个线性层的结果"""
    causal: bool = True
    """Let positions attend only to themselves and earlier ones."""
    """每个位置只能看自己和之前的位置"""
    lm_head_bias: bool = True
    """Give the LM head a bias."""
    """语言模型头是否带偏置"""
    tied_embeddings: bool = False
    """Use the token embedding, transposed, as the LM head's weight."""
    """语言模型头的权重用转置后的词元嵌入表"""
    logit_softcap: float = field(default=0.0, metadata=LATER)
    """Bend logits z into the range from -cap to cap: cap tanh(z / cap); 0: leave them as they are."""
    """logits 的上限 cap：把 logits z 压到 ±cap 之内，即 cap·tanh(z / cap)；0 表示不压"""
    zero_init: bool = field(default=False, metadata=LATER)
    """Start the projections that write to the residual stream, and an LM head that is not tied, at zero."""
    """写入残差流的投影，以及不绑定的语言模型头，权重的初始值为零"""
    lora: int = field(default=0, metadata=LATER)
    """R: rank of the low-rank adapters that are trained in place of all weights (LoRA); 0: none."""
    """R：低秩适配器（LoRA）的秩；给出时只训练适配器，原有权重不变。0：不用"""
    lora_alpha: float | None = field(default=None, metadata=LATER | WITH_LORA)
    """Adapters are scaled by lora_alpha / lora; 2 lora if not given, as is usual with PEFT."""
    """适配器乘以 lora_alpha / lora；不给则为 2 lora，即 PEFT 的常见用法"""
    lora_on: str = field(default="attn.*,mlp.*", metadata=LATER | WITH_LORA)
    """Patterns of the matrices that get adapters, such as attn.w_qkv,mlp.*,lm_head.w; all of the blocks if not
    given."""
    """哪些矩阵带适配器，写成名称模式，如 attn.w_qkv,mlp.*,lm_head.w；不给则为每个块的全部矩阵"""

    def __post_init__(self) -> None:
        check_types(self)
        for f in fields(self):
            if f.type in ("float", "float | None") and (value := getattr(self, f.name)) is not None:
                object.__setattr__(self, f.name, float(value))  # an integer such as 500000 is as good
        at_least(
            self, 1, "vocab_size", "seq_len", "d_model", "n_layers", "n_heads", "rope_original_len", "rope_factor"
        )
        given = [
            name for name in ("d_ff", "n_kv_heads", "d_head", "attention_window") if getattr(self, name) is not None
        ]
        at_least(self, 1, *given)
        at_least(self, 0, "logit_softcap", "lora")
        at_most(self)
        if self.d_head is None and self.d_model % self.n_heads:
            divisors = [h for h in range(1, self.d_model + 1) if self.d_model % h == 0]
            near = sorted(divisors, key=lambda h: abs(h - self.n_heads))[:2]
            raise ConfigError(
                f"n_heads {brief(self.n_heads)} does not divide d_model {self.d_model}. "
                f"Use n_heads {' or '.join(map(str, sorted(near)))}."
            )

        if self.n_heads % self.kv_heads:
            divisors = [k for k in range(1, self.n_heads + 1) if self.n_heads % k == 0]
            raise ConfigError(
                f"n_kv_heads {brief(self.kv_heads)} does not divide n_heads {self.n_heads}. "
                f"Use n_kv_heads {' or '.join(map(str, divisors[-4:]))}."
            )
        for name, low in (("rope_base", 1), ("norm_eps", 0)):
            if not getattr(self, name) > low:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be above {low}.{usual(self, name)}")
        if self.norm_eps > LARGE:
            raise ConfigError(
                f"norm_eps is {self.norm_eps:g}, but can be at most {LARGE:g}.{usual(self, 'norm_eps')}"
            )
        if self.logit_softcap and not 1 / LARGE <= self.logit_softcap <= LARGE:
            raise ConfigError(
                f"logit_softcap is {self.logit_softcap:g}, but must be 0 or from {1 / LARGE:g} to {LARGE:g}. Use 15."
            )
        if not 0 < self.rope_fraction <= 1:
            raise ConfigError(f"rope_fraction is {self.rope_fraction}, but must lie above 0 and at most at 1. Use 1.")
        if self.positions == "rotary" and self.rotary_width < 2:
            raise ConfigError(
                f"heads of width {self.head_width} have no pair of numbers to rotate with rope_fraction "
                f"{self.rope_fraction:g}. Use wider heads or positions learned."
            )
        require_scaling(self)
        if self.lora_alpha is not None:
            object.__setattr__(self, "lora_alpha", float(self.lora_alpha))
            if not 0 < self.lora_alpha <= LARGE:
                raise ConfigError(
                    f"lora_alpha is {self.lora_alpha:g}, but must be above 0 and at most {LARGE:g}. Use 16."
                )
        if self.attention_window is not None and not self.causal:
            raise ConfigError("attention_window is for causal attention. Leave it out, or set causal.")

    @property
    def fast_turns(self) -> float:
        """The turns from which on pairs stay as they are: rope_fast, or 4 with llama3, 32 with yarn."""
        return (4.0 if self.rope_scaling == "llama3" else 32.0) if self.rope_fast is None else self.rope_fast

    @property
    def turned_size(self) -> float:
        """m, the factor of turned queries and keys: rope_attention, or with yarn 0.1 ln f + 1."""
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
        """F, the width of the MLP: d_ff, or 4 d_model; with a gate 8/3 d_model, which makes as many parameters."""
        if self.d_ff is not None:
            return self.d_ff
        return -(-self.d_model // 3) * 8 if self.gated else 4 * self.d_model

    @property
    def lora_scale(self) -> float:
        """s, by which adapters are multiplied."""
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
        """K, the heads of keys and values: n_kv_heads, or n_heads."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def rotary_width(self) -> int:
        """R, the number of columns of a query or key that are rotated; even."""
        return int(self.head_width * self.rope_fraction + 1e-9) // 2 * 2

    @property
    def visible(self) -> int:
        """The most positions that one attends to, itself included: attention_window, within seq_len."""
        return self.seq_len if self.attention_window is None else min(self.attention_window, self.seq_len)

    @property
    def cached(self) -> int:
        """The positions that a KV cache keeps: where the window slides, those that are visible, as a ring."""
        return self.visible if self.slides else self.seq_len

    @property
    def slides(self) -> bool:
        """Whether the cache stays valid past seq_len: no number depends on where a text began."""
        return self.positions != "learned"
