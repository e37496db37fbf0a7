"""The sublayer's output is added, and the gradient takes both ways unchanged."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import over, without
from byhand.book.words.language import Words
from byhand.engine.terms import number

entry = Entry(
    stem="residual",
    title_zh="残差连接",
    meanings_zh={"x": "残差流", "a": "子层的输出"},
    result_zh="经过子层之后的残差流",
    inputs={"x": [[1, 2, 3]], "a": [["1/2", "-1/2", 0]]},
    result=[["3/2", "3/2", 3]],
    d_result=[[1, 2, 3]],
    gradients={"x": [[1, 2, 3]], "a": [[1, 2, 3]]},
    note="The stream and the sublayer each receive the whole cotangent; it is not split between them.",
    note_zh="同一份梯度原样传给残差流和子层，而不是在两者之间分摊。",
    goal=Words(
        "Add the sublayer's output to the residual stream.",
        "把子层的输出加到残差流上。",
    ),
    why=Words(
        "The sublayer learns only a correction, and later layers can still read its input.",
        "子层只需学习一个修正量，后面的层仍能读到子层的输入。",
    ),
    why_back=Words(
        "The rate of a sum is 1 for both terms, so the stream passes the gradient back unchanged, however many blocks there are.",
        "加法对两个加数的变化率都是 1，所以残差流把梯度原样传回，块再多也一样。",
    ),
    place=("stream", 2),
    torch="x + a",
    asked="x = x + attn(x), shortcut connection, identity path, vanishing gradients, 捷径连接, 恒等映射, 梯度消失",
    notations=(
        r"X = X + A",
        r"X \leftarrow X + A",
        r"X \leftarrow X + O",
        "X = X + FF",
        r"X \leftarrow X + \mathrm{MLP}(\mathrm{LN}(X))",
        "y = x + f(x)",
        "x + Sublayer(x)",
    ),
    mistakes=(
        ("forgot the stream", "忘了加上残差流", without(0), "return x + a", "return a"),
        ("forgot the sublayer", "忘了加上子层的输出", without(1), "return x + a", "return x"),
    ),
    gradient_mistakes=(
        (
            "divided the gradient between the two ways",
            "把梯度在两路之间平分了",
            over(number(2)),
            "return d_y, d_y",
            "return d_y / 2, d_y / 2",
        ),
        (
            "passed the gradient along the stream alone",
            "只沿残差流传回了梯度",
            None,
            "return d_y, d_y",
            "return d_y, 0 * d_y",
        ),
    ),
)
