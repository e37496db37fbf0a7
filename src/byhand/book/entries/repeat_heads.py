"""Two heads of keys for four heads of queries: query heads 0 and 1 read key head 0, heads 2 and 3 read head 1."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, first
from byhand.book.words.glossary import Concept
from byhand.book.words.language import Note, Words
from byhand.engine.terms import Term, element, number, ratio, total


def remark(term, index):
    """Return the note that names the head which this query head reads."""
    own, shared = index[1], term.parts[0].source[1][1]
    return Note(
        f"head {own} of the queries reads head {shared} of the keys or values.",
        f"第 {own} 个查询头读第 {shared} 个键值头。",
        "group",
        {"head": own, "kv_head": shared},
    )


def _in_turn(term: Term, at: Asked) -> Term:
    b, h, s, d = at.index
    return total([element(at.inputs, 0, (b, h % at.inputs[0].shape[1], s, d), "x")])


entry = Entry(
    stem="repeat_heads",
    title_zh="分组查询：几个查询头共用一个键值头",
    meanings_zh={"x": "K 个头的键或值"},
    result_zh="H 个头的键或值，每个查询头对应一个",
    inputs={"x": [[[[1, 2]], [[3, 4]]]]},
    static={"times": 2},
    result=[[[[1, 2]], [[1, 2]], [[3, 4]], [[3, 4]]]],
    d_result=[[[[1, 0]], [[2, 5]], [[0, 1]], [[4, 3]]]],
    gradients={"x": [[[[3, 5]], [[4, 4]]]]},
    note="Neighbouring query heads share one head; its gradient is the sum of theirs: 1 + 2 = 3, 0 + 5 = 5.",
    note_zh="相邻的查询头共用一个头，它的梯度是各查询头的梯度之和：1 + 2 = 3，0 + 5 = 5。",
    goal=Words(
        "Hand each head of keys and values to the G query heads that share it.",
        "把每个键值头交给共用它的 G 个查询头。",
    ),
    why=Words(
        "A KV cache keeps K heads instead of H, and W_qkv has fewer columns. "
        "With long texts or many at once generation reads the cache more than anything else, so a smaller one makes each token cheaper.",
        "键值缓存只存 K 个头而不是 H 个，W_qkv 的列也更少。生成时读得最多的就是缓存，缓存越小，生成一个词元就越快。",
    ),
    why_back=Words(
        "A change in a shared key affects all G heads that read it, so their derivatives add up.",
        "共用的键一变，读它的 G 个查询头都受影响，所以它们的导数相加。",
    ),
    on_paper=(
        r"Y^{(h)} = X^{(\lfloor h / G \rfloor)}",
        r"\partial X^{(k)} = \sum_{h:\, \lfloor h / G \rfloor = k} \partial Y^{(h)}",
    ),
    settings={"times": "G"},
    place=("attention", 4),
    torch="x.repeat_interleave(times, dim=1)",
    asked=(
        "GQA, MQA, repeat_kv, repeat_interleave, enable_gqa, num_key_value_groups, n_rep, grouped query attention, "
        "multi query attention, share keys and values, fewer key-value heads, why grouped queries, "
        "分组查询, 多查询, 共用键值头, 为什么用分组查询注意力, 减少键值头"
    ),
    notations=("torch.repeat_interleave(k, G, dim=1)", "k.repeat_interleave(n_rep, dim=1)", "g = h // (H / K)"),
    concepts=(
        Concept(
            "grouped-query attention",
            "分组查询注意力",
            ("repeat_heads",),
            ("GQA", "grouped queries", "key-value heads", "键值头"),
            is_first=True,
        ),
        Concept("multi-query attention", "多查询注意力", ("repeat_heads",), ("MQA",)),
    ),
    remark=remark,
    mistakes=(
        (
            "took head h % K instead of h // G",
            "取了第 h % K 个头，而不是第 h // G 个",
            _in_turn,
            "xp.broadcast_to(x[:, :, None, :, :], (b, k, times, s, d))",
            "xp.broadcast_to(x[:, None, :, :, :], (b, times, k, s, d))",
        ),
    ),
    gradient_mistakes=(
        (
            "took the derivative of one query head alone",
            "只取了一个查询头的导数",
            first,
            "namespace(d_y).sum(d_y.reshape((b, h // times, times, s, d)), axis=2)",
            "d_y.reshape((b, h // times, times, s, d))[:, :, 0]",
        ),
        (
            "averaged over the group instead of summing",
            "对组内求了平均，而不是求和",
            lambda term, at: ratio(term, number(at.static["times"], "G")),
            "axis=2)",
            "axis=2) / times",
        ),
    ),
)
