"""`byhand break NAME`: what a mistake of the catalogue does to training, or all of them by effect."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from byhand.book.practice.effects import KINDS, PER_POINT, Curve, Effect, chance, effects, named
from byhand.book.practice.planting import changed
from byhand.book.words.language import COLON, Language, Words, preferred
from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import show, show_json

SAID = {
    "list": Words(
        "{n} mistakes, by what training shows, and how far the loss of text not trained on is above the right one's. "
        "One of them: byhand break NAME",
        "{n} 个错误，按训练中的表现排列。数字是验证损失比正确程序高多少。看其中一个：byhand break 名称",
    ),
    "right line": Words("right:", "正确："),
    "wrong line": Words("wrong:", "错误："),
    "right": Words("right", "正确"),
    "wrong": Words("wrong", "错误"),
    "both": Words("right {right}, wrong {wrong}", "正确 {right}，错误 {wrong}"),
    "step": Words("step", "步"),
    "loss": Words("loss, by step", "各步的损失"),
    "first": Words("first loss", "首个损失"),
    "own": Words("text not trained on", "验证集"),
    "honest": Words("the same weights in a right program", "同样的权重放进正确的程序"),
    "chance": Words("ln V = {chance:.2f}: all tokens equally likely", "ln V = {chance:.2f}：所有词元概率相等"),
    "worse": Words(" (by {by:+.2f})", "（{by:+.2f}）"),
    "none": Words("not finite", "不是有限数"),
}


@dataclass(frozen=True)
class Options:
    """Show what a mistake does: its code, the loss of a small model trained with it, and what one sees of it.

    Without a name, list the mistakes of the catalogue, the worst first.
    """

    name: Positional[str] = ""
    """A mistake, such as causal_softmax.no_mask or no_mask; an equation, such as layer_norm; or wiring."""
    lang: Language | None = None
    """Language; if not given, from LANG."""
    json: Switch = False
    """Print JSON."""


def main(arguments: list[str]) -> int:
    """Print the mistakes that a name means."""
    options = parse(Options, arguments, "byhand break")
    lang = options.lang or preferred()
    found = named(options.name) if options.name else effects()
    if options.json:
        show_json([_as_json(effect) for effect in found], indent=1)
    elif len(found) == 1:
        show("\n".join(_one(found[0], lang)))
    else:
        show("\n".join(_list(found, lang)))
    return 0


def _list(found: Sequence[Effect], lang: str) -> Iterator[str]:
    yield SAID["list"].said(lang, n=len(found))
    width, kind = max(len(effect.mistake.name) for effect in found), ""
    for effect in found:
        if effect.kind != kind:
            kind = effect.kind
            yield f"\n{KINDS[kind].said(lang)}"
        yield f"  {effect.mistake.name:<{width}}  {effect.by:>6}  {effect.mistake.said(lang)}"


def _one(effect: Effect, lang: str) -> Iterator[str]:
    mistake = effect.mistake
    yield f"{mistake.name}{COLON.said(lang)}{mistake.said(lang)}"
    yield f"  {mistake.where}"
    for key, lines in zip(("right line", "wrong line"), changed(mistake), strict=True):
        yield from (f"  {SAID[key].said(lang)} {line.strip()}" for line in lines)
    if effect.curve and effect.without:
        yield ""
        yield from (_plot if sys.stdout.isatty() else _columns)(effect.without, effect.curve, lang)
        yield ""
        for key, of in (("first", "first"), ("own", "own"), ("honest", "right")):
            right, wrong = (_number(getattr(curve, of), lang) for curve in (effect.without, effect.curve))
            yield SAID[key].said(lang) + COLON.said(lang) + SAID["both"].said(lang, right=right, wrong=wrong)
        yield SAID["chance"].said(lang, chance=chance())
    worse = effect.kind == "worse" and effect.worse is not None
    yield KINDS[effect.kind].said(lang) + (SAID["worse"].said(lang, by=effect.worse) if worse else "")


def _columns(right: Curve, wrong: Curve, lang: str) -> Iterator[str]:
    heads = [SAID[key].said(lang) for key in ("step", "right", "wrong")]
    yield "\t".join(heads)
    for i, both in enumerate(zip(right.losses, wrong.losses, strict=True), 1):
        yield "\t".join([str(i * PER_POINT), *(_number(loss, lang) for loss in both)])


def _plot(right: Curve, wrong: Curve, lang: str) -> Iterator[str]:
    from byhand.cli.terminal.text_plot import plot_to_string

    limit = 2 * (right.first or 0)  # a loss that diverges leaves the picture
    curves = [
        [(i * PER_POINT, loss) for i, loss in enumerate(c.losses, 1) if loss is not None and loss <= limit]
        for c in (right, wrong)
    ]
    shown = [(curve, SAID[key].said(lang)) for curve, key in zip(curves, ("right", "wrong"), strict=True) if curve]
    yield from plot_to_string(
        xs=[[x for x, _ in curve] for curve, _ in shown],
        ys=[[y for _, y in curve] for curve, _ in shown],
        lines=[name == SAID["right"].said(lang) for _, name in shown],
        character_set="ascii",
        force_ascii_characters=["+", "o"],
        width=60,
        height=14,
        title=SAID["loss"].said(lang),
        legend_labels=[name for _, name in shown],
        color=False,
    ).splitlines()


def _number(loss: float | None, lang: str) -> str:
    return SAID["none"].said(lang) if loss is None else f"{loss:.3f}" if abs(loss) < 1e5 else f"{loss:.1e}"


def _as_json(effect: Effect) -> dict[str, Any]:
    """Return a mistake as plain values; a loss that is not finite is null."""
    mistake, row = effect.mistake, {"name": effect.mistake.name, "en": effect.mistake.en, "zh": effect.mistake.zh}
    row |= {"where": mistake.where, "right": mistake.old, "wrong": mistake.new, "effect": effect.kind}
    if effect.curve and effect.without:
        row |= {"model": effect.model, "worse": effect.worse, "steps_per_point": PER_POINT}
        row |= {key: _curve(curve) for key, curve in (("curve", effect.curve), ("right_curve", effect.without))}
    return row


def _curve(curve: Curve) -> dict[str, Any]:
    return {"first": curve.first, "losses": curve.losses, "validation": curve.own, "in_a_right_program": curve.right}
