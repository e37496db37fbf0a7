"""At log 1/3, 0 and log 3: the gates are 1/4, 1/2 and 3/4."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, within
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, product, ratio, total


def _growing(gate: Term, at: Asked) -> Term:
    """Return the sigmoid of -x."""
    return ratio(number(1), total((number(1), function("exp", at.read(0, "x")))), "s")


entry = Entry(
    stem="silu",
    title_zh="SiLU（swish）",
    meanings_zh={"x": "任意数组"},
    result_zh="经过门控的数组",
    inputs={"x": ["-log(3)", 0, "log(3)"]},
    result=["-log(3)/4", 0, "3*log(3)/4"],
    d_result=[1, 1, 1],
    gradients={"x": ["1/4-3*log(3)/16", "1/2", "3/4+3*log(3)/16"]},
    note="The gates of ln 3 and −ln 3 add up to 1, and so do the rates.",
    note_zh="在 ln 3 与 −ln 3 两处，门的值之和为 1，变化率之和也一样。",
    goal=Words(
        "Keep large positive numbers and suppress negative ones.",
        "保留较大的正数，抑制负数。",
    ),
    why=Words(
        "The sigmoid of x is a gate between 0 and 1: x controls how much of itself passes. "
        "Without a non-linearity the MLP's two linear layers would amount to a single one.",
        "x 的 sigmoid 是介于 0 与 1 之间的门：x 自己决定自己通过多少。没有非线性，前馈网络的两个线性层就只相当于一个。",
    ),
    why_back=Words(
        "The product rule on x and its gate: the gate, plus x times the gate's slope s (1 − s).",
        "对 x 与它的门用乘积法则：门的值，加上 x 乘以门的斜率 s (1 − s)。",
    ),
    saved=("", "s"),
    place=("activation", 3),
    torch="F.silu(x)",
    asked="nn.SiLU, F.silu, torch.nn.SiLU, swish, SiLU, hidden_act silu, x sigmoid(x), sigmoid linear unit",
    notations=(
        r"\mathrm{SiLU}(x) = x \cdot \sigma(x)",
        r"\mathrm{Swish}_1(x) = x\,\mathrm{sigmoid}(x)",
        "x / (1 + exp(-x))",
        "x * torch.sigmoid(x)",
    ),
    concepts=(Concept("SiLU", "SiLU", ("silu",), ("swish", "sigmoid linear unit", "sigmoid", "S 型函数")),),
    mistakes=(
        ("used ReLU", "用成了 ReLU", lambda term, at: function("positive", at.read(0, "x"))),
        (
            "kept the sigmoid alone, without the factor x",
            "只写了 sigmoid，漏了因子 x",
            lambda term, at: term.parts[1],
        ),
        ("wrote exp(x) instead of exp(-x)", "把 exp(-x) 写成了 exp(x)", within(_growing, "s")),
    ),
    gradient_mistakes=(
        ("held the gate constant", "把门当成了常数", lambda term, at: product(term.parts[:2])),
        (
            "used the derivative of the sigmoid alone",
            "只用了 sigmoid 的导数",
            lambda term, at: product((*term.parts[:2], term.parts[2].parts[1].parts[1])),
        ),
    ),
)
