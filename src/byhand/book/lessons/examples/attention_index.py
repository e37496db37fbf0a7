"""One attention score, from its index to the flat offsets of everything that it reads and writes."""

from dataclasses import replace

import numpy as np

from byhand.book.finding.equations import of_equations
from byhand.book.lessons.examples.memory_layout import offset_number
from byhand.book.lessons.forward_steps import forward_step, given
from byhand.book.lessons.lesson import Content, Maker, Step, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.attention_scores import attention_scores
from byhand.tracing.trace import Trace

SHAPE = (2, 2, 3, 2)  # B, H, T, D
PLACE = (1, 0, 2, 1)  # b, h, t, s


def queries_and_keys(array: Maker) -> tuple[Tensor, Tensor]:
    """Return small whole numbers for both."""
    flat = np.arange(int(np.prod(SHAPE)))
    q = Tensor(array(((flat % 5) - 2).reshape(SHAPE).tolist()), name="q")
    k = Tensor(array(((flat % 7) - 3).reshape(SHAPE).tolist()), name="k")
    return q, k


@listed(70, "One attention score traced to flat offsets", "追踪一个注意力分数的内存偏移量")
def lesson(array: Maker) -> Content:
    """Offsets of the queries, the keys and the score; then the score itself, read from flat memory."""
    q, k = queries_and_keys(array)
    trace = Trace.of(lambda: attention_scores(q, k, name="scores"))
    application, _ = trace.made["scores"]
    whole = forward_step(application, trace)
    b, h, t, s = PLACE
    where = str(of_equations()["attention_scores"].forward)

    def lies(x: Tensor, title: Words, position: str, at: int) -> Step:
        formula = f"((b H + h) {position.upper()} + {position}) D + d"
        return Step(
            title,
            Words(
                f"offset of {x.name}[b,h,{position},d] = {formula}",
                f"{x.name}[b,h,{position},d] 的偏移量 = {formula}",
            ),
            where,
            tuple(offset_number(x.name, (b, h, at, d), SHAPE) for d in range(SHAPE[-1])),
            ((f"{x.name}, flat", str(x.data.astype(float).astype(int).reshape(-1).tolist())),),
            goal=Words(
                "Find the D numbers of one row in flat memory.",
                "在一维内存中找到一行的 D 个数。",
            ),
            why=Words(
                "The last axis is contiguous, so the D offsets follow one another.",
                "最后一个轴是连续的，所以这 D 个偏移量一个接一个。",
            ),
        )

    steps = (
        lies(q, Words("Where the query lies", "查询存放的位置"), "t", t),
        lies(k, Words("Where the key lies", "键存放的位置"), "s", s),
        replace(whole, numbers=tuple(n for n in whole.numbers if n.label == f"S[{b},{h},{t},{s}]"), results=()),
        Step(
            Words("Where the score is written", "分数写入的位置"),
            Words(
                "offset of S[b,h,t,s] = ((b H + h) T + t) S + s",
                "S[b,h,t,s] 的偏移量 = ((b H + h) T + t) S + s",
            ),
            where,
            (offset_number("S", PLACE, (*SHAPE[:3], SHAPE[2])),),
            goal=Words(
                "Find the place of the score in its own array.",
                "求这个分数在结果数组中的位置。",
            ),
            why=Words(
                "The scores have one row for each query, with one number for each key.",
                "分数数组中每个查询占一行，行中每个键一个数。",
            ),
        ),
    )
    intro = Words(
        f"B, H, T, D = {', '.join(map(str, SHAPE))}. The score of query t = {t} for key s = {s} in sequence {b}, "
        f"head {h}: two contiguous runs of D numbers are multiplied, and one number is written.",
        f"B、H、T、D = {'、'.join(map(str, SHAPE))}。"
        f"第 {b} 条序列、第 {h} 个头里，查询 t = {t} 对键 s = {s} 的分数：两段各 D 个连续的数相乘求和，再写入一个数。",
    )
    return intro, steps, given(trace)
