"""Every setting, in frozen dataclasses that check themselves on construction; `model_config.py` has the model's.

Fields are the flags of `byhand train` (`batch_size` is `--batch-size`) and the keys of a TOML file. The string below
a field is its help text; the pages show the one below that, if any, in Chinese.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, get_args

from byhand.config_checks import LATER, at_least, at_most, brief, check_types, needs, require_encoding
from byhand.engine.equation import registry, with_role
from byhand.errors import ConfigError
from byhand.formats.names import Dtype, array_of
from byhand.model_config import ModelConfig

Group = Literal["embeddings", "head", "matrices", "vectors"]  # of parameters, declared by layers
GROUPS: tuple[Group, ...] = get_args(Group)
OF_THE_REST = "adamw"  # the update of all other parameters if the chosen one is for matrices
WINDOW = 1024  # longest default window of tuning and evaluation, in tokens
Recompute = Literal["nothing", "cheap", "blocks"]  # in the backward pass, instead of keeping it


@dataclass(frozen=True)
class DataConfig:
    """The text, and the part kept for validation."""

    data: str | tuple[str, ...] = "python-stdlib"
    """Files (text, JSON lines, parquet, also compressed), folders, or patterns like "books/*.txt"; or one of - for
    standard input, python-stdlib, and shakespeare."""
    """文件（文本、JSON Lines、parquet，可压缩）、文件夹，或 "books/*.txt" 这样的通配符；也可以是 -（标准输入）、
    python-stdlib 或 shakespeare"""
    chat: str | tuple[str, ...] = field(default="", metadata=LATER)
    """Instead of --data: conversations in JSON lines, such as {"messages": [{"role": "user", "content": "To be?"},
    {"role": "assistant", "content": "Not to be."}]}, or in ShareGPT's form. Only the answers are learnt."""
    """代替 --data：JSON Lines 格式的对话，例如 {"messages": [{"role": "user", "content": "To be?"},
    {"role": "assistant", "content": "Not to be."}]}，或 ShareGPT 格式。只学习回答部分"""
    text_field: str = field(default="", metadata=LATER)
    """The field of JSON lines and parquet that holds the text; text if not given. If given, standard input is read
    as JSON lines too."""
    """JSON Lines 和 parquet 中存放文本的字段，默认为 text。给出时，标准输入按 JSON Lines 读取"""
    encoding: str = field(default="auto", metadata=LATER)
    """Encoding of text files, such as cp1252 or gb18030; bytes reads files unchanged. auto: UTF-8, UTF-16 with a
    byte order mark, or else detected."""
    """文本文件的编码，例如 cp1252 或 gb18030；bytes 表示原样读取。auto：UTF-8、带 BOM 的 UTF-16，否则自动检测"""
    exclude: Annotated[str | tuple[str, ...], "repeated"] = field(default="", metadata=LATER)
    """Leave out files and folders whose name, or path within a folder of --data, matches this pattern, such as
    "*.log" or "drafts/*". May be repeated."""
    """排除名称或（相对于 --data 文件夹的）路径与通配符匹配的文件和文件夹，例如 "*.log" 或 "drafts/*"；可多次给出"""
    strict: Annotated[bool, "switch"] = field(default=False, metadata=LATER)
    """Stop at a file or document that cannot be read; by default those in folders and patterns are skipped and
    listed."""
    """遇到无法读取的文件或文档就停止；默认跳过文件夹和通配符中的此类文件并列出"""
    tokenizer: str = field(default="", metadata=LATER)
    """A tokenizer's file or folder (see `byhand tokenizer`), which sets vocab_size; bytes if not given. If it
    puts a token before each text (BOS), each document begins with it."""
    val_fraction: float = 0.1
    """Fraction of the text kept for validation: whole documents, or the end of a single one."""
    """留作验证的比例：从多篇文档中抽取整篇；只有一篇时取末尾"""
    val_data: str | tuple[str, ...] = field(default="", metadata=LATER)
    """A text for validation, given like --data; a part of --data if not given."""
    """验证用的文本，写法同 --data；不给出时取自 --data"""

    def __post_init__(self) -> None:
        for name in (
            "data",
            "val_data",
            "chat",
            "exclude",
        ):  # a single name is stored as a string, as in older files
            if isinstance(value := getattr(self, name), list | tuple):
                object.__setattr__(self, name, value[0] if len(value) == 1 else tuple(value))
        check_types(self)
        if not self.sources:
            raise ConfigError("data names no file. Use a file, a folder, or python-stdlib.")
        for name in (*self.sources, *self.val_sources):
            if not isinstance(name, str):
                raise ConfigError(f"data names {brief(name)}, but must name files. Use text in quotes.")
        require_encoding(self.encoding)
        if not 0 < self.val_fraction < 1:
            raise ConfigError(f"val_fraction is {self.val_fraction}, but must lie between 0 and 1. Use 0.1.")

    @property
    def sources(self) -> tuple[str, ...]:
        """What --data names, or --chat."""
        named = self.chat or self.data
        return (named,) if isinstance(named, str) else named

    @property
    def val_sources(self) -> tuple[str, ...]:
        """What --val-data names."""
        return (self.val_data,) * bool(self.val_data) if isinstance(self.val_data, str) else self.val_data


