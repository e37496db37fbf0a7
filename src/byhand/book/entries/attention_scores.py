"""Head width 4, so that the square root is 2."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.catalogue import slips
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
        "A dot product is large when two vectors point in similar directions. It adds D products, of which many cancel: "
        "two numbers, each 1 or −1, add up to 2, 0, 0 or −2. The mean of the squares of these sums is 2, so a typical "
        "size is √2; that of D numbers is √D. Dividing by √D undoes that, so softmax does not give nearly all weight to one key.",
        "两个向量的方向越接近，点积越大。点积是 D 个乘积之和，正负会抵消一部分：两个数各取 1 或 −1，和是 2、0、0 或 −2，平方的平均是 2，"
        "所以一般大小是 √2；D 个数则是 √D。除以 √D 就抵消了这个倍数，softmax 才不会把几乎全部权重给一个键。",
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
    mistakes=slips(
        "attention_scores.forward",
        no_root=first,
        divided_by_width=nth(1, first),
        multiplied_by_root=lambda term, at: product(term.parts),
        query_key_mixed_up=_mixed_up,
    ),
    gradient_mistakes=slips(
        "attention_scores.vjp",
        gradient_no_root=lambda term, at: product((term, function("sqrt", number(at.inputs[0].shape[-1], "D")))),
    ),
)
