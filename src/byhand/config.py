"""Every setting, in frozen dataclasses that check themselves on construction.

Fields are the flags of `byhand train` (`d_model` is `--d-model`) and the keys of a TOML file. The string below a
field is its help text; the pages show the one below that, if any, in Chinese.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from byhand import equations as _registered  # noqa: F401  (importing the package fills the registry)
from byhand.engine.equation import with_role
from byhand.errors import ConfigError

Dtype = Literal["float32", "float64", "bfloat16"]
MOST = {  # more than any machine of today can use: refused before anything is built
    **dict.fromkeys(
        ("vocab_size", "seq_len", "d_ff", "d_head", "attention_window", "batch_size", "grad_accum", "eval_windows"),
        1 << 20,
    ),
    **dict.fromkeys(("d_model", "n_heads", "n_kv_heads"), 1 << 17),
    **dict.fromkeys(("n_layers", "threads"), 1024),
    "keep": 10**6,
    **dict.fromkeys(("steps", "warmup_steps", "eval_interval", "save_interval"), 10**12),
    "seed": 2**63 - 1,
}
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text in quotes"}
LATER = {"later": True}  # files from before a setting lack it: at its default it is not written
GROUPS = ("embeddings", "head", "matrices", "vectors")  # of parameters, as layers declare them
Weights = Literal["float32", "bfloat16"]  # of the arrays that generation reads
Recompute = Literal["nothing", "cheap", "blocks"]  # on the way back, instead of keeping it


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
    rope_base: float = field(default=10000.0, metadata=LATER)
    """Base of the rotary angles: the slowest pair turns by about 1/base radians per position."""
    """旋转角的底数：最慢的一对每个位置约转 1/base 弧度"""
    rope_fraction: float = field(default=1.0, metadata=LATER)
    """Fraction of a head's width that is rotated."""
    """每个头的宽度中，参与旋转的比例；R 为参与旋转的列数"""
    rope_pairing: Literal["halves", "neighbours"] = field(default="halves", metadata=LATER)
    """Which of the R rotated numbers pair up. halves: i and i + R/2 (Hugging Face). neighbours: 2i and 2i + 1."""
    """哪两个数一起旋转。halves：第 i 与 i + R/2 个（Hugging Face）。neighbours：第 2i 与 2i + 1 个（论文）"""
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
    norm_affine: bool = False
    """Give every LayerNorm a learned gain and bias, or every RMSNorm a learned gain."""
    """归一化是否带可学习的参数：层归一化为增益与偏置，均方根归一化只有增益"""
    activation: Literal[with_role("activation", "gate")] = "gelu"  # pyright: ignore[reportInvalidTypeForm]  (late)
    """Non-linearity of the MLP; swiglu gates a second linear layer with it."""
    """前馈网络的激活函数；swiglu 还用激活值作门，乘以另一个线性层的结果"""
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

    def __post_init__(self) -> None:
        _check_types(self)
        for name in ("rope_base", "rope_fraction", "norm_eps", "logit_softcap"):
            object.__setattr__(self, name, float(getattr(self, name)))  # an integer such as 500000 is as good
        _at_least(self, 1, "vocab_size", "seq_len", "d_model", "n_layers", "n_heads")
        given = [
            name for name in ("d_ff", "n_kv_heads", "d_head", "attention_window") if getattr(self, name) is not None
        ]
        _at_least(self, 1, *given)
        _at_least(self, 0, "logit_softcap")
        _at_most(self)
        if self.d_head is None and self.d_model % self.n_heads:
            divisors = [h for h in range(1, self.d_model + 1) if self.d_model % h == 0]
            near = sorted(divisors, key=lambda h: abs(h - self.n_heads))[:2]
            raise ConfigError(
                f"n_heads {_brief(self.n_heads)} does not divide d_model {self.d_model}. "
                f"Use n_heads {' or '.join(map(str, sorted(near)))}."
            )

        if self.n_heads % self.kv_heads:
            divisors = [k for k in range(1, self.n_heads + 1) if self.n_heads % k == 0]
            raise ConfigError(
                f"n_kv_heads {_brief(self.kv_heads)} does not divide n_heads {self.n_heads}. "
                f"Use n_kv_heads {' or '.join(map(str, divisors[-4:]))}."
            )
        for name, low in (("rope_base", 1), ("norm_eps", 0)):
            if not getattr(self, name) > low:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be above {low}.{_usual(self, name)}")
        if not 0 < self.rope_fraction <= 1:
            raise ConfigError(f"rope_fraction is {self.rope_fraction}, but must lie above 0 and at most at 1. Use 1.")
        if self.positions == "rotary" and self.rotary_width < 2:
            raise ConfigError(
                f"heads of width {self.head_width} have no pair of numbers to rotate with rope_fraction "
                f"{self.rope_fraction:g}. Use wider heads or positions learned."
            )
        if self.attention_window is not None and not self.causal:
            raise ConfigError("attention_window is for causal attention. Leave it out, or set causal.")

    @property
    def ff_width(self) -> int:
        """F, the width of the MLP: d_ff, or 4 d_model; with a gate 8/3 d_model, which makes as many parameters."""
        if self.d_ff is not None:
            return self.d_ff
        return -(-self.d_model // 3) * 8 if self.gated else 4 * self.d_model

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
        """How many numbers of a query or a key are rotated: an even number."""
        return int(self.head_width * self.rope_fraction + 1e-9) // 2 * 2

    @property
    def visible(self) -> int:
        """How many positions one attends to at most, itself included: attention_window, within seq_len."""
        return self.seq_len if self.attention_window is None else min(self.attention_window, self.seq_len)

    @property
    def slides(self) -> bool:
        """Whether the cache stays valid past seq_len: no number depends on where a text began."""
        return self.positions != "learned"


@dataclass(frozen=True)
class DataConfig:
    """Which text, and how much of it is kept for validation."""

    data: str = "python-stdlib"
    """A file, a folder, - for standard input, python-stdlib, or shakespeare."""
    tokenizer: str = field(default="", metadata=LATER)
    """A tokenizer's file or folder (see `byhand tokenizer`), which sets vocab_size; bytes if not given."""
    val_fraction: float = 0.1
    """Fraction of the text, at its end, that is kept for validation."""

    def __post_init__(self) -> None:
        _check_types(self)
        if not 0 < self.val_fraction < 1:
            raise ConfigError(f"val_fraction is {self.val_fraction}, but must lie between 0 and 1. Use 0.1.")


@dataclass(frozen=True)
class OptimConfig:
    """The optimizer and its schedule: linear warm-up to lr, then by default a cosine down to min_lr at the end."""

    optimizer: Literal["adamw", "muon"] = field(default="adamw", metadata=LATER)
    """muon: Muon for the matrices of the blocks, AdamW for embeddings, head and vectors. adamw: AdamW for all."""
    """muon：各块中的矩阵用 Muon，嵌入表、语言模型头、偏置与增益用 AdamW。adamw：全部用 AdamW"""
    lr: float = 3e-3
    """Highest learning rate."""
    min_lr: float | None = None
    """Learning rate at the last step; lr / 10 if not given."""
    warmup_steps: int = 100
    """Steps over which the learning rate rises from 0 to lr; at most half of the run."""
    schedule: Literal["cosine", "constant", "linear"] = "cosine"
    """What follows the warm-up: a cosine down to min_lr, lr to the end, or a straight line down (see --cooldown)."""
    cooldown: float = field(default=1.0, metadata=LATER)
    """With --schedule linear: fraction of the run, at its end, over which the rate falls; until then it is lr."""
    """用于 --schedule linear：训练末尾学习率直线下降的阶段占全部步数的比例；此前保持 lr"""
    embedding_lr: float | None = field(default=None, metadata=LATER)
    """Highest learning rate of the embeddings; lr if not given. The schedule scales all rates alike."""
    """嵌入表的最高学习率；不给则为 lr。调度按同一比例改变所有学习率"""
    head_lr: float | None = field(default=None, metadata=LATER)
    """Highest learning rate of the LM head's weight; lr if not given."""
    """语言模型头权重的最高学习率；不给则为 lr"""
    vector_lr: float | None = field(default=None, metadata=LATER)
    """Highest learning rate of biases and gains; lr if not given."""
    """偏置与增益的最高学习率；不给则为 lr"""
    muon_lr: float = field(default=0.02, metadata=LATER)
    """Highest learning rate of the matrices that Muon updates."""
    """Muon 所更新的矩阵的最高学习率"""
    muon_momentum: float = field(default=0.95, metadata=LATER)
    """Momentum of Muon: decay rate of its running mean of gradients."""
    """Muon 的动量系数"""
    beta1: float = 0.9
    """AdamW: decay rate of the running mean of gradients."""
    beta2: float = 0.99
    """AdamW: decay rate of the running mean of squared gradients."""
    eps: float = 1e-8
    """AdamW: added to the root of the mean square, so that the division stays finite."""
    weight_decay: float = 0.1
    """Decoupled weight decay, applied to the arrays that --decay names."""
    decay: Literal["all", "matrices"] = "matrices"
    """Which arrays decay: all, or only those with two or more axes."""
    grad_clip: float = 1.0
    """Largest global norm of the gradient; 0 switches clipping off."""
    ema: float = field(default=0.0, metadata=LATER)
    """Decay of a moving average of the weights, such as 0.999; evaluation and sampling use the average. 0: none."""
    """权重滑动平均的衰减系数，如 0.999；评估与采样用平均后的权重。0：不平均"""

    def __post_init__(self) -> None:
        _check_types(self)
        _at_least(self, 0, "lr", "warmup_steps", "weight_decay", "grad_clip", "muon_lr")
        _at_most(self)
        if self.min_lr is not None and not 0 <= self.min_lr <= self.lr:
            raise ConfigError(f"min_lr {self.min_lr} must lie between 0 and lr {self.lr}. Lower min_lr.")
        for name in ("beta1", "beta2", "muon_momentum", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be at least 0 and below 1. Use 0.9.")
        if not self.eps > 0:
            raise ConfigError(f"eps is {self.eps}, but must be positive. Use 1e-8.")
        if not 0 < self.cooldown <= 1:
            raise ConfigError(f"cooldown is {self.cooldown}, but must be above 0 and at most 1. Use 0.6.")
        if self.cooldown < 1 and self.schedule != "linear":
            raise ConfigError(
                f"cooldown {self.cooldown} is for schedule linear, not {self.schedule}. Use --schedule linear."
            )
        for name in ("embedding_lr", "head_lr", "vector_lr"):
            if (rate := getattr(self, name)) is not None and rate < 0:
                raise ConfigError(f"{name} is {rate}, but must be at least 0. Leave it out for lr {self.lr:g}.")
        if not self.lr and any(map(self.rate_of, GROUPS)):
            raise ConfigError(
                "lr is 0, but another learning rate is not: the schedule scales all alike. Use --lr 1e-3."
            )

    def rate_of(self, group: str) -> float:
        """Return the highest learning rate of a group of parameters."""
        matrices = self.muon_lr if self.optimizer == "muon" else None
        rates = (self.embedding_lr, self.head_lr, matrices, self.vector_lr)
        found = rates[GROUPS.index(group)]
        return self.lr if found is None else found

    @property
    def floor_lr(self) -> float:
        """The learning rate at the last step."""
        return self.lr / 10 if self.min_lr is None else self.min_lr


@dataclass(frozen=True)
class TrainConfig:
    """One training run, whole: everything that decides its numbers, and when it saves."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    steps: int = 1000
    """Number of updates."""
    batch_size: int = 12
    """B: windows in one micro-batch."""
    grad_accum: int = 1
    """Micro-batches averaged into one update."""
    eval_interval: int = 250
    """Steps between evaluations on the validation windows; 0 evaluates only at the end."""
    eval_windows: int = 200
    """Fixed validation windows, spread evenly over the validation text."""
    save_interval: int = 500
    """Steps between checkpoints; 0 saves only at the end."""
    keep: int = 2
    """Checkpoints kept; older ones are removed after a newer one is safe."""
    seed: int = 1
    """Decides the initial weights and the order of the data."""
    dtype: Dtype = "float32"
    """Type of weights, activations, gradients and moments; bfloat16: float32 storage, bfloat16 matmul inputs."""
    runtime: str = "auto"
    """numpy: equation by equation. loops: the graph compiled for the CPU. xla: compiled by JAX. auto: the fastest."""
    threads: int = 0
    """Threads of the loops runtime, each with a share of the batch; 0: all cores."""
    mesh: str = field(default="", metadata=LATER)
    """Devices of the xla runtime along each axis, such as data=2,fsdp=2,sequence=2,tensor=2; one if not given."""
    recompute: Recompute = field(default="nothing", metadata=LATER)
    """What xla recomputes in the backward pass: nothing, cheap (all but matrix products), blocks (everything)."""

    def __post_init__(self) -> None:
        _check_types(self)
        _at_least(self, 1, "steps", "batch_size", "grad_accum", "eval_windows", "keep")
        _at_least(self, 0, "eval_interval", "save_interval", "seed", "threads")
        _at_most(self)

    @property
    def array_dtype(self) -> str:
        """The type of every stored array: bfloat16 is only the type of linear layers' inputs."""
        return "float32" if self.dtype == "bfloat16" else self.dtype

    @property
    def tokens_per_step(self) -> int:
        """Tokens that one update sees."""
        return self.batch_size * self.grad_accum * self.model.seq_len


def to_dict(config: Any) -> dict[str, Any]:
    """Return the settings as nested plain values, ready for JSON.

    A field with the metadata {"later": True} is left out at its default: files from before it keep their bytes.
    """
    return {
        f.name: to_dict(value) if hasattr(value := getattr(config, f.name), "__dataclass_fields__") else value
        for f in fields(config)
        if not (f.metadata.get("later") and getattr(config, f.name) == f.default)
    }


def from_dict(cls: type[Any], values: dict[str, Any], where: str = "config") -> Any:
    """Make a config of nested plain values; unknown keys are an error, missing ones take the default."""
    nested = {"model": ModelConfig, "data": DataConfig, "optim": OptimConfig} if cls is TrainConfig else {}
    if not isinstance(values, dict):
        raise ConfigError(f"{where} is {_brief(values)}, but must be a table of settings.")
    known = {f.name for f in fields(cls)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ConfigError(f"{where} has an unknown key {_brief(unknown[0])}. Known keys: {', '.join(sorted(known))}.")
    return cls(
        **{
            name: from_dict(nested[name], value, f"{where}.{name}") if name in nested else value
            for name, value in values.items()
        }
    )


def _check_types(config: Any) -> None:
    """Check every field against its annotation, so that a TOML string never reaches the arithmetic."""
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        kinds = get_args(hint) if get_origin(hint) is UnionType else (hint,)
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                raise ConfigError(f"{name} is {_brief(value)}. Use one of {', '.join(get_args(hint))}.")
            continue
        wanted = (*kinds, int) if float in kinds else kinds
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            kind = KINDS.get(kinds[0], kinds[0].__name__)
            raise ConfigError(f"{name} is {_brief(value)}, but must be {kind}{_example(config, name)}.")
        if float in kinds and value is not None and not abs(value) <= sys.float_info.max:
            raise ConfigError(f"{name} is {_brief(value)}, but must be a finite number{_example(config, name)}.")


def _at_least(config: Any, low: int, *names: str) -> None:
    """Raise ConfigError for the first field that is below its smallest value."""
    for name in names:
        value = getattr(config, name)
        if value < low:
            default = type(config).__dataclass_fields__[name].default
            usual = max(low, 1) if default is None else default
            raise ConfigError(f"{name} is {_brief(value)}, but must be at least {low}. Use {usual}.")


def _at_most(config: Any) -> None:
    """Raise ConfigError for the first field that is above its largest value."""
    for f in fields(config):
        value, most = getattr(config, f.name), MOST.get(f.name)
        if most is not None and value is not None and value > most:
            raise ConfigError(f"{f.name} is {_brief(value)}, but can be at most {most}. Use a smaller one.")


def _usual(config: Any, name: str) -> str:
    return f" Use {type(config).__dataclass_fields__[name].default:g}."


def _example(config: Any, name: str) -> str:
    default = type(config).__dataclass_fields__[name].default
    return f", such as {default!r}" if type(default) in (int, float, str) else ""


def _brief(value: Any) -> str:
    """Return a value as written, or its beginning; Python refuses to print integers of over 4,300 digits."""
    if isinstance(value, int) and abs(value) > 10**24:
        return "a number of over 24 digits"
    said = str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
    return said if len(said) <= 80 else f"{said[:80]}…"
