"""At minus and plus the logarithm of 2, and at 0: the slopes are 1/3, 1/2 and 2/3."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import cotangent, first
from byhand.book.words.glossary import Concept
from byhand.engine.terms import function

entry = Entry(
    stem="softplus",
    title_zh="Softplus（平滑的 ReLU）",
    meanings_zh={"x": "任意数组"},
    result_zh="恒为正的数组",
    inputs={"x": ["-log(2)", 0, "log(2)"]},
    result=["log(3/2)", "log(2)", "log(3)"],
    d_result=[3, 2, 3],
    gradients={"x": [1, 1, 2]},
    note="The difference of the outer two is log 2: softplus(x) - softplus(-x) = x.",
    note_zh="两端之差为 log 2，因为 softplus(x) - softplus(-x) = x。",
    place=("activation", 3),
    notations=("log1p(exp(x))", r"\zeta(x)"),
    concepts=(Concept("smooth rectifier", "平滑整流函数", ("softplus",), ("SmoothReLU",), is_first=True),),
    mistakes=(
        ("used ReLU", "用成了 ReLU", lambda term, at: function("positive", at.read(0, "x"))),
        ("stopped before the logarithm", "没有取对数", first),
    ),
    gradient_mistakes=(("took the slope for 1", "把斜率当成了 1", cotangent),),
)
