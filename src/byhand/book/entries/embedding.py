"""A token that occurs twice: its row is read twice, and collects two gradients."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.catalogue import slips
from byhand.book.practice.edits import other_row
from byhand.book.words.language import Words


def why_zero(inputs, slot, index, **static):
    """Explain the zero gradient of a token that does not occur."""
    if slot or index[0] in inputs[1]:
        return None
    return Words(
        f"zero: token {index[0]} does not occur in the input, so its row is not read.",
        f"为零：输入中没有词元 {index[0]}，它的那一行没有被读取。",
    )


entry = Entry(
    stem="embedding",
    title_zh="词元嵌入",
    meanings_zh={"table": "词表中每个词元一行的表", "tokens": "词元编号，取值 [0, V)"},
    result_zh="每个词元一个向量",
    inputs={"table": [[0, 0], [1, 0], [0, 1], [1, 1]], "tokens": [[2, 1, 2]]},
    result=[[[0, 1], [1, 0], [0, 1]]],
    d_result=[[[1, 2], [3, 4], [5, 6]]],
    gradients={"table": [[0, 0], [3, 4], [6, 8], [0, 0]]},
    note="Token 2 occurs at two positions, so its row collects both cotangents; unused rows get zero.",
    note_zh="词元 2 出现了两次，所以它那一行累加两份梯度；没有用到的行梯度为零。",
    goal=Words(
        "Turn each token id into a vector that the model can compute with.",
        "把每个词元编号变成模型可以计算的向量。",
    ),
    why=Words(
        "An id is only a name: id 2 is not twice id 1. "
        "Each token has its own row in the table, and training adjusts that row.",
        "编号只是名字，编号 2 并不是编号 1 的两倍。每个词元在表中有自己的一行，由训练调整。",
    ),
    why_back=Words(
        "Only the rows that were read affect the loss. "
        "A row that was read twice affects it in two places, so both gradients are added.",
        "只有被读取的行才会影响损失；同一行被读取几次，几份梯度就相加。",
    ),
    on_paper=(
        r"E_t = W_{te}[\mathrm{token}_t]",
        r"\partial W_{te}[v] = \sum_{t \text{ with } \mathrm{token}_t=v} \partial E_t",
    ),
    place=("tokens", 1),
    torch="F.embedding(tokens, table)",
    asked=(
        "nn.Embedding, F.embedding, tok_emb, embed_tokens, token_embedding_table, input embeddings, word vector, "
        "look up a row, one-hot times a matrix, how do tokens become vectors, 词向量, 查表, 词元怎么变成向量, "
        "输入嵌入"
    ),
    notations=(
        r"E_{i} = W_{te}[t_{i}]",
        r"X = W_{te}[tokens] + W_{pe}[pos]",
        "W_E[x]",
        "X[i]",
        r"W_{te} \in \mathbb{R}^{V \times C}",
    ),
    why_zero=why_zero,
    mistakes=slips("embedding.forward", next_row=other_row(0, 1), rows_from_1=other_row(0, -1)),
)
