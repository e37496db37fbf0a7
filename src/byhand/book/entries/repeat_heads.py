"""One head of keys for two heads of queries."""

from byhand.book.entries.contract import Entry

entry = Entry(
    stem="repeat_heads",
    title_zh="分组查询：一组查询头共用一个键值头",
    meanings_zh={"x": "K 个头的键或值"},
    result_zh="每个查询头各一份",
    inputs={"x": [[[[1, 2]]]]},
    static={"times": 2},
    result=[[[[1, 2]], [[1, 2]]]],
    d_result=[[[[1, 2]], [[3, 5]]]],
    gradients={"x": [[[[4, 7]]]]},
    note="Both query heads read the one head of keys.",
    note_zh="两个查询头读同一个键头。",
    place=("attention", 10),
    asked="repeat_kv, repeat_interleave, gqa",
)
