"""`byhand port NUMBERS...`: whether a port of the model computes the page's numbers, or which mistake it makes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.cells import cell_len

from byhand.book.port.naming import FOUR, NAMES, NEAR, RIGHT, SHOWN, Diagnosis, Known, Printed, named, table
from byhand.book.words.language import COLON, PAGE, SEMICOLON, Language, Words, preferred
from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import show, show_json
from byhand.cli.terminal.shown import quoted
from byhand.errors import ByhandError

NOT_FINITE = re.compile(r"[-+]?(?:(nan)(?:\(\w*\))?|(inf)(?:inity)?)", re.IGNORECASE)  # as C libraries print them
SAID = {
    "page": Words(
        "The numbers of docs/guides/port{page} in float64. In float32 a right port differs by at most 1e-5 of each,"
        " by 1e-4 of the two with 800.",
        "docs/guides/port{page} 的数值（float64）。用 float32 时，正确的移植与它们的相对差不超过 1e-5；"
        "加 800 的两个不超过 1e-4。",
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
    "rounded": Words("Right as far as the digits go.", "在给出的位数内正确。"),
    "digits": Words("Too few digits: print at least 8 (in C, %.9g).", "位数太少：至少打印 8 位（C 里用 %.9g）。"),
    "next": Words("Next, print the {name}.", "接着打印：{name}。"),
    "up to": Words(" up to the {name}", "到{name}为止，"),
    "one": Words("Matches{up_to}: {mistake}", "{up_to}与此错误吻合：{mistake}"),
    "two": Words("Matches two mistakes together{up_to}:", "{up_to}与两个错误叠加吻合："),
    "several": Words("Matches {n} of the known mistakes{up_to}:", "{up_to}与 {n} 个已知错误吻合："),
    "several pairs": Words("Matches {n} pairs of mistakes{up_to}:", "{up_to}与 {n} 对错误吻合："),
    "more": Words("and {n} more", "还有 {n} 个"),
    "chance": Words("One number may match by chance.", "只凭一个数，可能是巧合。"),
    "none": Words("No known mistake leads to these numbers.", "已知的错误都得不出这些数。"),
    "nearest": Words("Nearest, {off} away: {mistake}", "最接近的（相对差 {off}）：{mistake}"),
}
RIGHT_SO_FAR = {
    1: Words("The forward pass is right. ", "前向计算正确。"),
    2: Words("Loss and gradient norm are right. ", "损失与梯度范数正确。"),
    3: Words("The first update is right. ", "第一次更新正确。"),
}
# What is unusual about a mistake that does not lead to the next number.
UNUSUAL = (
    Words("The {name} does not fit its usual backward pass. ", "{name}与它通常的反向计算不符。"),
    Words("The {name} does not fit its usual gradients and update. ", "{name}与它通常的梯度和更新不符。"),
    Words("The {name} does not follow from it. ", "{name}不能由它得出。"),
)
LOOK = (
    Words("Look at the weights, the tokens and the forward pass.", "请检查权重、词元与前向传播。"),
    Words("Look at the backward pass.", "请检查反向传播。"),
    Words(
        "Look at the update, then for a gradient in the wrong place.", "请检查参数更新，再看有没有放错位置的梯度。"
    ),
    Words(
        "Look at what lasts from step to step: moments, t, gradients to clear.",
        "请检查跨步保留的东西：矩、t、该清空的梯度。",
    ),
    Words("Look at the maximum in cross-entropy.", "请检查交叉熵有没有减去最大值。"),
    Words("Look at the maximum in attention's softmax.", "请检查注意力的 softmax 有没有减去最大值。"),
)


@dataclass(frozen=True)
class Options:
    """Check the numbers of your own port of the model of docs/guides/port.md: right, or which mistake they match.

    Without numbers, print the right ones. Exits with 1 if a number is wrong or has too few digits.
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
    """Print the answer; exit code 1 unless the numbers are right, with enough digits."""
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
    return 0 if answer.first is None and not answer.few_digits else 1


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
        key = "rounded" if answer.few_digits else "right" if len(answer.given) >= FOUR else "so far"
        yield _joined([SAID[key].said(lang), *_few_digits(answer, lang), following], lang)
        return
    if not answer.matches:
        yield from _nearest(answer, answer.first, lang)
    else:
        yield from _matches(answer, lang)
        if answer.by_chance:
            yield SAID["chance"].said(lang)
        if answer.fits < len(answer.given):
            wrong = answer.fits
            unusual = UNUSUAL[min(wrong, len(UNUSUAL)) - 1].said(lang, name=NAMES[wrong].said(lang))
            yield unusual + LOOK[wrong].said(lang)
    yield from _few_digits(answer, lang)
    if following:
        yield following


def _few_digits(answer: Diagnosis, lang: str) -> list[str]:
    return [SAID["digits"].said(lang)] if answer.few_digits else []


def _joined(sentences: Sequence[str], lang: str) -> str:
    return (" " if lang == "en" else "").join(filter(None, sentences))


def _matches(answer: Diagnosis, lang: str) -> Iterator[str]:
    found, two = answer.matches, len(answer.matches[0]) > 1
    last = NAMES[answer.fits - 1].said(lang)
    up_to = SAID["up to"].said(lang, name=last) if answer.fits < len(answer.given) else ""
    if len(found) == 1 and not two:
        yield SAID["one"].said(lang, up_to=up_to, mistake=_said(found[0][0], lang))
        return
    if len(found) == 1:
        yield SAID["two"].said(lang, up_to=up_to)
        yield from (f"  {_said(mistake, lang)}" for mistake in found[0])
        return
    yield SAID["several pairs" if two else "several"].said(lang, up_to=up_to, n=len(found))
    for mistakes in found[:SHOWN]:
        yield "  " + SEMICOLON.said(lang).join(_said(mistake, lang) for mistake in mistakes)
    if len(found) > SHOWN:
        yield "  " + SAID["more"].said(lang, n=len(found) - SHOWN)


def _nearest(answer: Diagnosis, first: int, lang: str) -> Iterator[str]:
    yield SAID["none"].said(lang)
    if answer.nearest and answer.off < NEAR:
        mistake = _said(answer.nearest, lang)
        yield SAID["nearest"].said(lang, off=f"{answer.off:.1e}", mistake=mistake)
    so_far = RIGHT_SO_FAR[first].said(lang) if first in RIGHT_SO_FAR else ""
    yield so_far + LOOK[first].said(lang)


def _said(mistake: Known, lang: str) -> str:
    return f"{mistake.where}{COLON.said(lang)}{mistake.said(lang)}"


def _padded(text: str) -> str:
    width = max(cell_len(words) for name in NAMES for words in (name.en, name.zh))
    return text + " " * (width - cell_len(text))


def _as_json(answer: Diagnosis) -> dict[str, Any]:
    """Return the answer as plain values; a number that is not finite is null."""
    known = answer.nearest if answer.off < NEAR else None
    return {
        "names": [name.en for name in NAMES[: len(answer.right)]],
        "right": answer.right,
        "given": [given.value if math.isfinite(given.value) else None for given in answer.given],
        "first_wrong": answer.first,
        "matches": [[_mistake(mistake) for mistake in mistakes] for mistakes in answer.matches],
        "fits": answer.fits,
        "nearest": known and _mistake(known) | {"off": answer.off},
        "next": answer.next,
        "few_digits": answer.few_digits,
    }


def _mistake(mistake: Known) -> dict[str, str]:
    return {"where": mistake.where, "en": mistake.en, "zh": mistake.zh}
