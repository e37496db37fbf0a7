"""At -1, 0 and 1: a standard normal number lies below 1 with probability 0.841."""

import math

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, first, nth, rest, within
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, product, total

E = "erf(sqrt(1/2))"  # erf u at x = 1
DENSITY = "exp(-1/2)/sqrt(2*pi)"  # of the standard normal distribution, at 1 and at -1


def _tanh_form(term: Term, at: Asked) -> Term:
    x = at.read(0, "x")
    cube = product((number(0.044715), x, x, x))
    tanh = function("tanh", product((number(math.sqrt(2 / math.pi)), total((x, cube)))))
    return product((number(0.5), x, total((number(1), tanh))))


def _without_x(term: Term, at: Asked) -> Term:
    d, slope = term.parts
    gate, tilt = slope.parts
    return product((d, total((gate, tilt.parts[1]))))


entry = Entry(
    stem="gelu_exact",
    title_zh="GELU（精确形式）",
    meanings_zh={"x": "任意数组"},
    result_zh="经过门控的数组",
    inputs={"x": [-1, 0, 1]},
    result=[f"-(1-{E})/2", 0, f"(1+{E})/2"],
    d_result=[1, 1, 1],
    gradients={"x": [f"(1-{E})/2-{DENSITY}", "1/2", f"(1+{E})/2+{DENSITY}"]},
    note="GELU(1) is the probability that a standard normal number is below 1; plus GELU(-1): that it is within ±1.",
    note_zh="GELU(1) 等于标准正态随机数小于 1 的概率；加上 GELU(-1)，就是随机数介于 ±1 之间的概率。",
    goal=Words(
        "Keep large positive numbers and suppress negative ones.",
        "保留较大的正数，抑制负数。",
    ),
    why=Words(
        "The gate is the probability that a standard normal number is smaller than x: the further x stands out, the "
        "more of it passes. Without a non-linearity the MLP's two linear layers would amount to a single one.",
        "门是标准正态随机数小于 x 的概率：x 越大，通过的比例越大。没有非线性，前馈网络的两个线性层就只相当于一个。",
    ),
    why_back=Words(
        "The product rule on x and its gate; the gate's slope is the normal density.",
        "对 x 与它的门用乘积法则；门的斜率就是正态分布的密度。",
    ),
    saved=("", r"\mathrm{erf}(u)"),
    place=("activation", 2),
    torch="F.gelu(x)",
    asked=(
        "nn.GELU, F.gelu, exact GELU, GELU with erf, F.gelu approximate none, hidden_act gelu, GELUActivation, "
        "ggml_gelu_erf, gelu_erf, x Φ(x), Gaussian error linear unit, GELU of BERT, 精确 GELU, GELU 的两种形式"
    ),
    notations=(
        r"\mathrm{GELU}(x) = x\,\Phi(x)",
        r"x P(X \le x)",
        "0.5 x (1 + erf(x / sqrt(2)))",
        "x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))",
    ),
    concepts=(
        Concept(
            "error function",
            "误差函数",
            ("gelu_exact",),
            ("erf", "normal distribution", "Gaussian", "cumulative distribution function", "正态分布", "高斯分布"),
        ),
    ),
    mistakes=(
        ("used ReLU", "用成了 ReLU", lambda term, at: function("positive", at.read(0, "x"))),
        ("forgot to divide by the square root of 2", "忘了除以根号 2", within(first, "u")),
        ("forgot the factor one half", "忘了系数二分之一", rest),
        ("used the tanh form", "用成了 tanh 形式", _tanh_form),
    ),
    gradient_mistakes=(
        ("held the gate constant", "把门当成了常数", nth(1, first)),
        ("forgot the factor x before the density", "漏了密度前的因子 x", _without_x),
    ),
)
