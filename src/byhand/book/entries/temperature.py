"""Four logits at temperature 2."""

from byhand.book.entries.contract import Worked

worked = Worked(
    inputs={"logits": [2, 1, 0, -1]},
    static={"tau": 2.0},
    result=[1, "1/2", 0, "-1/2"],
    d_result=[2, 4, 6, 8],
    gradients={"logits": [1, 2, 3, 4]},
    note={
        "en": "Halved differences mean a flatter distribution: e^(1/2) instead of e^1 from one token to the next.",
        "zh": "差距减半，分布就更平缓：相邻词元之间的比值从 e^1 变成 e^(1/2)。",
    },
)