@dataclass(frozen=True)
class OptimConfig:
    """The optimizer and its schedule: linear warm-up to lr, then by default a cosine down to min_lr at the end."""

    optimizer: Literal[with_role("update")] = field(default="adamw", metadata=LATER)  # pyright: ignore[reportInvalidTypeForm]  (late)
    """How gradients update parameters. muon updates matrices only: embeddings, head and vectors then use adamw."""
    """用梯度更新参数的方法。muon 只用于矩阵：此时嵌入表、语言模型头、偏置与增益用 adamw"""
    lr: float = 3e-3
    """Highest learning rate."""
    min_lr: float | None = field(default=None, metadata=needs("schedule", "cosine", "linear"))
    """Learning rate at the last step; lr / 10 if not given."""
    warmup_steps: int = 100
    """Steps over which the learning rate rises from 0 to lr; at most half of the run."""
    schedule: Literal["cosine", "constant", "linear"] = "cosine"
    """After the warm-up: a cosine down to min_lr, constant lr, or a straight line down (see --cooldown)."""
    cooldown: float = field(default=1.0, metadata=LATER | needs("schedule", "linear"))
    """With --schedule linear: final fraction of the run over which the rate falls; until then it is lr."""
    """用于 --schedule linear：训练末尾学习率直线下降的阶段占全部步数的比例；此前保持 lr"""
    embedding_lr: float | None = field(default=None, metadata=LATER)
    """Highest learning rate of the embeddings; lr if not given. The schedule scales all rates alike."""
    """嵌入表的最高学习率；不给则为 lr。调度按同一比例改变所有学习率"""
    head_lr: float | None = field(default=None, metadata=LATER | needs("tied_embeddings", False))
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
    """Decoupled weight decay, applied to the arrays chosen by --decay."""
    decay: Literal["all", "matrices"] = "matrices"
    """Which arrays decay: all, or only those with two or more axes."""
    grad_clip: float = 1.0
    """Largest global norm of the gradient; 0 switches clipping off."""
    ema: float = field(default=0.0, metadata=LATER)
    """Decay of a moving average of the weights, such as 0.999; evaluation and sampling use the average. 0: none."""
    """权重滑动平均的衰减系数，如 0.999；评估与采样用平均后的权重。0：不平均"""

    def __post_init__(self) -> None:
        check_types(self)
        at_least(self, 0, "lr", "warmup_steps", "weight_decay", "grad_clip", "muon_lr")
        at_most(self)
        if self.min_lr is not None and not 0 <= self.min_lr <= self.lr:
            raise ConfigError(f"min_lr {self.min_lr} must lie between 0 and lr {self.lr}. Lower min_lr.")
        for name in ("beta1", "beta2", "muon_momentum", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, but must be at least 0 and below 1. Use 0.9.")
        if not self.eps > 0:
            raise ConfigError(f"eps is {self.eps}, but must be positive. Use 1e-8.")
        if not 0 < self.cooldown <= 1:
            raise ConfigError(f"cooldown is {self.cooldown}, but must be above 0 and at most 1. Use 0.6.")
        for name in ("embedding_lr", "head_lr", "vector_lr"):
            if (rate := getattr(self, name)) is not None and rate < 0:
                raise ConfigError(f"{name} is {rate}, but must be at least 0. Leave it out for lr {self.lr:g}.")
        if not self.lr and any(map(self.rate_of, GROUPS)):
            raise ConfigError(
                "lr is 0, but another learning rate is not: the schedule scales all alike. Use --lr 1e-3."
            )

    def rate_of(self, group: Group) -> float:
        """Return the highest learning rate of a group of parameters."""
        rates: dict[Group, float | None] = {
            "embeddings": self.embedding_lr,
            "head": self.head_lr,
            "matrices": None,
            "vectors": self.vector_lr,
        }
        rate = rates[group]
        return getattr(self, f"{self.rule_of(group)}_lr", self.lr) if rate is None else rate

    def rule_of(self, group: Group) -> str:
        """Return the name of a group's update."""
        return OF_THE_REST if self.by_matrix and group != "matrices" else self.optimizer

    @property
    def by_matrix(self) -> bool:
        """Whether the optimizer updates whole matrices: its theta is one."""
        return registry[self.optimizer].inputs[0].shape != "(...)"

    @property
    def floor_lr(self) -> float:
        """The learning rate at the last step."""
        return self.lr / 10 if self.min_lr is None else self.min_lr


@dataclass(frozen=True)
class TrainConfig:
    """One whole training run: everything that decides its numbers, and when it saves."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    steps: int = 1000
    """Number of updates. With --init-from, unless given, 20 to 2000: about three passes over the text."""
    batch_size: int = field(default=12, metadata={"auto": True})
    """B: windows in one micro-batch. auto (the default with --init-from and the presets gpt2, llama and qwen3): as
    many as fit into memory; --grad-accum then makes up the rest of batch-size times grad-accum."""
    grad_accum: int = 1
    """Micro-batches averaged into one update."""
    window: int | None = field(default=None, metadata=LATER)
    """Length of the windows in training and validation, in tokens; seq_len if not given. With --init-from, that of
    the longest conversation, at most 1024; the model's context stays."""
    """训练与验证时窗口的长度，以词元计；不给则为 seq_len。用 --init-from 时，取最长一段对话的长度，至多 1024；
    模型的上下文不变"""
    eval_interval: int = 250
    """Steps between evaluations on the validation windows; 0 evaluates only at the end."""
    eval_windows: int = 200
    """Fixed validation windows, spread evenly over the validation text; at most enough to read all of it."""
    save_interval: int = 500
    """Steps between checkpoints; 0 saves only at the end."""
    keep: int = 2
    """Checkpoints kept; older ones are removed after a newer one is safe."""
    keep_best: bool = field(default=False, metadata=LATER)
    """Save after each evaluation with the lowest validation loss so far, and keep that checkpoint too."""
    """每次评估若验证损失是目前最低，就保存检查点，并一直保留它"""
    seed: int = 1
    """Decides the initial weights and the order of the data."""
    dtype: Dtype = "float32"
    """Type of weights, activations, gradients and moments; bfloat16: float32 storage, bfloat16 matmul inputs."""
    runtime: str = "auto"
    """numpy: equation by equation. loops: the graph compiled for the CPU. xla: compiled by JAX. auto: the fastest."""
    threads: int = 0
    """Threads of the loops runtime, which share the batch; 0: all cores."""
    mesh: str = field(default="", metadata=LATER)
    """Devices of the xla runtime along each axis, such as data=2,fsdp=2,sequence=2,tensor=2; one if not given."""
    recompute: Recompute = field(default="nothing", metadata=LATER)
    """What xla recomputes in the backward pass: nothing, cheap (all but matrix products), blocks (everything)."""

    def __post_init__(self) -> None:
        check_types(self)
        at_least(self, 1, "steps", "batch_size", "grad_accum", "eval_windows", "keep")
        at_least(self, 0, "eval_interval", "save_interval", "seed", "threads")
        at_most(self)

        if self.window is not None:
            at_least(self, 1, "window")
        frozen = "with lora most" if self.model.lora else "" if self.model.norm_bias else "without norm_bias some"
        if frozen and self.optim.ema:
            raise ConfigError(f"ema averages all weights, but {frozen} are frozen. Use only one of them.")

    @property
    def array_dtype(self) -> str:
        """The type of every stored array: a dtype that NumPy lacks applies only to inputs of linear layers."""
        return array_of(self.dtype)

    @property
    def tokens_per_step(self) -> int:
        """Tokens in one update."""
        return self.batch_size * self.grad_accum * self.length

    @property
    def length(self) -> int:
        """T: tokens of a window in training and validation. ConfigError if the model's seq_len is smaller."""
        most = self.model.seq_len
        if self.window is not None and self.window > most:
            raise ConfigError(f"window is {self.window}, but the model's seq_len is {most}. Use --window {most}.")
        return self.window or most


def to_dict(config: Any) -> dict[str, Any]:
    """Return the settings as nested plain values, ready for JSON.

    A field with the metadata {"later": True} is left out at its default, so older files keep their bytes.
    """
    return {
        f.name: to_dict(value) if hasattr(value := getattr(config, f.name), "__dataclass_fields__") else value
        for f in fields(config)
        if not (f.metadata.get("later") and getattr(config, f.name) == f.default)
    }


def from_dict(cls: type[Any], values: dict[str, Any], where: str = "config") -> Any:
    """Make a config from nested plain values; unknown keys are an error, missing ones take the default."""
    nested = {"model": ModelConfig, "data": DataConfig, "optim": OptimConfig} if cls is TrainConfig else {}
    if not isinstance(values, dict):
        raise ConfigError(f"{where} is {brief(values)}, but must be a table of settings.")
    known = {f.name for f in fields(cls)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ConfigError(f"{where} has an unknown key {brief(unknown[0])}. Known keys: {', '.join(sorted(known))}.")
    return cls(
        **{
            name: from_dict(nested[name], value, f"{where}.{name}") if name in nested else value
            for name, value in values.items()
        }
    )
