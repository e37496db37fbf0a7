"""Two sequences share one table of positions; the third row is not used."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import other_row, without
from byhand.book.words.language import Words


def why_zero(inputs, slot, index, **static):
    """Explain the zero gradient of a position that the input does not reach."""
    n = inputs[0].shape[-2]
    starts = inputs[2].reshape(-1) if len(inputs) > 2 else [0]
    if slot == 0 or any(0 <= index[0] - int(start) < n for start in starts):
        return None
    return Words(
        f"zero: the input has {n} positions, so the row of position {index[0]} is not read.",
        f"为零：输入只有 {n} 个位置，位置 {index[0]} 的那一行没有被读取。",
    )


entry = Entry(
    stem="add_positional",
    title_zh="位置嵌入",
    meanings_zh={"e": "词元向量", "table": "每个位置一行的表", "start": "第一个位置之前已有的位置数；不给则为 0"},
    result_zh="带有位置信息的词元向量",
    inputs={
        "e": [[[0, 1], [1, 0]], [[1, 1], [0, 0]]],
        "table": [["1/10", 0], [0, "1/10"], ["1/10", "1/10"]],
        "start": 0,
    },
    result=[[["1/10", 1], [1, "1/10"]], [["11/10", 1], [0, "1/10"]]],
    d_result=[[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    gradients={
        "e": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        "table": [[6, 8], [10, 12], [0, 0]],
    },
    note="Both sequences of the batch use the same rows, so the table's gradient is summed over the batch.",
    note_zh="批次中的两条序列共用同样的行，所以位置表的梯度要对批次求和。",
    goal=Words(
        "Tell the model where each token stands.",
        "让模型知道每个词元所在的位置。",
    ),
    why=Words(
        "Without positions, the same token has the same vector everywhere. "
        "Adding, rather than appending, keeps the number of columns, C.",
        "不加位置，同一个词元在任何位置的向量都相同。用加法而不是拼接，列数 C 就不变。",
    ),
    why_back=Words(
        "A sum passes the gradient unchanged to both terms. "
        "All sequences of a batch share the row of a position, so its gradient is a sum over the sequences.",
        "加法把梯度原样传给两个加数。批次中各条序列的同一位置共用一行位置向量，所以这一行的梯度要对各条序列求和。",
    ),
    on_paper=(r"X_t = E_t + W_{pe}[t]", r"\partial E = \partial X, \quad \partial W_{pe}[t] = \partial X_t"),
    place=("tokens", 2),
    torch="e + F.embedding(torch.arange(start, start + e.shape[1]), table)",
    asked=(
        "pos_emb, position_ids, position_embedding_table, absolute positions, order of tokens, why positions, "
        "位置信息, 绝对位置编码, 可学习的位置编码, 为什么需要位置编码, 词元的顺序"
    ),
    notations=(
        r"X_{i} = E_{i} + W_{pe}[i]",
        r"X = W_{te}[tokens] + W_{pe}[pos]",
        "x = tok_emb + pos_emb",
        r"W_{pe} \in \mathbb{R}^{T_{max} \times C}",
    ),
    why_zero=why_zero,
    mistakes=(
        ("forgot the position", "忘了加位置嵌入", without(1), "e + table[:t, :]", "e + 0 * table[:t, :]"),
        (
            "took the position's row one further",
            "位置嵌入取成了下一行",
            other_row(1, 1),
            "e + table[:t, :]",
            "e + namespace(e).roll(table[:t, :], -1, axis=0)",
        ),
        (
            "counted positions on from text to text instead of from 0 in each",
            "位置跨文本接着数，没有在每段文本中从 0 数起",
            None,
            "e + table[:t, :]",
            "e + table[namespace(e).minimum(namespace(e).arange(e.shape[0] * t), 0 * t + t - 1), :].reshape(e.shape)",
        ),
    ),
    gradient_mistakes=(
        (
            "kept only the last text's gradient",
            "只保留了最后一段文本的梯度",
            None,
            "sum_to_shape(d_x, d_x.shape[-2:])",
            "d_x[-1]",
        ),
        (
            "averaged over the texts instead of summing",
            "对各段文本求了平均，而不是求和",
            None,
            "sum_to_shape(d_x, d_x.shape[-2:])",
            "sum_to_shape(d_x, d_x.shape[-2:]) / d_x.shape[0]",
        ),
        (
            "gave the positions no gradient",
            "没有给位置表梯度",
            None,
            "sum_to_shape(d_x, d_x.shape[-2:])",
            "0 * d_x[-1]",
        ),
    ),
)
