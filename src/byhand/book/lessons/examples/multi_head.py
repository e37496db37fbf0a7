"""The same input and weights through one head of width 4 and through two heads of width 2."""

from byhand.book.lessons.changes import Given
from byhand.book.lessons.examples.post_norm import WEIGHTS
from byhand.book.lessons.forward_steps import forward_steps, given
from byhand.book.lessons.lesson import Content, Maker, Step, difference, listed
from byhand.book.words.language import Words
from byhand.engine import Tensor, scope
from byhand.equations.causal_self_attention import causal_self_attention
from byhand.tracing.trace import Trace

PARAMETERS = ("w_qkv", "b_qkv", "w_proj", "b_proj")
GIVEN: Given = {"H": [[1, 0, -1, 0], [0, 1, 1, 0], [1, 1, 0, -1]]} | {
    name: WEIGHTS[f"blocks.0.attn.{name}"] for name in PARAMETERS
}


@listed(90, "The same input through one head and through two", "同一输入经过一个头与两个头")
def lesson(array: Maker, start: Given = GIVEN) -> Content:
    """Run both, then compare their weights."""
    runs: dict[int, Trace] = {}
    steps: list[Step] = []
    for heads, name in ((1, "one"), (2, "two")):
        with scope(name):
            runs[heads] = attended(array, heads, start)
        steps += forward_steps(runs[heads])
    steps.append(_compared(runs))
    intro = Words(
        "The projections are the same; only the split into heads differs. One head makes one pattern of weights for "
        "all four columns. Two heads make one pattern for each half, and divide the scores by √2 instead of √4.",
        "投影完全相同，只是切法不同。一个头为四列给出同一组注意力权重；两个头各为一半的列给出一组，分数除以的是 √2，而不是 √4。",
    )
    return intro, steps, given(runs[1])


def attended(array: Maker, heads: int, start: Given = GIVEN) -> Trace:
    """Return attention with so many heads."""
    inputs = [Tensor(array([start["H"]]), name="H"), *(Tensor(array(start[k]), name=k) for k in PARAMETERS)]
    return Trace.of(lambda: causal_self_attention(*inputs, n_heads=heads, name="attn"))


def _compared(runs: dict[int, Trace]) -> Step:
    one, two = runs[1].tensor("one.attn.weights").data, runs[2].tensor("two.attn.weights").data
    found = tuple(
        difference(f"Δ P[0,{h},2,{s}]", two[0, h, 2, s], one[0, 0, 2, s]) for h in range(2) for s in range(3)
    )
    title = Words("What changed: the weights of the last token", "变化在哪里：最后一个词元的注意力权重")
    return Step(
        title,
        Words("P of each of the two heads − P of the single head", "两个头各自的 P − 单个头的 P"),
        "",
        found,
        goal=Words(
            "See what a second head changes.",
            "看看第二个头改变了什么。",
        ),
        why=Words(
            "One head must serve all columns with one pattern of weights. Two heads can look at different tokens.",
            "一个头对所有列只能用同一组权重；两个头可以看不同的词元。",
        ),
    )
