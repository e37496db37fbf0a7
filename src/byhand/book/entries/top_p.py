"""Probabilities 5/8, 1/4, 1/8: the first two are needed to reach 3/4."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.top_k import OF_DROPPED
from byhand.book.words.language import Words

entry = Entry(
    stem="top_p",
    title_zh="Top-p（核）截断",
    meanings_zh={"logits": "logits"},
    result_zh="用于采样的 logits",
    inputs={"logits": ["log(5)", "log(2)", 0]},
    static={"p": 0.75},
    result=["log(5)", "log(2)", "-inf"],
    d_result=[1, 2, 3],
    gradients={"logits": [1, 2, 0]},
    note="Before the third token the sum is already 7/8, which is not below 3/4: it is dropped.",
    note_zh="排在第三个词元之前的概率之和已是 7/8，不小于 3/4，所以去掉它。",
    goal=Words(
        "Keep the likeliest tokens that together reach the probability p.",
        "只保留概率之和达到 p 的最可能的词元。",
    ),
    why=Words(
        "When the model is confident, few tokens remain; otherwise many do.",
        "模型有把握时留下的词元少，没有把握时留下的多。",
    ),
    why_back=OF_DROPPED,
    place=("sampling", 3),
    asked="TopPLogitsWarper, cumulative probability, 累积概率",
    labels_zh={"dropped": "被去掉"},
)
