"""Two heads of one position: -1, 7 and 5, -5 together have root mean square 5."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.layer_norm import ROOT_TAKEN, UNDIVIDED
from byhand.book.practice.edits import Asked, first, nth, within
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, ratio, total


def _alone(xhat: Term, at: Asked) -> Term:
    """Return the element as a norm of its own head would have it."""
    row, eps = at.along(-1, "x"), xhat.parts[1].parts[0].parts[1]
    mean_square = ratio(total(function("square", x) for x in row), number(len(row), "D"))
    return ratio(row[at.index[-1]], function("sqrt", total((mean_square, eps))), "xhat")


entry = Entry(
    stem="heads_rms_norm",
    title_zh="所有头一起的均方根归一化",
    meanings_zh={"x": "各个头的查询或键", "gain": "增益，可省略（相当于 1）"},
    result_zh="每个位置的所有头一起归一化的结果",
    inputs={"x": [[[[-1, 7]], [[5, -5]]]], "gain": [2, 1, 1, 3]},
    static={"eps": 0.0},
    result=[[[["-2/5", "7/5"]], [[1, -3]]]],
    d_result=[[[[1, 0]], [[0, 0]]]],
    gradients={"x": [[[["99/250", "7/250"]], [["1/50", "-1/50"]]]], "gain": ["-1/5", 0, 0, 0]},
    note="The root mean square over both heads is 5. Each gain belongs to one column of one head.",
    note_zh="两个头合在一起的均方根为 5。每个增益对应一个头的一列。",
    goal=Words(
        "Bring each position's queries, or keys, of all heads to root mean square 1.",
        "把每个位置所有头的查询（或键）一起调整为均方根 1。",
    ),
    why=Words(
        "Scores then cannot grow with the weights of the projection. "
        "One scale for all heads leaves a head free to be larger than another.",
        "这样注意力分数就不会随投影的权重增大。所有头共用一个尺度，各个头之间仍可以有大有小。",
    ),
    why_back=Words(
        "Stretching all heads as a whole does not change the result. "
        "The derivative therefore has no component along x: it is subtracted.",
        "把所有头整体伸缩，结果不变，所以导数在 x 的方向上没有分量：公式中减去的就是这个分量。",
    ),
    place=("attention", 3),
    torch=(
        "F.rms_norm(x.transpose(1, 2).flatten(2), gain.shape, gain, eps).unflatten(2, (x.shape[1], -1))"
        ".transpose(1, 2)"
    ),
    asked="Olmo2RMSNorm, q_norm over all heads, whole query norm, norm before the split into heads, OLMo 2, OLMo2",
    labels_zh={"avg": "均值", "xhat": "x\u0302"},
    saved=(r"\hat{X}", r"\frac{1}{\sqrt{\overline{X^2} + \epsilon}}"),
    settings={"eps": r"\epsilon"},
    notations=("q_norm(q_proj(x)).view(b, t, h, d)",),
    mistakes=(
        ("normalised the head alone", "只对这一个头做了归一化", within(_alone, "xhat")),
        ("divided by the mean square instead of its root", "除以了均方，而不是均方根", within(nth(1, first), "xhat")),
    ),
    part_mistakes={"avg(x²)": (UNDIVIDED, ROOT_TAKEN)},
)
