"""Probabilities 10/17, 5/17, 1/17, 1/17 against a fifth of the largest: the first two stay."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.top_k import OF_DROPPED
from byhand.book.words.language import Words

entry = Entry(
    stem="min_p",
    title_zh="Min-p 截断",
    meanings_zh={"logits": "logits"},
    result_zh="用于采样的 logits",
    inputs={"logits": ["log(10)", "log(5)", 0, 0]},
    static={"p": 0.2},
    result=["log(10)", "log(5)", "-inf", "-inf"],
    d_result=[1, 2, 3, 4],
    gradients={"logits": [1, 2, 0, 0]},
    note="A fifth of the likeliest token's 10/17 is 2/17: 5/17 reaches it, 1/17 does not.",
    note_zh="最可能的词元概率为 10/17，它的五分之一是 2/17：5/17 达到了，1/17 没有达到。",
    goal=Words(
        "Keep the tokens whose probability is at least the fraction p of the largest.",
        "只保留概率不低于最大概率的 p 倍的词元。",
    ),
    why=Words(
        "The threshold follows the model: high where one token stands out, low where many are alike. "
        "A ratio of probabilities is a difference of logits, so no softmax is needed.",
        "门槛随模型而变：有一个词元突出时门槛高，许多词元相近时门槛低。概率之比取对数就是 logits 之差，所以不必计算 softmax。",
    ),
    why_back=OF_DROPPED,
    place=("sampling", 4),
    torch="logits.masked_fill(logits.softmax(-1) < p * logits.softmax(-1).amax(-1, keepdim=True), -torch.inf)",
    asked="MinPLogitsWarper, min-p sampling, relative probability threshold, 最小概率, 相对概率门槛",
    labels_zh={"dropped": "被去掉"},
    notations=(r"p_v \ge p_{\text{base}} \cdot p_{\max}", "probs < min_p * top_prob"),
)
