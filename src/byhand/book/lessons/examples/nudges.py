"""What a gradient is, in arithmetic: nudge one number, two, then a graph of six nodes and one weight of a matrix.

The gradients are those of the engine; every one is worked as a rule and as the change of L for a nudge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.examples import Maker
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.lessons.lesson import Array, Content, Number, Step, factor, form, grid, number_text
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Said, Words
from byhand.engine import Tensor
from byhand.equations.add import add
from byhand.equations.linear import linear
from byhand.equations.mul import mul
from byhand.tracing.gradients import Gradients
from byhand.tracing.settled import settled_backward
from byhand.tracing.trace import Trace

START: dict[str, Any] = {
    "a": 2, "b": 3, "goal": 5, "nudge": "1/100", "rate": "1/100",
    "x": [[1, 2], [3, 4]], "W": [[5, 6], [7, 8]], "∂y": [[1, -1], [2, 1]],
}  # fmt: skip
GRAPH = ("a", "b", "c", "d", "e", "L")
ONE_WAY = ("counted only one of the two ways", "只算了两条路中的一条")
OTHER = ("took the number that was nudged instead of the other factor", "取了被微调的数，而不是另一个因子")


def lesson(array: Maker, start: dict[str, Any] = START) -> Content:
    """Single rules first, then the graph forward and back, the check, an update, and one weight of a product."""
    n = {name: array(numbers)[()] for name, numbers in start.items()}
    gradients = graph(array, start)
    intro = Words(
        "A gradient is change per change. Nudge a number, watch L, and divide. Every rule of the backward pass comes "
        "from this.",
        "梯度就是“变化之比”：把一个数微调一点，看 L 变多少，再相除。反向传播的每条规则都由此而来。",
    )
    steps = (*_rules(n), *_graph_steps(n, gradients), *_matrix_steps(array, start, n))
    return intro, steps, tuple((name, grid(numbers)) for name, numbers in n.items())


def graph(array: Maker, start: dict[str, Any] = START) -> Gradients:
    """Return the graph c = a b, d = c + a, e = d - goal, L = e e, walked back."""
    a, b = (Tensor(array([start[name]]), requires_grad=True, name=name) for name in "ab")
    away = Tensor(-array([start["goal"]]), name="−goal")

    def whole() -> Tensor:
        d = add(mul(a, b, name="c"), a, name="d")
        e = add(d, away, name="e")
        return mul(e, e, name="L")

    return settled_backward(Trace.of(whole), array([1]))


def _number(label: Said, text: str, value: Any, *wrong: Mistake) -> Number:
    return Number(label, text, float(value), form(value), wrong)


def _slope(name: str, high: Any, low: Any, by: Any, *wrong: Mistake) -> Number:
    """Return a change of L over the change of a number."""
    text = f"({number_text(high)} − {factor(low)}) / {number_text(by)}"
    return _number(f"∂{name}", text, _round((high - low) / by), *wrong)


def _round(value: Any) -> Any:
    """Take off the rounding error of a quotient of small differences."""
    return round(value, 9) if isinstance(value, float) else value


def _rules(n: dict[str, Any]) -> Iterator[Step]:
    """Yield a rule each: one number, a product, a sum, a number used twice, a square."""
    a, b, h = n["a"], n["b"], n["nudge"]
    t = number_text

    def nudged(name: str, value: Any) -> str:
        return f"L({name} = {t(value)})"

    yield Step(
        Words("One number", "一个数"), "L = 3 × a", "",
        (
            _number("L", f"3 × {t(a)}", 3 * a),
            _number(nudged("a", a + h), f"3 × {t(a + h)}", 3 * (a + h)),
            _slope("a", 3 * (a + h), 3 * a, h, Mistake("forgot to divide by the nudge", "忘了除以微调量", float(3 * h))),
        ),
        goal=Words("Nudge a by 0.01 and see what L does.", "把 a 增大 0.01，看 L 怎样变化。"),
        why=Words(
            "L changes by three times the nudge, whatever the nudge is. This 3 is the gradient of a, written ∂a.",
            "无论微调多少，L 的变化都是它的三倍。这个 3 就是 a 的梯度，记作 ∂a。",
        ),
    )  # fmt: skip
    yield Step(
        Words("A product: two nudges", "乘积：微调两次"), "L = a × b", "",
        (
            _number("L", f"{t(a)} × {t(b)}", a * b),
            _number(nudged("a", a + h), f"{t(a + h)} × {t(b)}", (a + h) * b),
            _slope("a", (a + h) * b, a * b, h, Mistake(*OTHER, float(a))),
            _number(nudged("b", b + h), f"{t(a)} × {t(b + h)}", a * (b + h)),
            _slope("b", a * (b + h), a * b, h, Mistake(*OTHER, float(b))),
        ),
        goal=Words("Nudge a alone, then b alone.", "先只微调 a，再只微调 b。"),
        why=Words(
            "In a product each factor's gradient is the other factor: a stands beside b, so a nudge of a arrives b "
            "times as large.",
            "乘积中，一个因子的梯度就是另一个因子：a 与 b 相乘，a 的微调传到 L 时被放大 b 倍。",
        ),
    )  # fmt: skip
    yield Step(
        Words("A sum", "和"), "L = a + b", "",
        (
            _number("L", f"{t(a)} + {t(b)}", a + b),
            _number(nudged("a", a + h), f"{t(a + h)} + {t(b)}", a + h + b),
            _slope("a", a + h + b, a + b, h),
            _number(nudged("b", b + h), f"{t(a)} + {t(b + h)}", a + b + h),
            _slope("b", a + b + h, a + b, h),
        ),
        goal=Words("The same two nudges in a sum.", "对和做同样的两次微调。"),
        why=Words(
            "A sum passes every nudge on as it is: the gradient of each addend is 1, however many there are.",
            "和把每个微调原样传下去：无论有多少个加数，每个加数的梯度都是 1。",
        ),
    )  # fmt: skip
    yield Step(
        Words("A number used twice", "用了两次的数"), "L = a × b + a", "",
        (
            _number("L", f"{t(a)} × {t(b)} + {t(a)}", a * b + a),
            _number(nudged("a", a + h), f"{t(a + h)} × {t(b)} + {t(a + h)}", (a + h) * b + a + h),
            _slope("a", (a + h) * b + a + h, a * b + a, h, *(Mistake(*ONE_WAY, float(x)) for x in (b, 1))),
        ),
        goal=Words("Nudge a, which stands in two places.", "微调出现在两处的 a。"),
        why=Words(
            "The first place alone would give b = 3, the second 1. Both move at once, so the parts add: 3 + 1.",
            "单看第一处得 b = 3，单看第二处得 1；两处同时变化，所以两部分相加：3 + 1。",
        ),
    )  # fmt: skip
    squares = tuple((b + x) * (b + x) for x in (h, -h))
    yield Step(
        Words("A square: nudge both ways", "平方：向两边微调"), "L = b × b", "",
        (
            _number(nudged("b", b + h), f"{t(b + h)} × {t(b + h)}", squares[0]),
            _number(nudged("b", b - h), f"{t(b - h)} × {t(b - h)}", squares[1]),
            _number(
                Words("∂b, upwards", "∂b（只向上）"),
                f"({t(squares[0])} − {t(b * b)}) / {t(h)}",
                _round((squares[0] - b * b) / h),
            ),
            _slope("b", *squares, 2 * h, Mistake(*ONE_WAY, float(b))),
        ),
        goal=Words("Nudge b up and down, and divide by the whole way.", "把 b 向上、向下各微调一次，除以两者之间的距离。"),
        why=Words(
            "By the rules: b is a factor twice, and each place gives the other factor, 3 + 3. Upwards alone the nudge "
            "gives 6.01, since a square grows faster the larger b is; a smaller nudge comes closer to 6, and both "
            "sides together meet it.",
            "按规则：b 作为因子出现两次，每处给出另一个因子，即 3 + 3。只向上微调得 6.01，因为 b 越大，平方增长得越快；"
            "微调越小越接近 6，两边合起来正好是 6。",
        ),
    )  # fmt: skip


def _graph_steps(n: dict[str, Any], gradients: Gradients) -> Iterator[Step]:
    """Yield the six nodes forward and back, each gradient by a nudge, and a step against the gradient."""
    h, goal, t = n["nudge"], n["goal"], number_text
    v = {name: gradients.trace.values[name][0] for name in GRAPH}
    d = {name: gradients.by_name[name][0] for name in GRAPH}
    yield Step(
        Words("Six nodes, forward", "六个节点：前向"), "c = a × b,  d = c + a,  e = d − 5,  L = e × e", "",
        (
            _number("c", f"{t(v['a'])} × {t(v['b'])}", v["c"]),
            _number("d", f"{t(v['c'])} + {t(v['a'])}", v["d"], Mistake("added b instead of a", "加成了 b", float(v["c"] + v["b"]))),
            _number("e", f"{t(v['d'])} − {t(goal)}", v["e"]),
            _number("L", f"{t(v['e'])} × {t(v['e'])}", v["L"]),
        ),
        goal=Words("d should be 5. L says how far it is: the square of the error.", "希望 d 等于 5。L 是误差的平方，表示差多远。"),
        why=Words(
            "The square is 0 at the goal and positive on both sides of it, so a smaller L is always better.",
            "达到目标时平方为 0，偏向哪一边都是正数，所以 L 总是越小越好。",
        ),
    )  # fmt: skip
    yield Step(
        Words("Six nodes, back", "六个节点：反向"), "∂e = ∂L × (e + e),  ∂d = ∂e × 1,  ∂c = ∂d × 1,  ∂b = ∂c × a,  ∂a = ∂c × b + ∂d × 1", "",
        (
            _number("∂e", f"{t(d['L'])} × ({t(v['e'])} + {t(v['e'])})", d["e"], Mistake(*ONE_WAY, float(v["e"]))),
            _number("∂d", f"{t(d['e'])} × 1", d["d"]),
            _number("∂c", f"{t(d['d'])} × 1", d["c"]),
            _number("∂b", f"{t(d['c'])} × {t(v['a'])}", d["b"], Mistake(*OTHER, float(d["c"] * v["b"]))),
            _number(
                "∂a", f"{t(d['c'])} × {t(v['b'])} + {t(d['d'])} × 1", d["a"],
                *(Mistake(*ONE_WAY, float(x)) for x in (d["c"] * v["b"], d["d"])),
            ),
        ),
        goal=Words("From L back to a and b, one node at a time. ∂L is 1: L changes as much as L.", "从 L 逐个节点传回 a 与 b。∂L 是 1：L 的变化就等于 L 的变化。"),
        why=Words(
            "A nudge of d arrives at e times 1 and from e at L times 6: rates along a way multiply. The rates of "
            "different ways add. This is the chain rule.",
            "d 的微调传到 e 时乘以 1，再从 e 传到 L 时乘以 6：同一条路上的比率相乘，不同的路相加。这就是链式法则。",
        ),
    )  # fmt: skip
    ways: dict[str, tuple[Callable[[Any], Any], str]] = {
        "e": (lambda e: e * e, "{0}²"),
        "d": (lambda x: (x - goal) ** 2, f"({{0}} − {t(goal)})²"),
        "c": (lambda c: (c + v["a"] - goal) ** 2, f"({{0}} + {t(v['a'])} − {t(goal)})²"),
        "b": (lambda b: (v["a"] * b + v["a"] - goal) ** 2, f"({t(v['a'])} × {{0}} + {t(v['a'])} − {t(goal)})²"),
        "a": (lambda a: (a * v["b"] + a - goal) ** 2, f"({{0}} × {t(v['b'])} + {{0}} − {t(goal)})²"),
    }
    found = []
    for name, (loss, text) in ways.items():
        high, low = v[name] + h, v[name] - h
        written = f"({text.format(t(high))} − {text.format(t(low))}) / {t(2 * h)}"
        found.append(_number(f"∂{name}", written, _round((loss(high) - loss(low)) / (2 * h))))
    yield Step(
        Words("The same gradients by nudges", "用微调验证同样的梯度"), "∂x = (L(x + 0.01) − L(x − 0.01)) / 0.02", "",
        tuple(found),
        goal=Words("Nudge each node, and compute L from there on.", "逐个微调节点，从该处起重新计算 L。"),
        why=Words(
            "A nudge needs no rule, so it can check every rule. It costs two passes for each number.",
            "微调不依赖任何规则，所以能检验一切规则；代价是每个数要算两遍。",
        ),
    )  # fmt: skip
    new = {name: v[name] - n["rate"] * d[name] for name in "ab"}
    after = (new["a"] * new["b"] + new["a"] - goal) ** 2
    yield Step(
        Words("A step against the gradient", "逆着梯度走一步"), "a' = a − rate × ∂a", "",
        (
            *(
                _number(
                    f"{name}'", f"{t(v[name])} − {t(n['rate'])} × {t(d[name])}", new[name],
                    Mistake("went with the gradient, not against it", "顺着梯度走了", float(2 * v[name] - new[name])),
                )
                for name in "ab"
            ),
            _number("L'", f"({t(new['a'])} × {t(new['b'])} + {t(new['a'])} − {t(goal)})²", after),
        ),
        goal=Words("Change a and b a little so that L falls.", "略微改变 a 与 b，使 L 下降。"),
        why=Words(
            "Both gradients are positive, so smaller a and b make L smaller. Repeated, this is all of training.",
            "两个梯度都是正的，所以减小 a 与 b 会使 L 变小。反复这样做，就是训练的全部。",
        ),
    )  # fmt: skip


def _matrix_steps(array: Maker, start: dict[str, Any], n: dict[str, Any]) -> Iterator[Step]:
    """Yield y = x W, one weight's gradient place by place, and all of them at once."""
    x, w = (Tensor(array(start[name]), requires_grad=True, name=name) for name in "xW")
    trace, dy = Trace.of(lambda: linear(x, w, name="y")), array(start["∂y"])
    (forward,), (back,) = forward_steps(trace), backward_steps(trace, dy)
    h, y, t = n["nudge"], trace.result.data, number_text
    yield forward
    total = np.sum(dy * y)
    moved = array(start["W"])
    moved[0, 1] = moved[0, 1] + h
    later = x.data @ moved
    ways = [(dy[k, 1] * x.data[k, 0]) for k in range(2)]
    text = " + ".join(f"{factor(x.data[k, 0])} × {factor(dy[k, 1])}" for k in range(2))
    wrong = (Mistake(*ONE_WAY, float(way)) for way in ways)
    yield Step(
        Words("One weight, place by place", "一个权重，逐处追踪"), "∂W[0,1] = x[0,0] × ∂y[0,1] + x[1,0] × ∂y[1,1]", "",
        (
            _number("L", " + ".join(f"{factor(p)} × {t(q)}" for p, q in zip(dy.flat, y.flat, strict=True)), total),
            _number(Words("new y[0,1]", "新的 y[0,1]"), f"{t(x.data[0, 0])} × {t(moved[0, 1])} + {t(x.data[0, 1])} × {t(moved[1, 1])}", later[0, 1]),
            _number(Words("new y[1,1]", "新的 y[1,1]"), f"{t(x.data[1, 0])} × {t(moved[0, 1])} + {t(x.data[1, 1])} × {t(moved[1, 1])}", later[1, 1]),
            _number(
                f"L(W[0,1] = {t(moved[0, 1])})",
                " + ".join(f"{factor(p)} × {t(q)}" for p, q in zip(dy.flat, later.flat, strict=True)),
                np.sum(dy * later),
            ),
            _number("∂W[0,1]", text, sum(ways), *wrong),
        ),
        goal=Words(
            "Nudge W[0,1] and follow it through every place where it is used.", "微调 W[0,1]，追踪用到它的每一处。"
        ),
        why=Words(
            "Row 0 of x uses W[0,1] with the factor x[0,0], row 1 with x[1,0]. Each place counts as much as its result "
            "does; the parts add.",
            "x 的第 0 行以 x[0,0] 为系数用到 W[0,1]，第 1 行以 x[1,0] 为系数。每一处按它的结果的梯度计入，各部分相加。",
        ),
        inputs=(Array(r"\partial y", "∂y", dy),),
    )  # fmt: skip
    yield back
