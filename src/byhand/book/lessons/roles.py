"""Goals and reasons of steps whose equation has several roles: one linear layer makes queries, another logits.

Those of a model's pass are here; a lesson whose names mean something else brings its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from byhand.book.words.language import Words


@dataclass(frozen=True)
class Role:
    """A result's meaning, the goal of the step that makes it, and the reason for its form."""

    name: Words
    goal: Words
    why: Words | None = None


ONE_SCALE = Words(
    "The residual stream may grow from block to block, but the layer after the norm always receives numbers of the "
    "same scale. ε keeps the root above 0 when all columns are equal.",
    "残差流中的数可能逐块增大；归一化之后，后面的层接收到的数始终在同一尺度。ε 保证各列相等时根号内仍大于 0。",
)
STREAM_OF_ONE_SCALE = Words(
    "Here the residual stream itself passes through the norm, so it has the same scale after every sublayer. ε "
    "keeps the root above 0 when all columns are equal.",
    "这里残差流本身经过归一化，所以每个子层之后它都在同一尺度。ε 保证各列相等时根号内仍大于 0。",
)
Roles = Mapping[tuple[str, ...], Role]  # by equation and by the result's place, its name in the pass
MODEL: Roles = {
    ("layer_norm", "ln_1"): Role(
        Words("before attention", "注意力之前"),
        Words(
            "Bring each token's vector to mean μ = 0 and variance σ² = 1 before attention reads it.",
            "在注意力读取之前，把每个词元的向量调整为均值 μ = 0、方差 σ² = 1。",
        ),
        ONE_SCALE,
    ),
    ("layer_norm", "ln_2"): Role(
        Words("before the MLP", "前馈网络之前"),
        Words(
            "Bring each token's vector to mean μ = 0 and variance σ² = 1 before the MLP reads it.",
            "在前馈网络读取之前，把每个词元的向量调整为均值 μ = 0、方差 σ² = 1。",
        ),
        ONE_SCALE,
    ),
    ("layer_norm", "ln_f"): Role(
        Words("before the LM head", "语言模型头之前"),
        Words(
            "Normalise the final residual stream before the LM head reads it.",
            "在语言模型头读取之前，把最终的残差流调整到同一尺度。",
        ),
        ONE_SCALE,
    ),
    ("layer_norm", "ln_1", "alone"): Role(
        Words("after attention", "注意力之后"),
        Words(
            "Bring each token's vector back to mean μ = 0 and variance σ² = 1 after attention was added to it.",
            "加上注意力的结果之后，把每个词元的向量重新调整为均值 μ = 0、方差 σ² = 1。",
        ),
        STREAM_OF_ONE_SCALE,
    ),
    ("layer_norm", "ln_2", "alone"): Role(
        Words("after the MLP", "前馈网络之后"),
        Words(
            "Bring each token's vector back to mean μ = 0 and variance σ² = 1 after the MLP was added to it.",
            "加上前馈网络的结果之后，把每个词元的向量重新调整为均值 μ = 0、方差 σ² = 1。",
        ),
        STREAM_OF_ONE_SCALE,
    ),
    ("linear", "attn.qkv"): Role(
        Words("queries, keys and values", "查询、键与值"),
        Words(
            "Give each token a query (what it looks for), a key (what it can be found by) and a value (what it "
            "passes on).",
            "给每个词元一个查询（它在找什么）、一个键（其他词元凭哪些特征找到它）、一个值（它交出什么）。",
        ),
        Words(
            "Three views with their own weights: a token can be found by one property and pass on another. These "
            "weights lie side by side, so one product computes all three.",
            "三种表示各有自己的权重：词元可以凭一种特征被找到，却交出另一种内容。三个权重矩阵并排存放，一次乘法全部算出。",
        ),
    ),
    ("linear", "attn.out"): Role(
        Words("output projection", "输出投影"),
        Words(
            "Turn what attention gathered into a change to the stream.",
            "把注意力收集到的内容变成加到残差流上的增量。",
        ),
        Words(
            "Each head left its result in columns of its own. W_proj combines them and decides which columns of the "
            "stream they write to.",
            "各个头的结果分别位于各自的列中。W_proj 让它们组合起来，并决定写入残差流的哪些列。",
        ),
    ),
    ("linear", "mlp.pre"): Role(
        Words("into the MLP", "进入前馈网络"),
        Words("Measure the features of each token.", "为每个词元算出各个特征。"),
        Words(
            "Each column of W_fc detects one feature of the vector. GPT uses four times as many features as the "
            "stream has columns.",
            "W_fc 的每一列检测一种特征：词元的向量与该列方向越接近，结果越大。在 GPT 中，特征数是残差流列数的四倍。",
        ),
    ),
    ("linear", "mlp.out"): Role(
        Words("out of the MLP", "离开前馈网络"),
        Words("Turn the active features into a change to the stream.", "把被激活的特征变成加到残差流上的增量。"),
        Words(
            "Row f of W_out is what feature f writes into the stream when it is active.",
            "W_out 的第 f 行，就是特征 f 被激活时写入残差流的内容。",
        ),
    ),
    ("linear", "logits"): Role(
        Words("LM head", "语言模型头"),
        Words(
            "Give every token of the vocabulary a score as the next token.",
            "给词表中的每个词元打分：分数越大，越可能是下一个词元。",
        ),
        Words(
            "Each column of W_lm stands for a token. The closer a row of the stream is to the direction of "
            "that column, the larger the token's logit.",
            "W_lm 的每一列代表一个词元；残差流的一行与哪一列的方向越接近，那个词元的 logit 就越大。",
        ),
    ),
    ("residual", "x_mid"): Role(
        Words("after attention", "注意力之后"),
        Words("Add what attention gathered to the stream.", "把注意力收集到的内容加到残差流上。"),
    ),
    ("residual", "x_out"): Role(
        Words("after the MLP", "前馈网络之后"),
        Words("Add what the MLP found to the stream.", "把前馈网络的结果加到残差流上。"),
    ),
}


def role(roles: Roles, stem: str, name: str, alone: bool = False) -> Role | None:
    """Return the role of an equation's result in its place, also within a scope: `token0.attn.qkv`.

    alone  whether nothing else reads the equation's first input: a block's norm is then in the stream, after a
           sublayer, and not beside it, before one
    """
    parts = name.split(".")
    names = [".".join(parts[first:]) for first in range(len(parts))]
    keys = [(stem, inner, *asked) for asked in ([("alone",), ()] if alone else [()]) for inner in names]
    return next((roles[key] for key in keys if key in roles), None)
