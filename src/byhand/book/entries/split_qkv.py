"""Two heads of width 1: columns 0-1 are queries, 2-3 keys, 4-5 values."""

from byhand.book.entries.contract import Entry
from byhand.book.entries.merge_heads import entry as merge_heads
from byhand.book.words.language import Words

entry = Entry(
    stem="split_qkv",
    title_zh="拆分出查询、键、值与各个头",
    meanings_zh={"x": "合并投影 H W_qkv + b_qkv 的结果"},
    result_zh="每个头的查询、键、值",
    inputs={"x": [[[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]]},
    static={"n_heads": 2},
    result=(
        [[[[1], [7]], [[2], [8]]]],
        [[[[3], [9]], [[4], [10]]]],
        [[[[5], [11]], [[6], [12]]]],
    ),
    d_result=(
        [[[[1], [2]], [[3], [4]]]],
        [[[[5], [6]], [[7], [8]]]],
        [[[[9], [10]], [[11], [12]]]],
    ),
    gradients={"x": [[[1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]]]},
    note="Head 1 of the keys reads column 3 = (H + h) D + d with H = 2, h = 1, D = 1, d = 0.",
    note_zh="第 1 个头的键读取第 3 列：(H + h)D + d，其中 H = 2、h = 1、D = 1、d = 0。",
    goal=Words(
        "Cut the projection into queries, keys and values, and each of these into heads.",
        "把投影结果切成查询、键与值，再各自切成多个头。",
    ),
    why=Words(
        "No number changes, only its index: the columns of each head stand together. "
        "With one head all stays as it is.",
        "数值不变，只是下标变了：同一个头的各列排在一起；只有一个头时，排列也不变。",
    ),
    why_back=merge_heads.why_back,
    on_paper=(
        r"Q^{(h)}_{t,d} = X_{t,hD+d}, \quad K^{(h)}_{t,d} = X_{t,C+hD+d}, \quad V^{(h)}_{t,d} = X_{t,2C+hD+d}",
        r"\partial X = [\partial Q, \partial K, \partial V]",
    ),
    one_head=(r"[Q, K, V] = X", r"\partial X = [\partial Q, \partial K, \partial V]"),
    place=("attention", 2),
    torch="x.unflatten(-1, (3, n_heads, -1)).permute(2, 0, 3, 1, 4)",
    asked=(
        "chunk, torch.split, qkv.split, q_proj k_proj v_proj, Wq, Wk, Wv, W_q W_k W_v, query vector, "
        "what are queries keys and values, 查询向量, 键向量, 值向量, 什么是查询键值, split heads, "
        "reshape to heads, 拆成多个头"
    ),
    notations=(r"W_{qkv} = [W_q W_k W_v]", "q, k, v = split(qkv)", r"b_{qkv} = [b_q b_k b_v]"),
    mistakes=(
        (
            "swapped keys and values",
            "把键与值对调了",
            None,
            "(heads[:, :n_heads], heads[:, n_heads : n_heads + k], heads[:, n_heads + k :])",
            "(heads[:, :n_heads], heads[:, n_heads + k :], heads[:, n_heads : n_heads + k])",
        ),
        (
            "swapped queries and keys",
            "把查询与键对调了",
            None,
            "(heads[:, :n_heads], heads[:, n_heads : n_heads + k], heads[:, n_heads + k :])",
            "(heads[:, n_heads : n_heads + k], heads[:, :n_heads], heads[:, n_heads + k :])",
        ),
        (
            "read q, k and v of each head side by side",
            "按每个头依次存放 q、k、v 来读",
            None,
            "heads = x.reshape((b, t, n_heads + 2 * k, width // (n_heads + 2 * k)))",
            "heads = namespace(x).permute_dims(x.reshape((b, t, n_heads, 3, -1)), (0, 1, 3, 2, 4)).reshape((b, t, 3 * n_heads, -1))",
        ),
        (
            "interleaved the heads: column d H + h instead of h D + d",
            "各头交错：取成了第 d H + h 列，而不是第 h D + d 列",
            None,
            "heads = x.reshape((b, t, n_heads + 2 * k, width // (n_heads + 2 * k)))",
            "heads = namespace(x).permute_dims(x.reshape((b, t, 3, -1, n_heads)), (0, 1, 2, 4, 3)).reshape((b, t, 3 * n_heads, -1))",
        ),
        (
            "reshaped to (B, heads, T, D) without moving axes",
            "没有交换轴就重塑成了 (B, 头, T, D)",
            None,
            "namespace(x).permute_dims(heads, (0, 2, 1, 3))",
            "heads.reshape((b, n_heads + 2 * k, t, -1))",
        ),
    ),
    gradient_mistakes=(
        (
            "joined the gradients in the order q, v, k",
            "按 q、v、k 的顺序拼接了梯度",
            None,
            "xp.concat(list(d_qkv), axis=1)",
            "xp.concat([d_qkv[0], d_qkv[2], d_qkv[1]], axis=1)",
        ),
        (
            "gave the values no gradient",
            "没有给值梯度",
            None,
            "xp.concat(list(d_qkv), axis=1)",
            "xp.concat([d_qkv[0], d_qkv[1], 0 * d_qkv[2]], axis=1)",
        ),
        (
            "gave the keys no gradient",
            "没有给键梯度",
            None,
            "xp.concat(list(d_qkv), axis=1)",
            "xp.concat([d_qkv[0], 0 * d_qkv[1], d_qkv[2]], axis=1)",
        ),
    ),
)
