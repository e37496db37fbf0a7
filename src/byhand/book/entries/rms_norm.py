"""The row -1, 7, 5, -5 has root mean square 5, so every number is a fraction (with eps = 0)."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, first, nth, within
from byhand.book.words.glossary import Concept
from byhand.engine.terms import Term, function, number, ratio, total


def _centred(xhat: Term, at: Asked) -> Term:
    """LayerNorm's number: the deviation from the mean over the standard deviation."""
    row = at.along(-1, "x")
    width, eps = number(len(row), "C"), xhat.parts[1].parts[0].parts[1]
    minus_mean = function("negative", ratio(total(row), width, "mean"))
    deviations = [total((x, minus_mean)) for x in row]
    variance = ratio(total(function("square", d) for d in deviations), width)
    return ratio(deviations[at.index[-1]], function("sqrt", total((variance, eps))), "xhat")


entry = Entry(
    stem="rms_norm",
    title_zh="均方根归一化",
    meanings_zh={"x": "各行向量", "gain": "增益，可省略（相当于 1）"},
    result_zh="归一化后的各行",
    inputs={"x": [[-1, 7, 5, -5]], "gain": [2, 1, 1, 3]},
    static={"eps": 0.0},
    result=[["-2/5", "7/5", 1, -3]],
    d_result=[[1, 0, 0, 0]],
    gradients={"x": [["99/250", "7/250", "1/50", "-1/50"]], "gain": ["-1/5", 0, 0, 0]},
    note="The root mean square is 5. Stretching x changes nothing, so x · ∂x = 0.",
    note_zh="均方根为 5。把 x 整体放大或缩小不会改变结果，所以 x · ∂x = 0。",
    place=("stream", 2),
    labels_zh={"mean": "均值", "avg": "均值", "xhat": "x\u0302"},
    settings={"eps": r"\epsilon"},
    notations=(
        "RMSNorm(x)",
        r"\bar{a}_i = \frac{a_i}{\mathrm{RMS}(a)} g_i",
        r"\mathrm{RMS}(a) = \sqrt{\frac{1}{n} \sum_i a_i^2}",
        "x / sqrt(mean(x^2) + eps)",
        "x * rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight",
    ),
    concepts=(
        Concept(
            "root mean square normalization",
            "均方根归一化",
            ("rms_norm",),
            ("RMSNorm", "RMS norm", "root mean square", "均方根", "RMS 归一化"),
        ),
    ),
    mistakes=(
        ("divided by the mean square instead of its root", "除以了均方，而不是均方根", within(nth(1, first), "xhat")),
        ("subtracted the mean: that is LayerNorm", "减去了均值：那是层归一化", within(_centred, "xhat")),
    ),
    gradient_mistakes=(
        (
            "only divided by the root mean square, as if it were a constant",
            "只除以了均方根，把它当成了常数",
            lambda term, at: None if at.slot else nth(1, first)(term, at),
        ),
    ),
    part_mistakes={
        "avg(x²)": (
            ("forgot to divide by C: that is the sum", "忘了除以 C：那是总和", first),
            (
                "took the root already",
                "已经开了方",
                lambda term, at: function("sqrt", term) if term.parts[1].value > 1 else None,
            ),
        ),
    },
)
