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
WIDTH, GAP = 400, 16  # a phone of 360 pixels scales the picture by nine tenths
SIZE, LINE = 13, 16  # of letters, and from one line of them to the next
SMALL, TINY = 12, 11  # of letters in cells and of remarks; of those on scales and bars
FONT = "system-ui, 'Segoe UI', 'Noto Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"
WIDE, NARROW = 1.0, 0.6  # of a Chinese and of a Latin letter, at most, as parts of its size

Point = tuple[float, float]


def text_width(words: str, size: float = SIZE) -> float:
    """Return the most pixels that a line of text takes."""
    return sum(WIDE if ord(letter) > 0x2E7F else NARROW for letter in words) * size


class Canvas:
    """SVG elements; `y` is the top of the next one, for pictures that are filled from top to bottom."""

    width = WIDTH

    def __init__(self, lang: str) -> None:
        self.y, self.lang = 0.0, lang
        self._elements: list[str] = []

    def heading(self, words: Said) -> None:
        """Write a bold line at the left, and move below it."""
        self.text(4, self.y + LINE, words, bold=True)
        self.y += LINE + 10

    def label(self, words: Said, remark: Said = "", left: float = 4, right: float = WIDTH - 4) -> None:
        """Write a bold line at the left with a remark at the right, and move below it."""
        self.text(left, self.y + 14, words, bold=True)
        self.text(right, self.y + 14, remark, at="end", size=SMALL)
        self.y += 22

    def text_lines(self, x: float, y: float, lines: Iterable[Said], apart: float, size: float = SIZE) -> None:
        """Write lines below each other, the first of which stands on y."""
        for i, words in enumerate(lines):
            self.text(x, y + i * apart, words, size=size)

    def swatch(self, x: float, y: float, words: Said, fill: str) -> None:
        """Write the meaning of a colour behind a square of it; the words stand on y."""
        self.box(x, y - 10, 12, 12, fill=fill)
        self.text(x + 18, y, words, size=SMALL)

    def text(
        self, x: float, y: float, words: Said, *, colour: str = GREY, at: str = "start", size: float = SIZE,
        bold: bool = False,
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
            ]
        )
        self.add(f'<text x="{_n(x)}" y="{_n(y)}" fill="{colour}"{styled}>{escape(line)}</text>')

    def box(
        self, x: float, y: float, width: float, height: float, words: Said = "", *, fill: str = "none",
        line: str = GREY, round_by: float = 4, dashed: bool = False, size: float = SIZE, bold: bool = False,
    ) -> None:  # fmt: skip
        """Draw a rectangle with a line of text in its middle: white on a colour, grey on none."""
        edge = f' stroke="{line}"{_dashes(dashed)}' if fill == "none" else ""
        self.add(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(round_by)}" '
            f'fill="{fill}"{edge}/>'
        )
        colour = GREY if fill == "none" else WHITE
        middle = y + height / 2 + size * 0.35
        self.text(x + width / 2, middle, words, colour=colour, at="middle", size=size, bold=bold)

    def frame(self, x: float, y: float, width: float, height: float, colour: str, thick: float) -> None:
        """Draw a thick rectangle around something."""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.add(f'<rect {place} rx="3" fill="none" stroke="{colour}" stroke-width="{_n(thick)}"/>')

    def line(self, points: Iterable[Point], *, colour: str = GREY, thick: float = 1, dashed: bool = False) -> None:
        """Draw straight lines from point to point."""
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        stroke = f'stroke="{colour}" stroke-width="{_n(thick)}"{_dashes(dashed)}'
        self.add(f'<polyline points="{path}" fill="none" {stroke}/>')

    def arrow(self, points: Sequence[Point], *, colour: str = GREY, thick: float = 1) -> None:
        """Draw lines that end in an arrow's head."""
        (ax, ay), (bx, by) = points[-2:]
        length = max(((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5, 1e-9)
        ux, uy = (bx - ax) / length, (by - ay) / length
        self.line([*points[:-1], (bx - 5 * ux, by - 5 * uy)], colour=colour, thick=thick)
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
        self, x: float, y: float, radius: float, words: str = "", *, line: str = GREY, thick: float = 1,
        dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a circle with a sign in its middle, such as + where two arrays are added."""
        wide = f' stroke-width="{_n(thick)}"' if thick != 1 else ""
        circle = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"'
        self.add(f'<circle {circle} fill="none" stroke="{line}"{wide}{_dashes(dashed)}/>')
        self.text(x, y + SIZE * 0.35, words, at="middle", bold=True)

    def matrix(
        self, x: float, y: float, rows: Sequence[Sequence[Said]], fill: str, *, cell: tuple[float, float],
        size: float = SMALL, dashed: bool = False,
    ) -> float:  # fmt: skip
        """Draw rows of numbers, white on a colour or grey on none; return the lower edge."""
        width, height = len(rows[0]) * cell[0], len(rows) * cell[1]
        self.box(x, y, width, height, fill=fill, dashed=dashed)
        colour = GREY if fill == "none" else WHITE
        for i, row in enumerate(rows):
            for j, words in enumerate(row):
                middle = y + i * cell[1] + cell[1] / 2 + size * 0.35
                self.text(x + (j + 0.5) * cell[0], middle, words, colour=colour, at="middle", size=size)
        return y + height

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
