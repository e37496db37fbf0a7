"""The matrices of the 2 x 2 matrix core with a causal mask: the first token sees only itself."""

from byhand.book.entries.contract import Entry

P = "1/(1+exp(-1/sqrt(2)))"  # weight of token 0 for token 1
Q = "1/(1+exp(1/sqrt(2)))"  # weight of token 1 for itself
S = f"{P}*{Q}/sqrt(2)"  # gradient of a score over sqrt(D)

entry = Entry(
    stem="causal_self_attention",
    title_zh="因果自注意力",
    meanings_zh={
        "h": "归一化后的残差流",
        "w_qkv": "查询、键、值合并在一起的投影权重",
        "b_qkv": "它的偏置，可以没有",
        "w_proj": "输出投影权重",
        "b_proj": "它的偏置，可以没有",
        "q_gain": "查询归一化的增益，可省略",
        "k_gain": "键归一化的增益，可省略",
        "start": "每条文本在第一个位置之前已有的位置数，可省略",
        "keys": "先前位置的键，可省略",
        "values": "先前位置的值，可省略",
    },
    result_zh="注意力加到残差流上的量",
    inputs={
        "h": [[[1, 0], [0, 1]]],
        "w_qkv": [[1, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 1]],
        "b_qkv": [0, 0, 0, 0, 0, 0],
        "w_proj": [[1, 0], [0, 1]],
        "b_proj": [0, 0],
    },
    static={"n_heads": 1},
    result=[[[1, 1], [P, 1]]],
    d_result=[[[0, 0], [1, 0]]],
    gradients={
        "h": [[[f"{S}+{P}", 0], [f"{Q}-2*{S}", S]]],
        "w_qkv": [[0, 0, 0, S, P, 0], [f"-{S}", S, 0, f"-{S}", Q, 0]],
        "b_qkv": [f"-{S}", S, 0, 0, 1, 0],
        "w_proj": [[P, 0], [1, 0]],
        "b_proj": [1, 0],
    },
    note="The score of token 1 is 1/√2 for token 0 and 0 for itself; its weights are p and 1 − p.",
    note_zh="词元 1 对词元 0 的分数是 1/√2，对自己的分数是 0；权重分别为 p 与 1 − p。",
    place=("attention", 1),
    torch=(
        "F.scaled_dot_product_attention(*(h @ w_qkv + b_qkv).unflatten(-1, (3, n_heads, -1)).permute(2, 0, "
        "3, 1, 4), is_causal=True).transpose(1, 2).flatten(2) @ w_proj + b_proj"
    ),
    asked=(
        "F.scaled_dot_product_attention, sdpa, nn.MultiheadAttention, self_attn, masked self-attention, "
        "attention head, how is attention computed, 自注意力怎么算, 掩码自注意力, 注意力头"
    ),
    notations=(
        "Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V",
        r"A = \mathrm{CausalSelfAttn}(H)",
        r"[Q, K, V] = X W_{qkv} + b_{qkv}",
        r"[Q, K, V] = H W_{qkv} + b_{qkv}",
        "softmax(Q K^T / sqrt(d)) V",
        "A = softmax(Q K^T / sqrt(d)) V",
    ),
    mistakes=(
        (
            "left out the output projection",
            "漏了输出投影",
            None,
            'out = linear(mixed, w_proj, *_given(b_proj), name="out")',
            "out = mixed",
        ),
    ),
)
