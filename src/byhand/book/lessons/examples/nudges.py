"""What a gradient is, in arithmetic: nudge one number, two, then a graph of six numbers and one weight of a matrix.

The gradients are the engine's; each is computed by a rule and as the change of L for a nudge. The texts of the steps
are in nudges.toml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.lessons.lesson import Array, Content, Maker, Number, Step, factor, form, grid, listed, number_text
from byhand.book.numbers.arithmetic import decimal
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Said, Words
from byhand.book.words.tables import table
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
GRAPH = ("a", "b", "c", "d", "r", "L")
ONE_WAY = ("counted only one of the two ways", "只算了两条路中的一条")
OTHER = ("took the number that was nudged instead of the other factor", "取了被微扰的数，而不是另一个因子")


@listed(10, "Nudges: what a gradient is, from one number to a graph", "微扰一个数：梯度是什么，从一个数到一张图")
def lesson(array: Maker) -> Content:
    """Single rules first, then the graph forward and back, the check, an update, and one weight of a product."""
    n = {name: array(numbers)[()] for name, numbers in START.items()}
    intro = Words(
        "A gradient is change per change. Nudge a number, watch L, and divide. "
        "Every rule of the backward pass comes from this.",
        "梯度就是变化率：把一个数改动一点点（微扰），看 L 变多少，再相除。反向传播的每条规则都由此而来。",
    )
    steps = (*_rules(n), *_graph_steps(n, graph(array)), *_matrix_steps(array, n["nudge"]))
    return intro, steps, tuple((name, grid(numbers)) for name, numbers in n.items())


def graph(array: Maker) -> Gradients:
    """Return the graph c = a b, d = c + a, r = d - goal, L = r r, walked back."""
    a, b = (Tensor(array([START[name]]), requires_grad=True, name=name) for name in "ab")
    away = Tensor(-array([START["goal"]]), name="−goal")

    def whole() -> Tensor:
        d = add(mul(a, b, name="c"), a, name="d")
        r = add(d, away, name="r")
        return mul(r, r, name="L")

    return settled_backward(Trace.of(whole), array([1]))


@cache
def _texts() -> dict[str, dict[str, list[str]]]:
    return table(Path(__file__).with_suffix(".toml"))


def _step(key: str, formula: str, numbers: Iterable[Number], inputs: tuple[Array, ...] = ()) -> Step:
    """Return the step whose texts have this key."""
    said = {part: Words(*both) for part, both in _texts()[key].items()}
    return Step(said["title"], formula, "", tuple(numbers), goal=said["goal"], why=said["why"], inputs=inputs)


def _number(label: Said, text: str, value: Any, *wrong: Mistake) -> Number:
    return Number(label, text, float(value), form(value), wrong)


def _slope(label: Said, high: Any, low: Any, by: Any, *wrong: Mistake) -> Number:
    """Return a change of L over the change of a number."""
    text = f"({number_text(high)} − {factor(low)}) / {_divisor(by)}"
    return _number(label, text, _settled((high - low) / by), *wrong)


def _divisor(value: Any) -> str:
    """Write a number below a bar; a fraction in parentheses."""
    text = number_text(value)
    return f"({text})" if "/" in text else text


def _settled(value: Any) -> Any:
    """Remove the rounding error of a quotient of small differences."""
    return round(value, 9) if isinstance(value, float) else value


def _nudged(name: str, value: Any) -> str:
    return f"L({name} = {decimal(float(value))})"


def _rules(n: dict[str, Any]) -> Iterator[Step]:
    """Yield a rule each: one number, a product, a sum, a number used twice, a square."""
    a, b, h, t = n["a"], n["b"], n["nudge"], number_text
    up, high = a + h, b + h
    undivided = Mistake("forgot to divide by the nudge", "忘了除以微扰量", float(3 * h))
    one = (
        _number("L", f"3 × {t(a)}", 3 * a),
        _number(_nudged("a", up), f"3 × {t(up)}", 3 * up),
        _slope("∂a", 3 * up, 3 * a, h, undivided),
    )
    product = (
        _number("L", f"{t(a)} × {t(b)}", a * b),
        _number(_nudged("a", up), f"{t(up)} × {t(b)}", up * b),
        _slope("∂a", up * b, a * b, h, Mistake(*OTHER, float(a))),
        _number(_nudged("b", high), f"{t(a)} × {t(high)}", a * high),
        _slope("∂b", a * high, a * b, h, Mistake(*OTHER, float(b))),
    )
    added = (
        _number("L", f"{t(a)} + {t(b)}", a + b),
        _number(_nudged("a", up), f"{t(up)} + {t(b)}", up + b),
        _slope("∂a", up + b, a + b, h),
        _number(_nudged("b", high), f"{t(a)} + {t(high)}", a + high),
        _slope("∂b", a + high, a + b, h),
    )
    twice = (
        _number("L", f"{t(a)} × {t(b)} + {t(a)}", a * b + a),
        _number(_nudged("a", up), f"{t(up)} × {t(b)} + {t(up)}", up * b + up),
        _slope("∂a", up * b + up, a * b + a, h, *(Mistake(*ONE_WAY, float(x)) for x in (b, 1))),
    )
    low = b - h
    square = (
        _number("L", f"{t(b)} × {t(b)}", b * b),
        _number(_nudged("b", high), f"{t(high)} × {t(high)}", high * high),
        _number(_nudged("b", low), f"{t(low)} × {t(low)}", low * low),
        _slope(Words("∂b, upwards", "∂b（只向上）"), high * high, b * b, h),
        _slope("∂b", high * high, low * low, 2 * h, Mistake(*ONE_WAY, float(b))),
    )
    yield _step("one", "L = 3 × a", one)
    yield _step("product", "L = a × b", product)
    yield _step("sum", "L = a + b", added)
    yield _step("twice", "L = a × b + a", twice)
    yield _step("square", "L = b × b", square)


def _graph_steps(n: dict[str, Any], gradients: Gradients) -> Iterator[Step]:
    """Yield the six numbers forward and back, each gradient by a nudge, and a step against the gradient."""
    t, away = number_text, number_text(n["goal"])
    v = {name: gradients.trace.values[name][0] for name in GRAPH}
    d = {name: gradients.by_name[name][0] for name in GRAPH}
    a, b, c, r = (t(v[name]) for name in "abcr")
    forward = (
        _number("c", f"{a} × {b}", v["c"]),
        _number("d", f"{c} + {a}", v["d"], Mistake("added b instead of a", "加成了 b", float(v["c"] + v["b"]))),
        _number("r", f"{t(v['d'])} − {away}", v["r"]),
        _number("L", f"{r} × {r}", v["L"]),
    )
    both_ways = (Mistake(*ONE_WAY, float(x)) for x in (d["c"] * v["b"], d["d"]))
    back = (
        _number("∂r", f"{t(d['L'])} × ({r} + {r})", d["r"], Mistake(*ONE_WAY, float(v["r"]))),
        _number("∂d", f"{t(d['r'])} × 1", d["d"]),
        _number("∂c", f"{t(d['d'])} × 1", d["c"]),
        _number("∂b", f"{t(d['c'])} × {a}", d["b"], Mistake(*OTHER, float(d["c"] * v["b"]))),
        _number("∂a", f"{t(d['c'])} × {b} + {t(d['d'])} × 1", d["a"], *both_ways),
    )
    yield _step("forward", f"c = a × b,  d = c + a,  r = d − {away},  L = r × r", forward)
    yield _step("back", "∂r = ∂L × (r + r),  ∂d = ∂r × 1,  ∂c = ∂d × 1,  ∂b = ∂c × a,  ∂a = ∂c × b + ∂d × 1", back)
    yield _step("check", "∂x = (L(x + 0.01) − L(x − 0.01)) / 0.02", _checks(n, v))
    against = ("went with the gradient, not against it", "顺着梯度走了")
    new = {name: v[name] - n["rate"] * d[name] for name in "ab"}
    moved = (
        _number(
            f"{name}'",
            f"{t(v[name])} − {t(n['rate'])} × {t(d[name])}",
            new[name],
            Mistake(*against, float(2 * v[name] - new[name])),
        )
        for name in "ab"
    )
    after = f"({t(new['a'])} × {t(new['b'])} + {t(new['a'])} − {away})²"
    loss = _number("L'", after, (new["a"] * new["b"] + new["a"] - n["goal"]) ** 2)
    yield _step("update", "a' = a − rate × ∂a,  b' = b − rate × ∂b", (*moved, loss))


def _checks(n: dict[str, Any], v: dict[str, Any]) -> Iterator[Number]:
    """Yield every gradient as the change of L when its number alone is nudged both ways."""
    t, goal, h = number_text, n["goal"], n["nudge"]
    a, b, away = t(v["a"]), t(v["b"]), t(goal)
    ways: dict[str, tuple[Callable[[Any], Any], str]] = {
        "r": (lambda r: r * r, "({0})²"),
        "d": (lambda d: (d - goal) ** 2, f"({{0}} − {away})²"),
        "c": (lambda c: (c + v["a"] - goal) ** 2, f"({{0}} + {a} − {away})²"),
        "b": (lambda b: (v["a"] * b + v["a"] - goal) ** 2, f"({a} × {{0}} + {a} − {away})²"),
        "a": (lambda a: (a * v["b"] + a - goal) ** 2, f"({{0}} × {b} + {{0}} − {away})²"),
    }
    for name, (loss, text) in ways.items():
        high, low = v[name] + h, v[name] - h
        written = f"({text.format(t(high))} − {text.format(t(low))}) / {_divisor(2 * h)}"
        yield _number(f"∂{name}", written, _settled((loss(high) - loss(low)) / (2 * h)))


def _matrix_steps(array: Maker, h: Any) -> Iterator[Step]:
    """Yield y = x W, one weight's gradient place by place, and all of them at once."""
    x, w = (Tensor(array(START[name]), requires_grad=True, name=name) for name in "xW")
    trace, dy, moved = Trace.of(lambda: linear(x, w, name="y")), array(START["∂y"]), array(START["W"])
    (forward,), (back,) = forward_steps(trace), backward_steps(trace, dy)
    moved[0, 1] = moved[0, 1] + h
    later = x.data @ moved
    ways = [dy[k, 1] * x.data[k, 0] for k in range(2)]
    rows = [[factor(number) for number in row] for row in x.data]

    def loss(label: str, y: np.ndarray) -> Number:
        text = " + ".join(f"{factor(p)} × {number_text(q)}" for p, q in zip(dy.flat, y.flat, strict=True))
        return _number(label, text, np.sum(dy * y))

    def new(k: int) -> Number:
        text = " + ".join(f"{p} × {factor(q)}" for p, q in zip(rows[k], moved[:, 1], strict=True))
        return _number(Words(f"new y[{k},1]", f"新的 y[{k},1]"), text, later[k, 1])

    text = " + ".join(f"{rows[k][0]} × {factor(dy[k, 1])}" for k in range(2))
    weight = _number("∂W[0,1]", text, sum(ways), *(Mistake(*ONE_WAY, float(way)) for way in ways))
    whole = np.sum(dy * later), np.sum(dy * trace.result.data)
    found = _slope(Words("∂W[0,1], nudged", "微扰得到的 ∂W[0,1]"), *whole, h)
    numbers = (
        loss("L", trace.result.data),
        new(0),
        new(1),
        loss(_nudged("W[0,1]", moved[0, 1]), later),
        found,
        weight,
    )
    formula = "∂W[0,1] = x[0,0] × ∂y[0,1] + x[1,0] × ∂y[1,1]"
    yield forward
    yield _step("weight", formula, numbers, (Array(r"\partial y", "∂y", dy),))
    yield back
