"""The equations in the order in which data flows through them, in groups that readers can find their way by."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """A stretch of the way from bytes to a loss, and back to new weights."""

    en: str
    zh: str
    members: tuple[str, ...]


GROUPS = (
    Group("Tokens to vectors", "从词元到向量", ("embedding", "add_positional")),
    Group("Normalisation and the stream", "归一化与残差流", ("layer_norm", "residual", "linear")),
    Group(
        "Attention",
        "注意力",
        (
            "causal_self_attention",
            "split_qkv",
            "attention_scores",
            "causal_softmax",
            "softmax",
            "mix",
            "merge_heads",
        ),
    ),
    Group("The MLP's activation", "前馈网络的激活函数", ("gelu", "relu")),
    Group("Loss and learning", "损失与学习", ("cross_entropy", "adamw")),
    Group("Sampling", "采样", ("temperature", "top_k", "top_p")),
    Group("Arithmetic on arrays", "数组运算", ("add", "mul", "matmul", "reshape", "transpose")),
)

ORDER = tuple(name for group in GROUPS for name in group.members)
