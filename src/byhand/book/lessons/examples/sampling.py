"""Sampling from logits 2, 1, 0, -1: as they are, flatter, and cut to the two largest; then one draw."""

from collections.abc import Iterator

import numpy as np

from byhand.book.finding.source import pointer
from byhand.book.lessons.changes import Given
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content, Maker, Number, Step, listed, number_text
from byhand.book.numbers.closed_form import value
from byhand.book.practice.edits import Mistake
from byhand.book.words.language import Words
from byhand.engine import Tensor
from byhand.equations.softmax import softmax
from byhand.equations.temperature import temperature
from byhand.equations.top_k import top_k
from byhand.errors import ByhandError
from byhand.tracing.answers import Answer
from byhand.tracing.sampling import drawn_with
from byhand.tracing.trace import Trace

LOGITS, TAU, K, UNIFORM = [2, 1, 0, -1], 2.0, 2, 0.7
DRAWN = Words("the token drawn", "抽到的词元")
DRAWN_AFTER_BOTH = Words("the token drawn after both", "两者都用时抽到的词元")
GIVEN: Given = {"z": LOGITS, "tau": TAU, "k": K, "u": UNIFORM}


@listed(110, "Temperature and top-k on four logits", "四个 logits 上的温度与 top-k")
def lesson(array: Maker, start: Given = GIVEN) -> Content:
    """Probabilities at temperature 1 and 2, after top-k, after both, and the tokens that a uniform number picks."""
    z, (tau, k, u) = Tensor(array(start["z"]), name="z"), (value(start[name]) for name in ("tau", "k", "u"))
    if not 0 <= u < 1:
        raise ByhandError(f"u is {number_text(u)}, but a draw takes a number from 0 up to 1. Use a smaller one.")
    if tau <= 0:
        raise ByhandError(f"tau is {number_text(tau)}, but a temperature is above 0. Use 0.5.")
    if k < 1 or k != int(k):
        raise ByhandError(f"k is {number_text(k)}, but is a number of tokens. Use 1 or more.")

    def whole() -> Tensor:
        softmax(z, name="p")
        softmax(temperature(z, tau=tau, name="z'"), name="p'")
        return softmax(top_k(z, k=int(k), name="z''"), name="p''")

    trace = Trace.of(whole)
    flatter = trace.tensor("z'")
    both = Trace.of(lambda: softmax(top_k(flatter, k=int(k), name="z'''"), name="p'''"))
    intro = Words(
        "The same four logits three ways. "
        "A higher temperature makes the probabilities more equal; top-k sets all but the largest to exactly zero. "
        "Then both, one after the other, as in generation.",
        "同样四个 logits，三种处理。温度越高，概率越接近；top-k 使最大的几个之外的概率恰好为零。最后两者依次使用，与生成时一样。",
    )
    known = (*given(trace), ("τ", number_text(tau)), ("k", str(int(k))), ("u", number_text(u)))
    return intro, (*_and_drawn(trace, u, DRAWN), *_and_drawn(both, u, DRAWN_AFTER_BOTH)), known


def _and_drawn(trace: Trace, u: float, drawn: Words) -> Iterator[Step]:
    yield from forward_steps(trace)
    yield _drawn(trace, drawn_with(u, trace), drawn)


def _drawn(trace: Trace, answer: Answer, drawn: Words) -> Step:
    (p,), token, name = answer.arrays, int(answer.value), trace.name(trace.result)
    running = np.cumsum(p)
    found = [
        Number(
            f"{name}[0] + … + {name}[{v}]" if v else f"{name}[0]",
            " + ".join(number_text(x) for x in p[: v + 1]),
            float(running[v]),
        )
        for v in range(len(p))
    ]
    found.append(
        Number(
            drawn,
            Words("the first whose running sum is above u", "第一个使累计和超过 u 的词元"),
            token,
            mistakes=(
                Mistake("took the likeliest: that is temperature 0", "取了最可能的：那是温度 0", int(np.argmax(p))),
            )
            if token
            else (),
        )
    )
    return Step(
        Words("One draw", "抽取一次"),
        f"v = min {{ v : {name}[0] + … + {name}[v] > u }}",
        pointer("generation/text.py:generate"),
        tuple(found),
        goal=Words(
            "Draw one token with these probabilities.",
            "按这些概率抽取一个词元。",
        ),
        why=Words(
            "The running sums cut the line from 0 to 1 into pieces whose lengths are the probabilities. "
            "A random number u on that line falls into each piece with its probability.",
            "累计和把 0 到 1 的线段切成与各概率等长的小段；随机数 u 落入某一段的概率正好等于对应词元的概率。",
        ),
        origin=(trace, answer),
    )
