"""Four logits at temperature 2."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, negated
from byhand.book.words.language import Words
from byhand.engine.terms import Term, product, total


def _minus_tau(term: Term, at: Asked) -> Term:
    z, tau = term.parts
    return total((z, negated(tau, at)))


entry = Entry(
    stem="temperature",
    title_zh="温度",
    meanings_zh={"logits": "logits"},
    result_zh="用于采样的 logits",
    inputs={"logits": [2, 1, 0, -1]},
    static={"tau": 2.0},
    result=[1, "1/2", 0, "-1/2"],
    d_result=[2, 4, 6, 8],
    gradients={"logits": [1, 2, 3, 4]},
    note=(
        "Halved differences flatten the distribution: "
        "the ratio of neighbouring probabilities is e^(1/2) instead of e^1."
    ),
    note_zh="差距减半，分布就更平缓：相邻词元之间的比值从 e^1 变成 e^(1/2)。",
    goal=Words(
        "Sharpen or flatten the distribution before a token is drawn.",
        "在抽取词元之前，让分布更尖锐或更平缓。",
    ),
    why=Words(
        "Dividing by τ below 1 stretches the differences between logits, so the likeliest token gains; τ above 1 shrinks them.",
        "τ 小于 1 时，logits 之间的差距被拉大，最可能的词元概率更高；τ 大于 1 时差距缩小。",
    ),
    why_back=Words(
        "The forward pass divides by τ, so the backward pass divides ∂y by τ.",
        "前向传播除以 τ，所以反向传播时 ∂y 也除以 τ。",
    ),
    place=("sampling", 1),
    torch="logits / tau",
    asked=(
        "greedy decoding, argmax, torch.argmax, more random output, more creative, less random, 更随机, 更确定, "
        "随机性, 贪心解码, 贪婪搜索, 贪心, 取最大值"
    ),
    settings={"tau": r"\tau"},
    notations=("logits / temp", "softmax(z / T)"),
    mistakes=(
        ("multiplied by the temperature", "乘以了温度", lambda term, at: product(term.parts)),
        ("subtracted the temperature", "减去了温度", _minus_tau),
    ),
)
