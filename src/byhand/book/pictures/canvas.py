"""The canvas that pictures are drawn on: SVG elements at numbers of pixels, from the same few shapes and colours.

The background is transparent, since pages may be light or dark: lines and words are grey, words on colour white.
Coordinates are rounded, so that every machine writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import escape

from byhand.book.words.language import Said, say

GREY = "#797979"  # equal contrast on white and on a dark page
COLOURS = ("#1f6fb2", "#b3471b", "#2e7d3e", "#7b4fb0")  # blue, rust, green, violet: white is readable on each
BLUE, RUST, GREEN, VIOLET = COLOURS  # in pictures of structure: values, gradients, parameters, tokens
WHITE = "#ffffff"
PALE, DEEP, DEEP_NEGATIVE = "#e6eef7", "#0f4f8f", "#9a3412"  # of the number 0, and of the largest
AMBER, INK = "#f5a300", "#000000"  # of frames; letters on pale colours
WIDTH, GAP = 400, 16  # a phone of 360 pixels scales the picture by nine tenths
SIZE, LINE = 13, 16  # of letters, and from one line of them to the next
SMALL, TINY = 12, 11  # of letters in cells and of remarks; of those on scales and bars
FAINT = 0.3  # opacity of the lines behind curves
FONT = "system-ui, 'Segoe UI', 'Noto Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"
MONOSPACE = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
WIDE, NARROW = 1.0, 0.6  # of a Chinese and of a Latin letter, at most, as parts of its size

Point = tuple[float, float]


def text_width(words: str, size: float = SIZE) -> float:
    """Return the maximum width of a line of text in pixels."""
    return sum(WIDE if ord(letter) > 0x2E7F else NARROW for letter in words) * size


def tint(part: float) -> str:
    """Return the colour of a number from -1 to 1: pale for 0 and NaN, deeper the larger, blue above, rust below."""
    deep, strength = DEEP if part >= 0 else DEEP_NEGATIVE, min(abs(part), 1.0) if part == part else 0.0
    mixed = (round(a + strength * (b - a)) for a, b in zip(_channels(PALE), _channels(deep), strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink(fill: str) -> str:
    """Return the letter colour that is most readable on another colour."""
    light = _luminance(fill)
    return WHITE if 1.05 / (light + 0.05) > (light + 0.05) / (_luminance(INK) + 0.05) else INK


def _luminance(colour: str) -> float:
    parts = (channel / 255 for channel in _channels(colour))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


class Canvas:
    """SVG elements down to `y`."""

    def __init__(self, lang: str) -> None:
        self.y, self.lang = 0.0, lang
        self._elements: list[str] = []

    def add(self, tag: str, inside: str = "", **attributes: Any) -> None:
        """Add an element, without the attributes that are None."""
        told = {name.replace("_", "-"): x for name, x in attributes.items() if x is not None}
        begin = f"<{tag}" + "".join(f' {n}="{x if isinstance(x, str) else _n(x)}"' for n, x in told.items())
        self._elements.append(f"{begin}>{inside}</{tag}>" if inside else f"{begin}/>")

    def text(
        self, x: float, y: float, words: Said, *, colour: str = GREY, at: str = "start", size: float = SIZE,
        bold: bool = False, mono: bool = False,
    ) -> None:  # fmt: skip
        """Write one line with its baseline at y; x is its `start`, `middle` or `end`. Empty words draw nothing."""
        if line := say(words, self.lang):
            self.add(
                "text", escape(line), x=x, y=y, fill=colour, text_anchor=at if at != "start" else None,
                font_size=size if size != SIZE else None, font_weight="600" if bold else None,
                font_family=MONOSPACE if mono else None,
            )  # fmt: skip

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: str = "none", line: str = GREY,
        round_by: float = 4, thick: float | None = None, dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a rectangle, filled or as an outline."""
        edge = _stroke(line, thick, dashed) if fill == "none" else {}
        self.add("rect", x=x, y=y, width=width, height=height, rx=round_by, fill=fill, **edge)

    def line(
        self, points: Iterable[Point], *, colour: str = GREY, thick: float = 1, dashed: bool = False,
        opacity: float | None = None,
    ) -> None:  # fmt: skip
        """Draw straight lines from point to point."""
        self.add(
            "polyline", points=_path(points), fill="none", **_stroke(colour, thick, dashed), stroke_opacity=opacity
        )

    def arrow(self, points: Sequence[Point], *, colour: str = GREY, thick: float = 1, dashed: bool = False) -> None:
        """Draw lines that end in an arrowhead."""
        (ax, ay), (bx, by) = points[-2:]
        length = max(((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5, 1e-9)
        ux, uy = (bx - ax) / length, (by - ay) / length
        self.line([*points[:-1], (bx - 5 * ux, by - 5 * uy)], colour=colour, thick=thick, dashed=dashed)
        back_x, back_y = bx - 8 * ux, by - 8 * uy
        self.area([(bx, by), (back_x + 4 * uy, back_y - 4 * ux), (back_x - 4 * uy, back_y + 4 * ux)], colour)

    def area(self, points: Iterable[Point], fill: str) -> None:
        """Fill the area between points."""
        self.add("polygon", points=_path(points), fill=fill)

    def dot(self, x: float, y: float, radius: float, fill: str, opacity: float | None = None) -> None:
        """Draw a filled circle."""
        self.add("circle", cx=x, cy=y, r=radius, fill=fill, fill_opacity=opacity)

    def ring(self, x: float, y: float, radius: float, colour: str) -> None:
        """Draw a dashed circle."""
        self.add("circle", cx=x, cy=y, r=radius, fill="none", **_stroke(colour, 1.5, dashed=True))

    def crossed(self, x: float, y: float, wide: float, high: float) -> None:
        """Draw a cell that a mask hides: hatched, without a background."""
        self.box(x + 1, y + 1, wide - 2, high - 2, round_by=2)
        for part in range(1, 6):
            reach = part * (wide + high - 4) / 6
            right, up = min(reach, wide - 2), min(reach, high - 2)
            left, down = reach - up, reach - right
            self.line([(x + 1 + left, y + high - 1 - up), (x + 1 + right, y + high - 1 - down)], thick=0.6)

    def put(self, other: Canvas, x: float, y: float) -> None:
        """Add the whole of another canvas with its corner at x and y."""
        self.add("g", "\n" + "\n".join(other._elements) + "\n", transform=f"translate({_n(x)} {_n(y)})")

    def svg(self, title: Said) -> str:
        """Return the picture, down to `y`."""
        body = "\n".join(self._elements)
        size = f'width="{WIDTH}" height="{_n(self.y)}" viewBox="0 0 {WIDTH} {_n(self.y)}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" font-size="{SIZE}">\n'
            f"<title>{escape(say(title, self.lang))}</title>\n{body}\n</svg>\n"
        )


def _n(number: float) -> str:
    return f"{round(number, 1) + 0.0:g}"


def _path(points: Iterable[Point]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _stroke(colour: str, thick: float | None, dashed: bool) -> dict[str, Any]:
    return {"stroke": colour, "stroke_width": thick, "stroke_dasharray": "4 3" if dashed else None}
