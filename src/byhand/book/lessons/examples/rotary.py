"""One token at three positions: rotated, its scores depend on the distance alone, with both pairings of columns."""

from dataclasses import replace

import numpy as np

from byhand.book.finding.equations import of_equations
from byhand.book.lessons.examples.single import both_ways, single
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.lessons.lesson import Content, Maker, Step, difference, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.attention_scores import attention_scores
from byhand.equations.rotary import rotary
from byhand.tracing.trace import Trace

X = [[[[1, 1, 0, 0]] * 3]]  # the same query and key at positions 0, 1 and 2
D_Y = [[[[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]]
SETTINGS = {"base": 4.0, "width": 4}  # pair 0 rotates by 1 radian per position, pair 1 by 1/2


@listed(220, "Rotary positions: one token at three positions", "旋转位置编码：同一词元在三个位置")
def lesson(array: Maker) -> Content:
    """Rotate forward and back in halves, compute scores; then rotate in neighbours, and compute them again."""
    intro = Words(
        "The same token stands at positions 0, 1 and 2, and its vector x is both query and key. With R = 4 and "
        "base b = 4, pair 0 turns by 1 radian per position, pair 1 by 1/2 (set your calculator to radians). "
        'First the pairing "halves": columns 0 and 2 are a pair, and so are columns 1 and 3. Scores S at the same '
        'distance come out equal. Then "neighbours": columns 0 and 1, and columns 2 and 3. Again only the distance '
        "counts, but the scores S_2 are different numbers: weights made for one pairing do not work with the other.",
        "同一个词元位于位置 0、1、2，它的向量 x 既是查询又是键。R = 4、底数 b = 4 时，每往后一个位置，第 0 对转 1 弧度，第 1 对转 1/2 弧度（计算器请用弧度制）。"
        "先按“halves”配对：第 0、2 列一对，第 1、3 列一对，距离相同的分数 S 全都相等。再按“neighbours”配对：第 0、1 列一对，第 2、3 列一对。"
        "分数仍然只取决于距离，但 S_2 的数值与 S 不同：按一种配对训练的权重，不能用于另一种。",
    )
    turned, steps = both_ways(rotary, "y", "x", X, D_Y, array, **SETTINGS)
    halves, neighbours = (_scored(array, *names) for names in (("halves", "y", "S"), ("neighbours", "y_2", "S_2")))
    scores = [trace.result.data for trace in (halves, neighbours)]
    return single(
        intro,
        (turned, [*steps, forward_steps(halves)[1], _equal(scores[0], "S")]),
        ((), [_paired(forward_steps(neighbours)[0]), forward_steps(neighbours)[1], _equal(scores[1], "S_2")]),
        ((), [_different(*scores)]),
    )


def _scored(array: Maker, pairing: str, turned: str, scores: str) -> Trace:
    """Return the scores of every position for every other."""

    def compute() -> Tensor:
        y = rotary(Tensor(array(X), name="x"), pairing=pairing, name=turned, **SETTINGS)
        return attention_scores(y, y, name=scores)

    return Trace.of(compute)


def _paired(step: Step) -> Step:
    title = Words(f"{step.title.en}: neighbours", f"{step.title.zh}：相邻的列配对")
    return replace(step, title=title)


def _equal(scores: np.ndarray, name: str) -> Step:
    numbers = tuple(
        difference(f"Δ {name}[{t},{s}]", scores[0, 0, t, s], scores[0, 0, t - 1, s - 1])
        for t, s in ((1, 1), (2, 1), (1, 2))
    )
    return Step(
        Words(f"Equal distances, equal scores: {name}", f"距离相同，分数相同：{name}"),
        Words(
            f"Δ {name}[t,s] = {name}[t,s] − {name}[t − 1,s − 1]: both positions moved by one",
            f"Δ {name}[t,s] = {name}[t,s] − {name}[t − 1,s − 1]：两个位置都移动一格",
        ),
        str(of_equations()["rotary"].forward),
        numbers,
        goal=Words(
            "Check that a score depends on the distance between the two positions alone.",
            "验证分数只取决于两个位置的距离。",
        ),
        why=Words(
            "Moving both positions turns both vectors by the same angle, so the angle between them stays the same.",
            "两个位置一起移动，两个向量就转过同样的角度，它们之间的夹角不变。",
        ),
    )


def _different(halves: np.ndarray, neighbours: np.ndarray) -> Step:
    return Step(
        Words("The pairing matters", "配对方式会改变分数"),
        Words("S_2[1,0] − S[1,0]: the same vector, different pairs", "S_2[1,0] − S[1,0]：同样的向量，不同的配对"),
        str(of_equations()["rotary"].forward),
        (difference("S_2[1,0] − S[1,0]", neighbours[0, 0, 1, 0], halves[0, 0, 1, 0]),),
        goal=Words("See that the two pairings give different scores.", "确认两种配对给出的分数不同。"),
        why=Words(
            "Training fits the weights to one pairing. "
            "With the other, every shape still fits and no error is raised, but each number is rotated with the wrong partner.",
            "训练使权重适应一种配对。换成另一种，形状处处吻合，也不报错，但每个数都配错了对。",
        ),
    )
