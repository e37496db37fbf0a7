"""Goals and reasons of steps whose equation has several roles: one linear layer makes queries, another logits."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.book.words.language import Words


@dataclass(frozen=True)
class Role:
    """A result's meaning, the goal of the step that makes it, and the reason for its form."""

    name: Words
    goal: Words
    why: Words | None = None


ONE_SCALE = Words(
    "The residual stream grows from block to block, but the layer after the norm always receives numbers of the "
    "same scale. eps keeps the root above 0 when all columns are equal.",
    "残差流中的数逐块增大；归一化之后，后面的层接收到的数始终在同一尺度。eps 保证各列相等时根号内仍大于 0。",
)
STREAM_OF_ONE_SCALE = Words(
    "Here the residual stream itself passes through the norm, so it has the same scale after every sublayer. eps "
    "keeps the root above 0 when all columns are equal.",
    "这里残差流本身经过归一化，所以每个子层之后它都在同一尺度。eps 保证各列相等时根号内仍大于 0。",
)
ROLES: dict[tuple[str, ...], Role] = {
    ("linear", "Q"): Role(
        Words("queries", "查询"),
        Words("Give each token a query: what it looks for.", "给每个词元一个查询：它在找什么。"),
        Words(
            "Queries, keys and values are three views of the same tokens, each with its own weights. A token can "
            "be found by one property and pass on another.",
            "查询、键、值是同一批词元的三种表示，各有自己的权重。因此一个词元可以凭一种特征被找到，却交出另一种内容。",
        ),
    ),
    ("linear", "K"): Role(
        Words("keys", "键"),
        Words("Give each token a key: what it can be found by.", "给每个词元一个键：别人凭哪些特征找到它。"),
        Words(
            "Every key meets every query in a dot product, so both have the same number of columns.",
            "每个键都要与每个查询做点积，所以两者的列数相同。",
        ),
    ),
    ("linear", "V"): Role(
        Words("values", "值"),
        Words(
            "Give each token a value: what it passes on when it is found.", "给每个词元一个值：被找到时交出的内容。"
        ),
        Words(
            "A score decides how much of a value is used, never what it contains. The content has its own weights.",
            "分数只决定取多少，不决定取到什么；内容由单独的权重产生。",
        ),
    ),
    ("matmul", "z"): Role(
        Words("the row of logits", "用来预测的一行"),
        Words(
            "Take row 0 of the output as logits: a score for each of two tokens.",
            "取输出的第 0 行作为 logits：两个词元各一个分数。",
        ),
        Words(
            "A real model has one more weight matrix here, the LM head. It turns the columns into a score for each "
            "token of the vocabulary. This example leaves it out.",
            "真实的模型在这里还有一个权重，即语言模型头，把各列变成词表中每个词元的分数。这个核心例子省去了它。",
        ),
    ),
    ("layer_norm", "ln_1"): Role(
        Words("before attention", "注意力之前"),
        Words(
            "Bring each token's vector to mean 0 and variance 1 before attention reads it.",
            "在注意力读取之前，把每个词元的向量调整为均值 0、方差 1。",
        ),
        ONE_SCALE,
    ),
    ("layer_norm", "ln_2"): Role(
        Words("before the MLP", "前馈网络之前"),
        Words(
            "Bring each token's vector to mean 0 and variance 1 before the MLP reads it.",
            "在前馈网络读取之前，把每个词元的向量调整为均值 0、方差 1。",
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
            "Bring each token's vector back to mean 0 and variance 1 after attention was added to it.",
            "加上注意力的结果之后，把每个词元的向量重新调整为均值 0、方差 1。",
        ),
        STREAM_OF_ONE_SCALE,
    ),
    ("layer_norm", "ln_2", "alone"): Role(
        Words("after the MLP", "前馈网络之后"),
        Words(
            "Bring each token's vector back to mean 0 and variance 1 after the MLP was added to it.",
            "加上前馈网络的结果之后，把每个词元的向量重新调整为均值 0、方差 1。",
        ),
        STREAM_OF_ONE_SCALE,
    ),
    ("linear", "attn.qkv"): Role(
        Words("queries, keys and values", "查询、键与值"),
        Words(
            "Give each token a query (what it looks for), a key (what it can be found by) and a value (what it "
            "passes on).",
            "给每个词元一个查询（它在找什么）、一个键（别人凭哪些特征找到它）、一个值（它交出什么）。",
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
        Words("Measure F features of each token.", "为每个词元算出 F 个特征。"),
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
            "Each column of W_lm stands for a token. The token's logit is large when the stream points in the "
            "direction of that column.",
            "W_lm 的每一列代表一个词元；最终的残差流与哪一列方向相近，哪个词元的 logit 就大。",
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
    ("linear", "a"): Role(
        Words("into the hidden units", "进入隐藏单元"),
        Words("Weigh the pixels once for each hidden unit.", "为每个隐藏单元对像素加权求和。"),
        Words(
            "Each column of W_1 is a pattern of pixels: positive where the unit wants light, negative where it wants "
            "dark. The result is large if the picture fits the pattern. All pictures share W_1.",
            "W_1 的每一列是一个像素图样：希望点亮的像素为正，希望熄灭的为负。图与图样越吻合，结果越大。所有图共用 "
            "W_1。",
        ),
    ),
    ("relu", "h"): Role(
        Words("the hidden units", "隐藏单元"),
        Words("Keep the patterns that fit; set the others to 0.", "保留吻合的图样，其余置 0。"),
    ),
    ("linear", "z"): Role(
        Words("the classes' scores", "各类别的分数"),
        Words("Give each class a score, its logit.", "给每个类别打分，即 logit。"),
        Words(
            "Column k of W_2 says how much each pattern counts for class k, or against it.",
            "W_2 的第 k 列表示每个图样在多大程度上支持或反对类别 k。",
        ),
    ),
    ("cross_entropy", "L"): Role(
        Words("the right classes", "正确的类别"),
        Words("Measure how badly the right classes were predicted.", "衡量对正确类别的预测有多差。"),
    ),
}

for _letter, _role in (("Q", "queries'"), ("K", "keys'"), ("V", "values'")):
    ROLES["mul", f"ΔW_{_letter}"] = Role(
        Words(f"the change of W_{_letter}", f"W_{_letter} 的改变量"),
        Words(
            f"Turn the gradient of the {_role} weight into a step: minus the learning rate times the gradient.",
            f"由 W_{_letter} 的梯度得到改变量：负的学习率乘以梯度。",
        ),
        Words(
            "The gradient points in the direction in which the loss grows fastest, so the step goes the opposite "
            "way. The learning rate keeps it short: a gradient is accurate only near the point where it was "
            "computed.",
            "梯度指向损失增大最快的方向，所以权重朝反方向更新。学习率使步长保持很小：梯度只在计算它的那一点附近才准确。",
        ),
    )
    ROLES["add", f"W_{_letter}'"] = Role(
        Words(f"the new W_{_letter}", f"新的 W_{_letter}"),
        Words(f"Update W_{_letter}.", f"更新 W_{_letter}。"),
        Words(
            "All weights are updated together, each with its own gradient of the same loss.",
            "所有权重同时更新，用的都是同一个损失对各自的梯度。",
        ),
    )


def role(stem: str, name: str, alone: bool = False) -> Role | None:
    """Return the role of an equation's result by its name, also within a scope: `token0.attn.qkv`.

    alone  whether nothing else reads the equation's first input: a block's norm is then in the stream, after a
           sublayer, and not beside it, before one
    """
    parts = name.split(".")
    names = [".".join(parts[first:]) for first in range(len(parts))]
    keys = [(stem, inner, *asked) for asked in ([("alone",), ()] if alone else [()]) for inner in names]
    return next((ROLES[key] for key in keys if key in ROLES), None)
