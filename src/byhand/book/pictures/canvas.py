"""The canvas that pictures are drawn on: SVG elements at numbers of pixels, from the same few shapes and colours.

The background is transparent, since pages may be light or dark: lines and words are grey, words on colour white.
Coordinates are rounded, so that every machine writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from byhand.book.words.language import Said, say

GREY = "#797979"  # equal contrast on white and on a dark page
COLOURS = ("#1f6fb2", "#b3471b", "#2e7d3e", "#7b4fb0")  # blue, rust, green, violet: white on each can be read
BLUE, RUST, GREEN, VIOLET = COLOURS  # in pictures of structure: values, gradients, parameters, tokens
WHITE = "#ffffff"
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
    """Return the most pixels that a line of text takes."""
    return sum(WIDE if ord(letter) > 0x2E7F else NARROW for letter in words) * size


class Canvas:
    """SVG elements down to `y`."""

    width = WIDTH

    def __init__(self, lang: str) -> None:
        self.y, self.lang = 0.0, lang
        self._elements: list[str] = []

    def text(
        self, x: float, y: float, words: Said, *, colour: str = GREY, at: str = "start", size: float = SIZE,
        bold: bool = False, mono: bool = False,
    ) -> None:  # fmt: skip
        """Write one line whose letters stand on y; x is its `start`, `middle` or `end`. Empty words draw nothing."""
        line = say(words, self.lang)
        if not line:
            return
        styled = "".join(
            [
                f' text-anchor="{at}"' if at != "start" else "",
                f' font-size="{_n(size)}"' if size != SIZE else "",
                ' font-weight="600"' if bold else "",
                f' font-family="{MONOSPACE}"' if mono else "",
            ]
        )
        self.add(f'<text x="{_n(x)}" y="{_n(y)}" fill="{colour}"{styled}>{escape(line)}</text>')

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: str = "none", line: str = GREY,
        round_by: float = 4, dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a rectangle, filled or as an outline."""
        edge = f' stroke="{line}"{_dashes(dashed)}' if fill == "none" else ""
        self.add(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(round_by)}" '
            f'fill="{fill}"{edge}/>'
        )

    def frame(self, x: float, y: float, width: float, height: float, colour: str, thick: float) -> None:
        """Draw a thick rectangle around something."""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.add(f'<rect {place} rx="3" fill="none" stroke="{colour}" stroke-width="{_n(thick)}"/>')

    def line(self, points: Iterable[Point], *, colour: str = GREY, thick: float = 1, dashed: bool = False) -> None:
        """Draw straight lines from point to point."""
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        stroke = f'stroke="{colour}" stroke-width="{_n(thick)}"{_dashes(dashed)}'
        self.add(f'<polyline points="{path}" fill="none" {stroke}/>')

    def faint(self, start: Point, end: Point) -> None:
        """Draw a line that stays behind the others."""
        place = " ".join(f'{k}="{_n(v)}"' for k, v in zip(("x1", "y1", "x2", "y2"), (*start, *end), strict=True))
        self.add(f'<line {place} stroke="{GREY}" stroke-opacity="{FAINT}"/>')

    def arrow(
        self, points: Sequence[Point], *, colour: str = GREY, thick: float = 1, dashed: bool = False
    ) -> None:  # fmt: skip
        """Draw lines that end in an arrow's head."""
        (ax, ay), (bx, by) = points[-2:]
        length = max(((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5, 1e-9)
        ux, uy = (bx - ax) / length, (by - ay) / length
        self.line([*points[:-1], (bx - 5 * ux, by - 5 * uy)], colour=colour, thick=thick, dashed=dashed)
        back_x, back_y = bx - 8 * ux, by - 8 * uy
        self.area([(bx, by), (back_x + 4 * uy, back_y - 4 * ux), (back_x - 4 * uy, back_y + 4 * ux)], colour)

    def area(self, points: Iterable[Point], fill: str) -> None:
        """Fill the area between points."""
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        self.add(f'<polygon points="{path}" fill="{fill}"/>')

    def dot(self, x: float, y: float, radius: float, fill: str, opacity: float = 1) -> None:
        """Draw a filled circle."""
        seen = f' fill-opacity="{_n(opacity)}"' if opacity != 1 else ""
        self.add(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{fill}"{seen}/>')

    def ring(
        self, x: float, y: float, radius: float, *, line: str = GREY, thick: float = 1, dashed: bool = False
    ) -> None:
        """Draw a circle."""
        wide = f' stroke-width="{_n(thick)}"' if thick != 1 else ""
        circle = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"'
        self.add(f'<circle {circle} fill="none" stroke="{line}"{wide}{_dashes(dashed)}/>')

    def add(self, element: str) -> None:
        """Add an element as it is written."""
        self._elements.append(element)

    def put(self, other: Canvas, x: float, y: float) -> None:
        """Add the whole of another canvas with its corner at x and y."""
        self.add(f'<g transform="translate({_n(x)} {_n(y)})">\n' + "\n".join(other._elements) + "\n</g>")

    def svg(self, title: Said) -> str:
        """Return the picture, down to `y`."""
        body = "\n".join(self._elements)
        size = f'width="{_n(self.width)}" height="{_n(self.y)}" viewBox="0 0 {_n(self.width)} {_n(self.y)}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" font-size="{SIZE}">\n'
            f"<title>{escape(say(title, self.lang))}</title>\n{body}\n</svg>\n"
        )


def _n(number: float) -> str:
    return f"{round(number, 1) + 0.0:g}"


def _dashes(dashed: bool) -> str:
    return ' stroke-dasharray="4 3"' if dashed else ""
