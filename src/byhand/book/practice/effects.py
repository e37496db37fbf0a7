"""What a mistake does to training: the curves that `docs/build/breaking.py` computed, and what one sees of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from byhand.book.practice.catalogue import Planted, catalogue
from byhand.book.words.language import Words
from byhand.errors import ByhandError, suggestion

CURVES = Path(__file__).with_name("curves.json")
PER_POINT = 8  # losses averaged in each point of a curve
SAME, NOISE = 1e-3, 0.1  # of a loss: what differs less is the same run; what differs less is luck, as of seeds
OFF, STUCK, FAR = 0.3, 0.15, 1.2  # of the first loss; of the way from chance to right; times the first loss

KINDS = {
    "diverges": Words("diverges", "发散"),
    "stuck": Words("stuck near ln V", "停在 ln V 附近"),
    "worse": Words("learns, but worse", "能学，但更差"),
    "low": Words("loss too low: it sees what it must predict", "损失过低：看到了要预测的词元"),
    "off": Words("a wrong number: the first loss is not ln V", "数值不对：首个损失不是 ln V"),
    "as well": Words("learns as well: the loss does not show it", "学得一样好：损失看不出来"),
    "same": Words("the same run: the loss cannot show it", "训练完全相同：损失不可能看出来"),
    "none": Words(
        "not in this training: it changes only the generator's weights and tokens",
        "这次训练不涉及：它只改变生成器给出的权重与词元",
    ),
}
"""What one sees, the worst first."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A small model's training.

    first   the loss before the first update
    losses  means of `PER_POINT` losses each; None where one is not finite
    own     the loss of text not trained on, as the program computes it; `right` as a right program does with its weights
    """

    first: float | None
    losses: tuple[float | None, ...]
    own: float | None
    right: float | None


@dataclass(frozen=True, slots=True)
class Effect:
    """A mistake, the model that it was trained in, its curve and that without it.

    kind   one of `KINDS`
    worse  its loss of text not trained on less the right one; that of a right program with its weights if it is "off"
    """

    mistake: Planted
    kind: str
    model: str = ""
    curve: Curve | None = None
    without: Curve | None = None
    worse: float | None = None

    @property
    def by(self) -> str:
        """The difference as people read it; nothing if a loss is not finite, or none was trained."""
        return "" if self.worse is None else f"{self.worse:+.2f}" if abs(self.worse) < 100 else "> 100"

    @property
    def rank(self) -> tuple[int, float]:
        """The place in a list by effect."""
        return [*KINDS].index(self.kind), -(self.worse if self.worse is not None else 0.0)


@cache
def _says() -> dict[str, Any]:
    return json.loads(CURVES.read_text(encoding="utf-8"))


def chance() -> float:
    """Return ln V, the loss of equal probabilities."""
    return _says()["chance"]


def named(name: str) -> tuple[Effect, ...]:
    """Return the mistakes that a name means: "layer_norm.no_gain", "no_gain", or all of "layer_norm"."""
    wanted = name.strip().lower().replace("-", "_").replace("/", ".")
    parts = {effect: effect.mistake.name.partition(".") for effect in effects()}
    if found := tuple(e for e, (of, _, own) in parts.items() if wanted in (of, own, e.mistake.name)):
        return found
    known = {word for of, _, own in parts.values() for word in (of, own, f"{of}.{own}")}
    raise ByhandError(f"no mistake is called {name[:60]!r}. {suggestion(wanted, known)} List them: byhand break")


@cache
def effects() -> tuple[Effect, ...]:
    """Return what each mistake of the catalogue does, the worst first."""
    says, found = _says(), []
    for mistake in catalogue():
        row = says["mistakes"][mistake.name]
        if "model" not in row:
            found.append(Effect(mistake, "none"))
            continue
        right = says["right"][row["model"]]
        mine, other = _curve(row), _curve(right)
        noise = max(NOISE, max(right["seeds"]) - min(right["seeds"]))
        kind = kind_of(mine, other, (says["floor"], says["chance"]), noise)
        loss = mine.right if kind == "off" else mine.own
        worse = None if loss is None or other.own is None else loss - other.own
        found.append(Effect(mistake, kind, row["model"], mine, other, worse))
    return tuple(sorted(found, key=lambda effect: effect.rank))


def kind_of(mine: Curve, right: Curve, bounds: tuple[float, float], noise: float) -> str:
    """Return what one sees of a curve.

    bounds  the loss of a perfect model, and that of equal probabilities
    noise   what seeds alone change
    """
    floor, chance = bounds
    assert right.own is not None
    assert right.first is not None
    if mine.own is None or mine.first is None or None in mine.losses:
        return "diverges"
    pairs = zip((*mine.losses, mine.own, mine.right), (*right.losses, right.own, right.right), strict=True)
    if all(a is not None and b is not None and abs(a - b) < SAME for a, b in pairs):
        return "same"
    if abs(mine.first - right.first) > OFF * right.first:
        return "off"
    if mine.own > FAR * max(mine.first, chance):
        return "diverges"
    if mine.own > chance - STUCK * (chance - right.own):
        return "stuck"
    if mine.own < floor - SAME:
        return "low"
    return "worse" if mine.own > right.own + noise else "as well"


def _curve(row: dict[str, object]) -> Curve:
    return Curve(row["first"], tuple(row["losses"]), row["own"], row["right"])  # pyright: ignore[reportArgumentType]
