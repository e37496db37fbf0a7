"""Below zero, at zero, between zero and one, and above."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, first, nth
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, product


def _relu_slope(term: Term, at: Asked) -> Term:
    return product((term.parts[0], number(at.inputs[0][at.index] > 0)))


entry = Entry(
    stem="relu_squared",
    title_zh="平方 ReLU",
    meanings_zh={"x": "任意数组"},
    result_zh="负数置零、正数取平方后的数组",
    inputs={"x": [-2, 0, "1/2", 3]},
    result=[0, 0, "1/4", 9],
    d_result=[5, 5, 5, 5],
    gradients={"x": [0, 0, 5, 30]},
    note="Squaring makes numbers between 0 and 1 smaller and numbers above 1 larger.",
    note_zh="平方使 0 与 1 之间的数变小，使大于 1 的数变大。",
    goal=Words(
        "Square positive numbers and set negative ones to 0.",
        "正数取平方，负数置 0。",
    ),
    why=Words(
        "Two linear layers in a row amount to a single one (a row times A, times B, is the row times the one matrix A B), so a non-linearity stands between them. "
        "This one sets weak features to nearly 0 and lets strong ones dominate; its slope does not jump at 0.",
        "两个线性层直接相连，仍只相当于一个线性层（一行数先乘 A 再乘 B，等于乘一个矩阵 A B），所以中间要有非线性。它让弱的特征接近 0，强的特征更突出；斜率在 0 处也不跳变。",
    ),
    why_back=Words(
        "The slope of the square is 2x for positive numbers; a number that was set to 0 passes no derivative back.",
        "正数处，平方的斜率为 2x；被置 0 的数不传回导数。",
    ),
    saved=(r"\max(x, 0)",),
    place=("activation", 3),
    torch="F.relu(x).square()",
    asked="relu2, relu^2, ReLU², F.relu(x).square(), torch.relu(x) ** 2, ReluSquared, Primer activation, ReLU 的平方",
    notations=("max(0, x)^2", "relu(x) ** 2", "F.relu(x).square()", r"\mathrm{ReLU}^2(x)"),
    concepts=(
        Concept("squared ReLU", "平方 ReLU", ("relu_squared",), ("ReLU squared", "squared rectifier", "平方整流")),
    ),
    mistakes=(
        ("squared the negative number", "把负数也平方了", lambda term, at: function("square", at.read(0, "x"))),
        ("forgot to square", "忘了取平方", first),
        ("doubled instead of squaring", "翻了倍，而不是取平方", lambda term, at: product((number(2), term.parts[0]))),
    ),
    gradient_mistakes=(
        ("forgot the factor 2", "忘了系数 2", nth(1, lambda two, at: number(1))),
        ("used the derivative of ReLU", "用了 ReLU 的导数", _relu_slope),
        (
            "let the gradient through where x is negative",
            "在 x 为负处也让梯度通过了",
            nth(2, lambda positive, at: at.read(0, "x")),
        ),
    ),
)
