"""The recorded graph of one block with its sizes, and the shapes of a batch on its way through the model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, groupby
from typing import NamedTuple

import numpy as np

from byhand.book.lessons.forward_steps import letter_in
from byhand.book.lessons.letters import label
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.blocks import block_of, stream_of, tag
from byhand.book.pictures.canvas import BLUE, RUST, VIOLET
from byhand.book.pictures.passes import BLOCK, pass_of, pass_through
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Arrow, Box, Space, dot
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, Link, heading
from byhand.book.words.language import SEMICOLON, Words
from byhand.config import ModelConfig, TrainConfig
from byhand.engine import Tensor
from byhand.engine.terms import element_name
from byhand.tracing.tracer import Application

ELEMENT = (0, 2, 0)  # of the stream, whose gradient is added up
FORKS = Words(
    "Where the stream forks (dot), its gradient is a sum: one part comes through the +, one through the branch.",
    "残差流在圆点处的梯度是两项之和：一项来自 +，一项来自分支。",
)
SIZES = (None, 46, 46)  # pixels: an equation, the sizes of its value and gradient


def sizes(name: str) -> list[str]:
    """Return the sizes of an array's value and gradient: the roots of their mean squares."""
    gradients = pass_of("paper-gpt")
    both = gradients.trace.values[name], gradients.by_name[name]
    return [decimal(float(np.sqrt(np.mean(np.square(array)))), 3) for array in both]


def parts(stream: Tensor) -> list[float]:
    """Return the part of the element's gradient from each use of the stream: the sum's, then the branch's."""
    gradients = pass_of("paper-gpt")
    return [use.term.value for use in gradients.answer(gradients.trace.name(stream), ELEMENT).uses]


def added(stream: Tensor) -> str:
    """Write the addition of gradients at a place where the stream forks."""
    place = element_name(lettered(pass_of("paper-gpt").trace.name(stream)), ELEMENT[1:])
    terms, result = next(filter(None, (_rounded(parts(stream), digits) for digits in count(3))))
    return f"∂{place} = {' + '.join(terms)} = {result}"


def _rounded(terms: Sequence[float], digits: int) -> tuple[list[str], str] | None:
    """Return terms and their sum with so many digits, unless what is printed gives another sum."""
    written, result = [decimal(term, digits) for term in terms], decimal(sum(terms), digits)
    again = sum(float(term.replace("−", "-")) for term in written)
    bracketed = [f"({term})" if term.startswith("−") else term for term in written]
    return (bracketed, result) if decimal(again, digits) == result else None


def lettered(name: str) -> str:
    """Return the letter of an array, as the lesson's steps have it."""
    return label(letter_in(pass_of("paper-gpt").trace, name))


@scene("One block: sizes of values / of their gradients", "一个块中各个值的大小 / 其梯度的大小")
def block_graph() -> Column:
    """Each application with its result's sizes, from the stream that enters to the stream that leaves."""
    block = block_of(pass_of("paper-gpt").trace)
    forks = iter(stream_of(block))
    said = Words("root mean square of", "均方根"), Words("value", "值"), Words("grad", "梯度")
    head = Across([Caption(words, at="middle" if i else "end") for i, words in enumerate(said)], gap=2, widths=SIZES)
    first = Across([heading(lettered("x")), *_numbers(["x"])], gap=2, widths=SIZES, says="")
    lines: list[Figure] = [head, _beside(Space(wide=10, name="x"), first, "x")]
    links, trunk, above, split = [], "x", "", ""
    for application in block:
        names = application.result_names()
        name, joins = names[0], application.equation.name == "residual"
        if not above:  # a branch leaves the stream
            fork, above = f"fork{len(lines)}", added(next(forks))
            lines.append(_beside(dot(name=fork), Box(above, RUST, name=above)))
            links.append(Link(fork, above, "right", "left", head=False))
        sign = dot("+", "", f"+{name}", 10) if joins else Space()
        lines.append(_beside(sign, _equation(application, names), *names))
        links.append(Link(above, name))
        above = name
        if joins:
            links += [Link(name, sign.name, "left", "right"), Link(trunk, sign.name, colour=BLUE, thick=3)]
            trunk, above = sign.name, ""
        elif any(t.name.endswith(".2") for t in application.inputs):  # the values, made by the split
            links.append(Link(split, name, "left", "left", words=lettered(f"{BLOCK}attn.v")))
        elif len(names) > 1:
            split = name
    links.append(Link(trunk, "end", colour=BLUE, thick=3))
    lines += [_beside(Space(wide=10, name="end"), Space()), Caption(FORKS, says="")]
    return Column(lines, gap=13, links=links)


def _beside(stream: Figure, element: Figure, *names: str) -> Across:
    """Return what stands on the stream and beside it; the alternative text has the sizes of the named arrays."""
    said = SEMICOLON.en.join(f"{lettered(name)} {' / '.join(sizes(name))}" for name in names)
    return Across([stream, Space(), element], gap=2, widths=(24, 72, None), says=said or None)


