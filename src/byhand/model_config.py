"""The shape of a model, in a frozen dataclass that checks itself on construction.

Fields are the flags of `byhand train` (`d_model` is `--d-model`) and the keys of a TOML file. The string below a
field is its help text; the pages show the one below that, if any, in Chinese.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

from byhand import equations as _registered  # noqa: F401  (importing the package fills the registry)
from byhand.config_checks import LATER, MOST, check_types, needs
from byhand.engine.equation import with_role
from byhand.equations.rotary import SCALINGS
from byhand.model_checks import require_model
from byhand.model_follows import Follows

WITH_LORA = needs("lora", 8, *range(1, MOST["lora"] + 1))


@dataclass(frozen=True)
class ModelConfig(Follows):
    """The shape of a GPT. The defaults are the seed documents' model: pre-norm, no gain or bias in LayerNorm."""

    vocab_size: int = 256
    """V: number of tokens in the vocabulary (256 for bytes)."""
    """V：词表中的词元数（字节级为 256）"""
    seq_len: int = 64
    """T_max: longest context, in tokens."""
    """T_max：最长上下文，以词元计"""
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
    """K: key-value heads, each shared by H / K query heads; H if not given."""
    """K：键和值的头数，每个由 H / K 个查询头共用；不给则为 H"""
    d_head: int | None = field(default=None, metadata=LATER)
    """D: width of a head; d_model / n_heads if not given."""
    """D：一个头的宽度；不给则为 d_model / n_heads"""
    d_ff: int | None = None
    """F: width of the MLP; if not given, 4 d_model, or with a gate 8/3 d_model rounded up to a multiple of 8."""
    """F：前馈网络的宽度；不给则为 4 d_model，带门控时为 8/3 d_model（向上取到 8 的倍数）"""
    positions: Literal["learned", "rotary", "none"] = field(default="learned", metadata=LATER)
    """learned: a table added to the embeddings. rotary: queries and keys rotated by their position. none: neither."""
    """learned：加到词元嵌入上的可学习位置表。rotary：按位置旋转查询与键。none：两者都不用"""
    rope_base: float = field(default=10000.0, metadata=LATER | needs("positions", "rotary"))
    """Base of the angles: numbers are rotated in pairs, the slowest by about 1/base radians per position."""
    """旋转角的底数：两个数一对地旋转，转得最慢的一对每个位置约转 1/base 弧度"""
    rope_fraction: float = field(default=1.0, metadata=LATER | needs("positions", "rotary"))
    """Fraction of a head's width that is rotated."""
    """每个头的宽度中，参与旋转的比例；R 为参与旋转的列数"""
    rope_pairing: Literal["halves", "neighbours"] = field(
        default="halves", metadata=LATER | needs("positions", "rotary")
    )
    """Which of the R rotated numbers pair up. halves: i and i + R/2 (Hugging Face). neighbours: 2i and 2i + 1."""
    """哪两个数一起旋转。halves：第 i 与 i + R/2 个（Hugging Face）。neighbours：第 2i 与 2i + 1 个（RoPE 的论文）"""
    rope_scaling: Literal["none", "linear", "llama3", "yarn"] = field(
        default="none", metadata=LATER | needs("positions", "rotary")
    )
    """Slow the rotation for texts longer than those in training. linear: all pairs. llama3, yarn: the slow pairs."""
    """为比训练时更长的文本放慢旋转。linear：各对同样放慢。llama3、yarn：只放慢转得慢的对"""
    rope_factor: float = field(default=8.0, metadata=LATER | needs("rope_scaling", *SCALINGS))
    """f: a pair is slowed to 1/f of its speed at most."""
    """f：一对数最多放慢到 1/f"""
    rope_original_len: int = field(default=8192, metadata=LATER | needs("rope_scaling", "llama3", "yarn"))
    """Context of the original training, in tokens."""
    """拉长之前的上下文长度，以词元计"""
    rope_slow: float = field(default=1.0, metadata=LATER | needs("rope_scaling", "llama3", "yarn"))
    """Pairs with fewer turns than this in rope_original_len positions are slowed to 1/f."""
    """在 rope_original_len 个位置内转动的圈数少于此值的对，放慢到 1/f"""
    rope_fast: float | None = field(default=None, metadata=LATER | needs("rope_scaling", "llama3", "yarn"))
    """Pairs with more turns than this are unchanged; if not given, 4 with llama3, 32 with yarn."""
    """转动的圈数多于此值的对不变；不给则 llama3 为 4，yarn 为 32"""
    rope_attention: float | None = field(default=None, metadata=LATER | needs("rope_scaling", "yarn"))
    """m: with yarn, rotated queries and keys are multiplied by it; 0.1 ln f + 1 if not given."""
    """m：用 yarn 时，旋转后的查询和键乘以此数；不给则为 0.1 ln f + 1"""
    rope_window_base: float | None = field(default=None, metadata=LATER | needs("positions", "rotary"))
    """Rotary base of the w layers of layer_pattern, whose angles then are not scaled; rope_base if not given."""
    """layer_pattern 中 w 层的旋转角底数，给出时这些层的角度不缩放；不给则为 rope_base"""
    qk_norm: bool = field(default=False, metadata=LATER)
    """Normalise every query and key by RMSNorm before their dot product."""
    """点积之前先用均方根归一化处理每个查询和键"""
    qk_norm_over: Literal["head", "heads"] = field(default="head", metadata=LATER | needs("qk_norm", True))
    """What qk_norm normalises: each head alone, or all heads of a position together."""
    """归一化的范围：每个头单独（head），或一个位置的所有头一起（heads）"""
    attention_divisor: float | None = field(default=None, metadata=LATER)
    """Scores are divided by the square root of this number; of the head width D if not given."""
    """注意力分数除以此数的平方根；不给则除以头宽 D 的平方根"""
    attention_window: int | None = field(default=None, metadata=LATER)
    """Number of positions that each position attends to, itself included; all if not given."""
    """每个位置最多看多少个位置（含自己）；不给则不限"""
    layer_pattern: str = field(default="", metadata=LATER)
    """Attention in each layer: one letter per layer, repeated over the depth, such as wwwwwg. g: sees all positions.
    w: the last attention_window. n: all, without rotary positions. If not given, all layers are alike."""
    """各层注意力的种类，每层一个字母，按深度循环，如 wwwwwg。g：看全部位置；w：只看最近 attention_window 个；
    n：看全部位置，但不加旋转位置编码。不给则各层相同"""
    attention_bias: Literal["all", "qkv", "out", "none"] = field(default="all", metadata=LATER)
    """Biases in attention. all: both projections. qkv: only the projection to queries, keys and values. out: only
    the output projection. none: neither."""
    """注意力中的偏置：两个投影都有（all），只有查询、键、值的投影有（qkv），只有输出投影有（out），或都没有（none）"""
    mlp_bias: bool = field(default=True, metadata=LATER)
    """Give the linear layers of the MLP biases."""
    """前馈网络的线性层是否带偏置"""
    norm: Literal["layer", "rms"] = field(default="layer", metadata=LATER)
    """layer: LayerNorm. rms: RMSNorm, which does not subtract the mean."""
    """层归一化，或不减均值的均方根归一化"""
    norm_eps: float = field(default=1e-5, metadata=LATER)
    """Added to the variance, or to the mean square, under the root."""
    """开方之前加到方差（或均方）上的微小常数"""
    norm_position: Literal["pre", "post", "output", "both"] = "pre"
    """pre: x + f(LN(x)), with a final LN. post: LN(x + f(x)), without. output: x + LN(f(x)), with a final LN. both:
    x + LN'(f(LN(x))), with a final LN."""
    """pre：x + f(LN(x))，所有块之后再做一次 LN。post：LN(x + f(x))，之后不再做 LN。output：x + LN(f(x))，
    最后再做一次 LN。both：x + LN'(f(LN(x)))，最后再做一次 LN"""
    embedding_norm: bool = field(default=False, metadata=LATER)
    """Normalise the embeddings before the first block."""
    """嵌入进入第一个块之前是否先做归一化"""
    final_norm: bool = field(default=True, metadata=LATER | needs("norm_position", "pre", "output", "both"))
    """Normalise the stream behind the last block, before the LM head."""
    """最后一个块之后、语言模型头之前是否再做归一化"""
    parallel_residual: bool = field(default=False, metadata=LATER | needs("norm_position", "pre"))
    """Attention and MLP of a block read the same stream: x + attn(LN(x)) + mlp(LN'(x))."""
    """同一块的注意力与前馈网络读取同一个残差流：x + attn(LN(x)) + mlp(LN'(x))"""
    norm_affine: bool = False
    """Give every LayerNorm a learned gain and bias, or every RMSNorm a learned gain."""
    """归一化是否带可学习的参数：层归一化为增益与偏置，均方根归一化只有增益"""
    norm_bias: bool = field(default=True, metadata=LATER | needs("norm_affine", True))
    """Train the bias of every LayerNorm; otherwise it stays 0."""
    """是否训练层归一化的偏置；不训练则一直为 0"""
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
    scaled_embeddings: bool = field(default=False, metadata=LATER)
    """Multiply token embeddings by the square root of d_model before the first block, but not a tied LM head."""
    """词元嵌入进入第一个块时乘以 d_model 的平方根；绑定的语言模型头不乘"""
    logit_softcap: float = field(default=0.0, metadata=LATER)
    """Squash logits z into the range from -cap to cap: cap tanh(z / cap); 0: off."""
    """logits 的上限 cap：把 logits z 压到 ±cap 之内，即 cap·tanh(z / cap)；0 表示不压"""
    zero_init: bool = field(default=False, metadata=LATER)
    """Initialise the projections that write to the residual stream, and an untied LM head, with zeros."""
    """写入残差流的投影，以及不绑定的语言模型头，权重的初始值为零"""
    lora: int = field(default=0, metadata=LATER)
    """r: rank of the low-rank adapters (LoRA), which are trained instead of the weights; 0: none."""
    """r：低秩适配器（LoRA）的秩；给出时只训练适配器，原有权重不变。0：不用"""
    lora_alpha: float | None = field(default=None, metadata=LATER | WITH_LORA)
    """Adapters are scaled by lora_alpha / lora; 2 lora if not given, which is usual."""
    """适配器乘以 lora_alpha / lora；不给则为 2 lora，这是常见的用法"""
    lora_on: str = field(default="attn.*,mlp.*", metadata=LATER | WITH_LORA)
    """Patterns of the matrices that get adapters, such as attn.w_qkv,mlp.*,lm_head.w; all matrices of the blocks if
    not given."""
    """哪些矩阵带适配器，写成名称模式，如 attn.w_qkv,mlp.*,lm_head.w；不给则为每个块的全部矩阵"""

    def __post_init__(self) -> None:
        check_types(self)
        for f in fields(self):
            if f.type in ("float", "float | None") and (value := getattr(self, f.name)) is not None:
                object.__setattr__(self, f.name, float(value))  # accepts integers such as 500000
        require_model(self)
