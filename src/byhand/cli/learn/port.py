"""`byhand port NUMBERS...`: whether a port of the model computes the page's numbers, or which mistake it makes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.cells import cell_len

from byhand.book.port.naming import FOUR, NAMES, RIGHT, SHOWN, Diagnosis, Known, Printed, named, table
from byhand.book.words.language import COLON, PAGE, SEMICOLON, Language, Words, preferred
from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import show, show_json
from byhand.cli.terminal.shown import quoted
from byhand.errors import ByhandError

NOT_FINITE = re.compile(r"[-+]?(?:(nan)(?:\(\w*\))?|(inf)(?:inity)?)", re.IGNORECASE)  # as C libraries print them
SAID = {
    "page": Words(
        "The numbers of docs/guides/port{page} in float64. A right port in float32 differs by at most 1e-5 of each.",
        "docs/guides/port{page} 的数值（float64）。用 float32 时，正确的移植与它们的相对差不超过 1e-5。",
    ),
    "then": Words(
        "Print them from your port, then run: byhand port {numbers}",
        "让你的程序打印它们，再运行：byhand port {numbers}",
    ),
    "agrees": Words("right", "正确"),
    "off": Words("off by {off}: it is {right}", "相对差 {off}：应为 {right}"),
    "not finite": Words("not finite: it is {right}", "不是有限数：应为 {right}"),
    "right": Words("Right.", "正确。"),
    "so far": Words("Right so far.", "到目前为止正确。"),
    "next": Words("Next, print the {name}.", "接着打印：{name}。"),
    "one": Words("Matches: {mistake}", "与此错误吻合：{mistake}"),
    "two": Words("Matches two mistakes together:", "与两个错误叠加吻合："),
    "several": Words("Matches {n} of the known mistakes:", "与 {n} 个已知错误吻合："),
    "several pairs": Words("Matches {n} pairs of mistakes:", "与 {n} 对错误吻合："),
    "more": Words("and {n} more", "还有 {n} 个"),
    "none": Words("No known mistake leads to these numbers.", "已知的错误都得不出这些数。"),
    "nearest": Words("Nearest, {off} away: {mistake}", "最接近的（相对差 {off}）：{mistake}"),
}
LOOK = (
    Words("Look at the weights, the tokens and the forward pass.", "请检查权重、词元与前向传播。"),
    Words("The forward pass is right. Look at the backward pass.", "前向传播正确。请检查反向传播。"),
    Words(
        "Loss and gradient norm are right. Look at the update, then for a gradient in the wrong place.",
        "损失与梯度范数正确。请检查参数更新，再看有没有放错位置的梯度。",
    ),
    Words(
        "The first update is right. Look at what lasts from step to step: moments, t, gradients to clear.",
        "第一次更新正确。请检查跨步保留的东西：矩、t、该清空的梯度。",
    ),
    Words("Look at the maximum in cross-entropy.", "请检查交叉熵有没有减去最大值。"),
    Words("Look at the maximum in attention's softmax.", "请检查注意力的 softmax 有没有减去最大值。"),
)


@dataclass(frozen=True)
class Options:
    """Check the numbers of your own port of the model of docs/guides/port.md: right, or which mistake they match.

    Without numbers, print the right ones. Exits with 1 if a number is wrong.
    """

    numbers: Positional[tuple[str, ...]] = ()
    """In this order: loss, gradient norm, loss after one update and after two; the first loss with 800 added to the
    head's bias, and to the keys' biases."""
    model: Literal["gpt", "llama", "microgpt"] = "gpt"
    """The page's first model, or another. llama: RMSNorm, RoPE, shared key-value heads, SwiGLU, a tied head.
    microgpt: RMSNorm behind the embeddings and none at the end, no biases, ReLU, a falling learning rate."""
    lang: Language | None = None
    """Language; if not given, from LANG."""
    json: Switch = False
    """Print JSON."""


def main(arguments: list[str]) -> int:
    """Print the answer; exit code 1 if a number is wrong."""
    options = parse(Options, list(map(_plain, arguments)), "byhand port")
    lang = options.lang or preferred()
    known = table(options.model)
    if len(options.numbers) > len(known.right):
        raise ByhandError(f"there are {len(options.numbers)} numbers. Give at most {len(known.right)}.")
    answer = named([_read(word) for word in options.numbers], known)
    if options.json:
        show_json(_as_json(answer), indent=1)
    elif not options.numbers:
        show("\n".join(_right(known.right, options.model, lang)))
    else:
        show("\n".join(_lines(answer, lang)))
    return 0 if answer.first is None else 1


def _plain(word: str) -> str:
    """Return a number that is not finite without its sign, which would make a flag of it."""
    found = NOT_FINITE.fullmatch(word.rstrip(","))
    return next(filter(None, found.groups())).lower() if found else word


def _read(word: str) -> Printed:
    try:
        return Printed.of(word.rstrip(","))
    except (ValueError, OverflowError):
        raise ByhandError(
            f"{quoted(word)} is not a number. Give what your port prints, such as 3.92195838."
        ) from None


def _right(right: Sequence[float], model: str, lang: str) -> Iterator[str]:
    yield SAID["page"].said(lang, page=PAGE.said(lang))
    for name, number in zip(NAMES, right, strict=False):
        yield f"  {_padded(name.said(lang))}  {number:.9g}"
    other = "" if model == "gpt" else f"--model {model} "
    yield SAID["then"].said(lang, numbers=other + " ".join(f"{number:.9g}" for number in right[:FOUR]))


def _lines(answer: Diagnosis, lang: str) -> Iterator[str]:
    for name, given, right, within in zip(NAMES, answer.given, answer.right, RIGHT, strict=False):
        key = "agrees" if given.agrees(right, within) else "off" if math.isfinite(given.value) else "not finite"
        said = SAID[key].said(lang, off=f"{given.off(right):.1e}", right=f"{right:.9g}")
        yield f"  {_padded(name.said(lang))}  {given.value:<12.9g}  {said}"
    following = SAID["next"].said(lang, name=NAMES[answer.next].said(lang)) if answer.next is not None else ""
    if answer.first is None:
        said = SAID["right" if len(answer.given) >= FOUR else "so far"].said(lang)
        yield f"{said} {following}".rstrip() if lang == "en" else said + following
        return
    yield from _matches(answer, lang) if answer.matches else _nearest(answer, answer.first, lang)
    if following:
        yield following


def _matches(answer: Diagnosis, lang: str) -> Iterator[str]:
    found, two = answer.matches, len(answer.matches[0]) > 1
    if len(found) == 1 and not two:
        yield SAID["one"].said(lang, mistake=_said(found[0][0], lang))
        return
    if len(found) == 1:
        yield SAID["two"].said(lang)
        yield from (f"  {_said(mistake, lang)}" for mistake in found[0])
        return
    yield SAID["several pairs" if two else "several"].said(lang, n=len(found))
    for mistakes in found[:SHOWN]:
        yield "  " + SEMICOLON.said(lang).join(_said(mistake, lang) for mistake in mistakes)
    if len(found) > SHOWN:
        yield "  " + SAID["more"].said(lang, n=len(found) - SHOWN)


def _nearest(answer: Diagnosis, first: int, lang: str) -> Iterator[str]:
    yield SAID["none"].said(lang)
    if answer.nearest and answer.off < 1:
        mistake = _said(answer.nearest, lang)
        yield SAID["nearest"].said(lang, off=f"{answer.off:.1e}", mistake=mistake)
    yield LOOK[first].said(lang)


def _said(mistake: Known, lang: str) -> str:
    return f"{mistake.where}{COLON.said(lang)}{mistake.said(lang)}"


def _padded(text: str) -> str:
    width = max(cell_len(words) for name in NAMES for words in (name.en, name.zh))
    return text + " " * (width - cell_len(text))


def _as_json(answer: Diagnosis) -> dict[str, Any]:
    """Return the answer as plain values; a number that is not finite is null."""
    known = answer.nearest if answer.first is not None and not answer.matches and answer.off < 1 else None
    return {
        "names": [name.en for name in NAMES[: len(answer.right)]],
        "right": answer.right,
        "given": [given.value if math.isfinite(given.value) else None for given in answer.given],
        "first_wrong": answer.first,
        "matches": [[_mistake(mistake) for mistake in mistakes] for mistakes in answer.matches],
        "nearest": known and _mistake(known) | {"off": answer.off},
        "next": answer.next,
    }


def _mistake(mistake: Known) -> dict[str, str]:
    return {"where": mistake.where, "en": mistake.en, "zh": mistake.zh}
