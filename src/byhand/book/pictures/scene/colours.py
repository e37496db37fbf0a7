"""Colours of numbers: pale for 0, deeper the larger, blue above and rust below."""

from __future__ import annotations

from byhand.book.pictures.canvas import INK, WHITE

PALE, DEEP, DEEP_NEGATIVE = "#e6eef7", "#0f4f8f", "#9a3412"


def tint(part: float) -> str:
    """Return the colour of a number between -1 and 1, and for NaN that of 0."""
    deep, strength = DEEP if part >= 0 else DEEP_NEGATIVE, min(abs(part), 1.0) if part == part else 0.0
    mixed = (round(a + strength * (b - a)) for a, b in zip(_channels(PALE), _channels(deep), strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink(fill: str) -> str:
    """Return the colour of letters that is read best on another colour."""
    light = _luminance(fill)
    return WHITE if 1.05 / (light + 0.05) > (light + 0.05) / (_luminance(INK) + 0.05) else INK


def _luminance(colour: str) -> float:
    def linear(channel: int) -> float:
        part = channel / 255
        return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
