"""Below zero, at zero and above."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.gelu import entry as gelu
from byhand.book.practice.edits import cotangent, first, negated
from byhand.book.words.language import Words

entry = Entry(
    stem="relu",
    title_zh="ReLU",
    meanings_zh={"x": "任意数组"},
    result_zh="负数置零后的数组",
    inputs={"x": [-2, 0, 3]},
    result=[0, 0, 3],
    d_result=[5, 5, 5],
    gradients={"x": [0, 0, 5]},
    note="At exactly zero there is no derivative; the convention is 0.",
    note_zh="在零点处导数不存在，按约定取 0。",
    goal=Words(
        "Keep positive numbers and set negative ones to 0.",
        "保留正数，负数置 0。",
    ),
    why=gelu.why,
    why_back=Words(
        "The slope is 1 for positive numbers and 0 for negative ones: "
        "a number that was set to 0 passes no derivative back.",
        "正数处斜率为 1，负数处为 0：被置 0 的数不传回导数。",
    ),
    place=("activation", 2),
    torch="F.relu(x)",
    asked="nn.ReLU, F.relu, max(0 x), torch.clamp",
    notations=("max(0, x)", r"F = \mathrm{ReLU}(M W_{fc} + b_{fc})"),
    mistakes=(
        ("kept the negative value", "保留了负值", first),
        (
            "took the absolute value",
            "取成了绝对值",
            lambda term, at: term if term.value else negated(term.parts[0], at),
        ),
    ),
    gradient_mistakes=(("let the gradient through where x is negative", "在 x 为负处也让梯度通过了", cotangent),),
)
