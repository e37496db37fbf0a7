"""The shapes of a pass: each array as a rectangle as wide and as high as its last two axes are long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from byhand.book.pictures.canvas import BLUE, GREEN, SIZE, SMALL, VIOLET, text_width
from byhand.book.pictures.passes import BLOCK, pass_through
from byhand.book.pictures.picture import scene
from byhand.book.pictures.scene.elements import Across, Areas, Arrow, Box, Caption, Column, Disc, Figure, Space
from byhand.book.words.language import Words
from byhand.config import ModelConfig, TrainConfig
from byhand.tracing.tracer import Application

DISTINCT = ModelConfig(vocab_size=101, seq_len=7, d_model=22, n_heads=2)  # no two axes of one length
BATCH, LENGTH = 5, 7
LETTERS = {5: "B", 7: "T", 22: "C", 66: "3C", 2: "H", 11: "D", 88: "4C", 101: "V"}
SCALE = 0.32  # pixels for one element of an axis
WIDTHS = (92, 106, 76, None)  # pixels of columns


@dataclass(frozen=True)
class Stage:
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
    return [_together(list(group)) for _, group in groupby(found, key=lambda stage: stage.letters)]


def _together(group: list[Stage]) -> Stage:
    return replace(group[0], names=tuple(name for stage in group for name in stage.names))


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


@scene(
    Words("The shapes of a batch on its way through the model", "一个批次的形状变化"),
    Words("The shapes of a batch on its way through the model: ", "一个批次的形状变化："),
)
def shapes() -> Column:
    """A rectangle for each stage, and between two of them the equation that leads from one to the next."""
    titles = Words("Array", "数组"), Words("last two axes", "最后两轴"), Words("shape", "形状"), ""
    lines: list[Figure] = [Across([Caption(words, bold=True, size=SIZE) for words in titles], widths=WIDTHS)]
    for stage in stages():
        if stage.equation:
            weights = stage.weights[:1]
            box = Box(weights[0], GREEN, high=17) if weights else Space()
            room = text_width(weights[0], SMALL) + 6 if weights else 0
            lines.append(
                Across([Space(), Arrow(), Caption(stage.equation), box], widths=(88, 20, None, room), says="")
            )
        letters, lengths = f"[{','.join(stage.letters)}]", f"[{','.join(map(str, stage.lengths))}]"
        names = Caption(", ".join(stage.names))
        numbers = Caption(lengths, at="end")
        row = Across([names, _rectangle(stage), Caption(letters, bold=True, size=SIZE), numbers], widths=WIDTHS,
                  says=f"{', '.join(stage.names)} {letters} = {list(stage.lengths)}")  # fmt: skip
        lines.append(row)
    return Column(lines, gap=3, join=" → ")


def _rectangle(stage: Stage) -> Figure:
    """Return the last two axes, once for each result of the stage's first application; a dot for a single number."""
    fill = VIOLET if len(stage.letters) == 4 else BLUE
    lengths = [*stage.lengths]
    if not lengths:
        return Disc(radius=4, fill=fill, at="start")
    down = lengths[-2] * SCALE if len(lengths) > 2 else 4
    return Areas(lengths[-1] * SCALE, down, fill, 3 if stage.equation == "split_qkv" else 1, at="start")