def _numbers(names: Sequence[str]) -> list[Figure]:
    """Return the sizes of values and of gradients."""
    own = [name.removeprefix(BLOCK) for name in names]
    values, slopes = zip(*map(sizes, names), strict=True)
    return [
        Column([Box(n, BLUE, shows=name) for n, name in zip(values, own, strict=True)], gap=2),
        Column([Box(n, RUST, shows=f"∂{name}") for n, name in zip(slopes, own, strict=True)], gap=2),
    ]


def _equation(application: Application, names: Sequence[str]) -> Across:
    """Return an application with the sizes of its results."""
    letters = list(map(lettered, names))
    words = f"{', '.join(letters)} = {application.equation.name}"
    box = Box(words, round_by=11, name=names[0], high=24 * len(names) - 2)
    each = [Column(list(map(heading, letters)), gap=8)] if len(names) > 1 else []
    return Across([box, *each, *_numbers(names)], gap=2, widths=(*SIZES[:1], *[12] * len(each), *SIZES[1:]))


DISTINCT = ModelConfig(vocab_size=101, seq_len=7, d_model=22, n_heads=2)  # no two axes of one length
BATCH, LENGTH = 5, 7
LETTERS = {5: "B", 7: "T", 22: "C", 66: "3C", 2: "H", 11: "D", 88: "4C", 101: "V"}
SCALE = 0.32  # pixels for one element of an axis
WIDTHS = (92, 106, 76, None)  # pixels of columns


class Stage(NamedTuple):
    """Consecutive arrays of one shape: names, shape in letters and numbers, equation and weights of the first."""

    names: tuple[str, ...]
    letters: tuple[str, ...]
    lengths: tuple[int, ...]
    equation: str
    weights: tuple[str, ...]


def stages() -> list[Stage]:
    """Return the stages from the tokens to the loss, of the default model and batch."""
    default = TrainConfig()
    lettered = pass_through(DISTINCT, BATCH, LENGTH).applications
    numbered = pass_through(default.model, default.batch_size, default.model.seq_len).applications
    found = [Stage(("tokens",), ("B", "T"), (default.batch_size, default.model.seq_len), "", ())]
    for ours, theirs in zip(lettered, numbered, strict=True):
        letters = tuple(LETTERS[n] for n in ours.results[0].shape)
        names = tuple(map(_short, ours.result_names()))
        found.append(Stage(names, letters, theirs.results[0].shape, ours.equation.name, _weights(ours)))
    groups = (list(group) for _, group in groupby(found, key=lambda stage: stage.letters))
    return [group[0]._replace(names=tuple(name for stage in group for name in stage.names)) for group in groups]


def _short(name: str) -> str:
    """Return a name without the block's; the MLP's result is told from attention's."""
    name = name.removeprefix(BLOCK)
    return name if name == "mlp.out" else name.removeprefix("attn.").removeprefix("mlp.")


def _weights(application: Application) -> tuple[str, ...]:
    """Return the weight matrices that an application reads, with their shapes in letters."""
    return tuple(
        f"{_short(t.name)} [{','.join(LETTERS[n] for n in t.shape)}]"
        for t in application.inputs
        if t.node is None and t.requires_grad and t.ndim > 1
    )


@scene("The shapes of a batch on its way through the model", "一个批次的形状变化")
def shapes() -> Column:
    """A rectangle for each stage, and between two of them the equation that leads from one to the next."""
    titles = Words("Array", "数组"), Words("last two axes", "最后两轴"), Words("shape", "形状"), ""
    lines: list[Figure] = [Across(list(map(heading, titles)), widths=WIDTHS)]
    for stage in stages():
        if stage.equation:
            learned = tag(*stage.weights[:1])
            line = Space(), Arrow(), Caption(stage.equation), learned
            lines.append(Across(line, widths=(88, 20, None, learned.wide), says=""))
        names, letters = ", ".join(stage.names), f"[{','.join(stage.letters)}]"
        lengths = Caption(f"[{','.join(map(str, stage.lengths))}]", at="end")
        says = f"{names} {letters} = {list(stage.lengths)}"
        row = Caption(names), _rectangle(stage), heading(letters), lengths
        lines.append(Across(row, widths=WIDTHS, says=says))
    return Column(lines, gap=3, join=" → ")


def _rectangle(stage: Stage) -> Figure:
    """Return the last two axes, once for each result of the stage's first application; a dot for a single number."""
    *_, down, across = (0, 0, *stage.lengths)
    count, fill = 3 if stage.equation == "split_qkv" else 1, VIOLET if len(stage.letters) == 4 else BLUE
    area = Box((), fill, wide=across * SCALE, high=down * SCALE if len(stage.lengths) > 2 else 4, round_by=1)
    shown = [area] * count if stage.lengths else [dot(radius=4)]
    return Across([*shown, Space()], gap=5, widths=(*(box.wide for box in shown), None))
