"""Head width 4, so that the square root is 2."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, first, nth, swapped
from byhand.book.words.language import Words
from byhand.engine.terms import Term, function, number, product
from byhand.equations.attention_scores import attention_scores


def _mixed_up(term: Term, at: Asked) -> Term | None:
    q, k = at.inputs
    return attention_scores.terms(swapped(at.index), at.inputs, None) if q.shape == k.shape else None


def dot_products(inputs, result):
    """Return the scores before division by √D."""
    import numpy as np  # `where` reads this file without it

    q, k = inputs
    return ((r"Q K^{\top}", q @ np.swapaxes(k, -1, -2)),)


entry = Entry(
    stem="attention_scores",
    title_zh="缩放点积分数",
    meanings_zh={"q": "查询", "k": "键"},
    result_zh="加掩码之前的分数",
    inputs={
        "q": [[[[1, 0, 1, 0], [0, 2, 0, 2]]]],
        "k": [[[[1, 1, 1, 1], [4, 0, 2, 1]]]],
    },
    result=[[[[1, 3], [2, 1]]]],
    d_result=[[[[1, 0], [0, 1]]]],
    gradients={
        "q": [[[["1/2", "1/2", "1/2", "1/2"], [2, 0, 1, "1/2"]]]],
        "k": [[[["1/2", 0, "1/2", 0], [0, 1, 0, 1]]]],
    },
    note="The dot product of query 0 and key 1 is 4 + 2 = 6; divided by 2 it is 3.",
    note_zh="查询 0 与键 1 的点积是 4 + 2 = 6，除以 2 得 3。",
    goal=Words(
        "Measure how well each query matches each key.",
        "衡量每个查询与每个键的匹配程度。",
    ),
    why=Words(
        "A dot product is large when two vectors point in similar directions. Take D products of random "
        "numbers, positive as often as negative: their sum is typically √D times as large as one of them (take this "
        "on trust). Dividing by √D undoes that, so softmax does not give nearly all weight to one key.",
        "两个向量的方向越接近，点积越大。点积是 D 个乘积之和；若这些乘积随机，正负各半，和的大小约为单个乘积的 √D 倍（这一点请先接受）。"
        "除以 √D 就抵消了这个倍数，softmax 才不会把几乎全部权重给一个键。",
    ),
    why_back=Words(
        "Q[t] contributes to S[t,s] with the factor K[s] / √D, and K[s] with the factor Q[t] / √D. "
        "So ∂Q and ∂K are matrix products divided by √D.",
        "Q[t] 以系数 K[s] / √D 影响 S[t,s]，K[s] 以系数 Q[t] / √D 影响 S[t,s]，所以 ∂Q 与 ∂K 都由矩阵乘法得到，再除以 √D。",
    ),
    on_the_way=dot_products,
    place=("attention", 5),
    torch="q @ k.mT / math.sqrt(q.shape[-1])",
    asked=(
        "d_k, sqrt(dk), 1/sqrt(dk), divide by sqrt d, divide by the square root of the head size, "
        "why scale the dot product, attention logits, variance of the dot product, 除以根号d, 除以根号dk, 除以√d, "
        "缩放点积为什么要缩放, 为什么要缩放, 点积的方差, 相似度"
    ),
    notations=(
        r"S_{i,j} = \frac{Q_i \cdot K_j}{\sqrt{C}}",
        r"S_{i,j} = \frac{Q_i \cdot K_j}{\sqrt{C}} + mask(i, j)",
        r"S_{i,j} = \frac{Q_i \cdot K_j}{\sqrt{C}} + \begin{cases} 0 & j \le i \\ -\infty & j > i \end{cases}",
        "Scores = Q K^T",
        "q @ k.T",
        "Q K^T / sqrt(d_k)",
        "1 / sqrt(d_k)",
        "Scaled = Scores / sqrt(d_k)",
    ),
    mistakes=(
        ("forgot √D", "忘了除以 √D", first, "q * (1.0 / math.sqrt(divisor or q.shape[-1]))", "q"),
        (
            "divided by D instead of √D",
            "除以了 D，而不是 √D",
            nth(1, first),
            "math.sqrt(divisor or q.shape[-1])",
            "q.shape[-1]",
        ),
        (
            "multiplied by √D",
            "乘以了 √D",
            lambda term, at: product(term.parts),
            "q * (1.0 / math.sqrt(divisor or q.shape[-1]))",
            "q * math.sqrt(q.shape[-1])",
        ),
        (
            "mixed up query and key",
            "把查询与键弄反了",
            _mixed_up,
            "scaled @ namespace(q).matrix_transpose(k)",
            "k @ namespace(q).matrix_transpose(scaled)",
        ),
        (
            "divided by the root of C, the width of all heads",
            "除以了 √C：那是所有头的总宽度",
            None,
            "math.sqrt(divisor or q.shape[-1])",
            "math.sqrt(q.shape[-1] * q.shape[-3])",
        ),
    ),
    gradient_mistakes=(
        (
            "forgot √D",
            "忘了除以 √D",
            lambda term, at: product((term, function("sqrt", number(at.inputs[0].shape[-1], "D")))),
            "scale = 1.0 / math.sqrt(divisor or q.shape[-1])",
            "scale = 1.0",
        ),
        ("forgot √D for the keys alone", "只在键的梯度里忘了除以 √D", None, "(q * scale)", "q"),
        (
            "mixed up the gradients of query and key",
            "把查询与键的梯度弄反了",
            None,
            "return (d_s @ k) * scale, namespace(d_s).matrix_transpose(d_s) @ (q * scale)",
            "return namespace(d_s).matrix_transpose(d_s) @ (q * scale), (d_s @ k) * scale",
        ),
    ),
)
