"""The two largest of four logits stay."""

from byhand.book.entries.contract import Entry
from byhand.book.words.language import Words
from byhand.engine.terms import number

OF_DROPPED = Words(
    "A dropped logit affects no result, so its gradient is 0; the others pass ∂y on.",
    "被去掉的 logit 不影响任何结果，梯度为 0；其余的原样传回 ∂y。",
)

entry = Entry(
    stem="top_k",
    title_zh="Top-k 截断",
    meanings_zh={"logits": "logits"},
    result_zh="用于采样的 logits",
    inputs={"logits": [2, 1, 0, -1]},
    static={"k": 2},
    result=[2, 1, "-inf", "-inf"],
    d_result=[1, 2, 3, 4],
    gradients={"logits": [1, 2, 0, 0]},
    note="A dropped logit becomes minus infinity: its probability is exactly zero, and so is its gradient.",
    note_zh="被去掉的 logit 变成负无穷：概率恰好为零，梯度也为零。",
    goal=Words(
        "Keep the k likeliest tokens only.",
        "只保留最可能的 k 个词元。",
    ),
    why=Words(
        "Each unlikely token is rarely drawn, but there are many of them. A logit of −∞ gives probability 0.",
        "单个可能性小的词元很少被抽到，但这样的词元很多。logit 置为 −∞，概率就是 0。",
    ),
    why_back=OF_DROPPED,
    place=("sampling", 2),
    torch="logits.masked_fill(logits < logits.topk(k).values[..., -1:], -torch.inf)",
    asked="torch.topk, topk, TopKLogitsWarper, 前k个词元, keep k tokens",
    labels_zh={"dropped": "被去掉"},
    mistakes=(
        (
            "dropped it as 0 instead of −∞",
            "去掉时置成了 0，而不是 −∞",
            lambda term, at: term if term.parts else number(0, "dropped"),
        ),
    ),
)
