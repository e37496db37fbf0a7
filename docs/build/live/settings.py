"""Settings of lessons that a page moves by a slider or a switch: how each is called, and how far it goes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from byhand.book.words.language import Words

LARGEST = 1_000_000  # that a reader may write, as on the command line


@dataclass(frozen=True)
class Slider:
    """How a single given number is moved: what it is, its letter, the lowest and highest number, and the step.

    is_bound  whether only the slider's numbers, and those between its steps, have a meaning
    """

    words: Words
    letter: str = ""
    low: float = 0
    high: float = 1
    step: float = 1
    is_bound: bool = True


SETTINGS = {
    "tau": Slider(Words("temperature", "温度"), "τ", 0.1, 5, 0.1),
    "k": Slider(Words("tokens kept", "保留个数"), "k", 1, 0),
    "u": Slider(Words("random number", "随机数"), "u", 0, 0.99, 0.01),
}
"""By name as a static setting of an equation, or in an answer; the highest k is the length of the row."""
RATE = Slider(Words("learning rate", "学习率"), is_bound=False)
RATES = ("lr", "−rate")
SWITCHES = {"causal": Words("causal mask", "因果掩码")}
"""Choices between two forms of a lesson's arithmetic, by name in its `CHOICES`."""


def slider(name: str, value: float, length: int = 0) -> Slider | None:
    """Return the slider of this name; a rate goes to ten times its own `value`, a k to the row's `length`."""
    if name in RATES:
        return replace(RATE, high=round(10 * abs(value), 12), step=round(abs(value) / 10, 12))
    found = SETTINGS.get(name)
    return found if found is None or found.high else replace(found, high=length)
