"""The shapes of a pass: each array as a rectangle as wide and as high as its last two axes are long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from textwrap import wrap

from byhand.book.pictures.canvas import BLUE, GREEN, SMALL, VIOLET, Canvas, text_width
from byhand.book.pictures.passes import BLOCK, pass_through
from byhand.book.pictures.picture import picture
from byhand.book.words.language import Words
from byhand.config import ModelConfig, TrainConfig
from byhand.tracing.tracer import Application

DISTINCT = ModelConfig(vocab_size=101, seq_len=7, d_model=22, n_heads=2)  # no two axes of one length
BATCH, LENGTH = 5, 7
LETTERS = {5: "B", 7: "T", 22: "C", 66: "3C", 2: "H", 11: "D", 88: "4C", 101: "V"}
SCALE = 0.32  # pixels for one element of an axis
PLACE, SHAPE = 100, 214


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


def in_words(lang: str) -> str:
    """Say the shapes in order."""
    way = " → ".join(f"{', '.join(s.names)} [{','.join(s.letters)}] = {list(s.lengths)}" for s in stages())
    return Words("The shapes of a batch on its way through the model: ", "一个批次的形状变化：").said(lang) + way


@picture(Words("The shapes of a batch on its way through the model", "一个批次的形状变化"), in_words)
def shapes(canvas: Canvas) -> None:
    """A rectangle for each stage, and between two of them the equation that leads from one to the next."""
    canvas.text(4, 14, Words("Array", "数组"), bold=True)
    canvas.text(PLACE, 14, Words("last two axes", "最后两轴"), bold=True)
    canvas.text(SHAPE, 14, Words("shape", "形状"), bold=True)
    canvas.y = 26
    for stage in stages():
        if stage.equation:
            _step(canvas, stage)
        lines = wrap(", ".join(stage.names), 13)
        height = max((stage.lengths[-2] if len(stage.lengths) > 1 else 1) * SCALE, 12, 15 * len(lines))
        for i, names in enumerate(lines):
            canvas.text(4, canvas.y + height / 2 + 4 + 15 * (i - (len(lines) - 1) / 2), names, size=SMALL)
        _rectangle(canvas, stage, height)
        middle = canvas.y + height / 2 + 4
        canvas.text(SHAPE, middle, f"[{','.join(stage.letters)}]", bold=True)
        canvas.text(396, middle, f"[{','.join(map(str, stage.lengths))}]", at="end", size=SMALL)
        canvas.y += height + 2
    canvas.y += 6


def _step(canvas: Canvas, stage: Stage) -> None:
    """Write the equation that makes the stage, at an arrow down."""
    x = PLACE + 10
    canvas.arrow([(x, canvas.y + 2), (x, canvas.y + 18)])
    canvas.text(x + 14, canvas.y + 14, stage.equation, size=SMALL)
    if stage.weights:
        width = text_width(stage.weights[0], SMALL) + 4
        canvas.box(396 - width, canvas.y + 1, width, 17, stage.weights[0], fill=GREEN, size=SMALL)
    canvas.y += 22


def _rectangle(canvas: Canvas, stage: Stage, height: float) -> None:
    """Draw the last two axes, once for each result of the stage's first application; a dot for a single number."""
    count = 3 if stage.equation == "split_qkv" else 1
    fill = VIOLET if len(stage.letters) == 4 else BLUE
    if not stage.lengths:
        canvas.dot(PLACE + 10, canvas.y + height / 2, 4, fill)
        return
    across = stage.lengths[-1] * SCALE
    down = stage.lengths[-2] * SCALE if len(stage.lengths) > 2 else 4
    for i in range(count):
        canvas.box(PLACE + i * (across + 5), canvas.y + (height - down) / 2, across, down, fill=fill, round_by=1)
