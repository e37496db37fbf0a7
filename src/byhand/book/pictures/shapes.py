"""The shapes of a pass: each array as a rectangle as wide and as high as its last two axes are long."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from byhand.book.pictures.blocks import tag
from byhand.book.pictures.canvas import BLUE, VIOLET
from byhand.book.pictures.passes import BLOCK, pass_through
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Arrow, Box, Space, dot
from byhand.book.pictures.scene.figure import Caption, Figure
from byhand.book.pictures.scene.groups import Across, Column, heading
from byhand.book.words.language import Words
from byhand.config import ModelConfig, TrainConfig
from byhand.tracing.tracer import Application

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
