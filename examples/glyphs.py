"""Digits and letters drawn with 5 x 7 dots, and noisy copies of them: the data that `classifier.py` learns from.

A picture is a glyph somewhere in a frame of 9 x 7 pixels, with some pixels flipped, as one row of 63 numbers: 1 for a
lit pixel, 0 for a dark one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HEIGHT, WIDTH = 9, 7  # of the frame: one pixel of room on each side of a glyph
PIXELS = HEIGHT * WIDTH

DIGITS = """
.###.  ..#..  .###.  .###.  ...#.  #####  .###.  #####  .###.  .###.
#...#  .##..  #...#  #...#  ..##.  #....  #....  ....#  #...#  #...#
#...#  ..#..  ....#  ....#  .#.#.  ####.  #....  ...#.  #...#  #...#
#...#  ..#..  ..##.  ..##.  #..#.  ....#  ####.  ..#..  .###.  .####
#...#  ..#..  .#...  ....#  #####  ....#  #...#  ..#..  #...#  ....#
#...#  ..#..  #....  #...#  ...#.  #...#  #...#  ..#..  #...#  ....#
.###.  .###.  #####  .###.  ...#.  .###.  .###.  ..#..  .###.  .###.
"""

A_TO_M = """
..#..  ####.  .###.  ####.  #####  #####  .###.  #...#  .###.  ..###  #...#  #....  #...#
.#.#.  #...#  #...#  #...#  #....  #....  #...#  #...#  ..#..  ...#.  #..#.  #....  ##.##
#...#  #...#  #....  #...#  #....  #....  #....  #...#  ..#..  ...#.  #.#..  #....  #.#.#
#...#  ####.  #....  #...#  ####.  ####.  #.###  #####  ..#..  ...#.  ##...  #....  #.#.#
#####  #...#  #....  #...#  #....  #....  #...#  #...#  ..#..  ...#.  #.#..  #....  #...#
#...#  #...#  #...#  #...#  #....  #....  #...#  #...#  ..#..  #..#.  #..#.  #....  #...#
#...#  ####.  .###.  ####.  #####  #....  .###.  #...#  .###.  .##..  #...#  #####  #...#
"""

N_TO_Z = """
#...#  .###.  ####.  .###.  ####.  .####  #####  #...#  #...#  #...#  #...#  #...#  #####
##..#  #...#  #...#  #...#  #...#  #....  ..#..  #...#  #...#  #...#  #...#  #...#  ....#
##..#  #...#  #...#  #...#  #...#  #....  ..#..  #...#  #...#  #...#  .#.#.  .#.#.  ...#.
#.#.#  #...#  ####.  #...#  ####.  .###.  ..#..  #...#  #...#  #.#.#  ..#..  ..#..  ..#..
#..##  #...#  #....  #.#.#  #.#..  ....#  ..#..  #...#  .#.#.  #.#.#  .#.#.  ..#..  .#...
#..##  #...#  #....  #..#.  #..#.  ....#  ..#..  #...#  .#.#.  ##.##  #...#  ..#..  #....
#...#  .###.  #....  .##.#  #...#  ####.  ..#..  .###.  ..#..  #...#  #...#  ..#..  #####
"""


@dataclass(frozen=True)
class Alphabet:
    """A set of glyphs: what each is called, and its picture at each place in the frame, (classes, places, pixels)."""

    names: str
    clean: np.ndarray

    @classmethod
    def of(cls, names: str, *drawings: str) -> Alphabet:
        """Read glyphs that stand side by side, and shift each to every place in the frame."""
        glyphs = [
            glyph for drawing in drawings for glyph in zip(*map(str.split, drawing.split("\n")[1:-1]), strict=True)
        ]
        dots = np.array([[[dot == "#" for dot in row] for row in glyph] for glyph in glyphs], dtype=float)
        _, height, width = dots.shape
        places = [(top, left) for top in range(HEIGHT - height + 1) for left in range(WIDTH - width + 1)]
        clean = np.zeros((len(names), len(places), HEIGHT, WIDTH))
        for place, (top, left) in enumerate(places):
            clean[:, place, top : top + height, left : left + width] = dots
        return cls(names, clean.reshape(len(names), len(places), PIXELS))

    def draw(self, labels: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
        """Return a picture of each label (N,): a random place, and each pixel flipped with probability `noise`."""
        pictures = self.clean[labels, rng.integers(self.clean.shape[1], size=len(labels))]
        return np.where(rng.random(pictures.shape) < noise, 1 - pictures, pictures)

    def nearest(self, pictures: np.ndarray) -> np.ndarray:
        """Return the label of the clean picture that differs from each picture in the fewest pixels."""
        every = self.clean.reshape(-1, PIXELS)
        return (pictures @ every.T - every.sum(axis=1) / 2).argmax(axis=1) // self.clean.shape[1]


ALPHABETS = {
    "digits": Alphabet.of("0123456789", DIGITS),
    "letters": Alphabet.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", A_TO_M, N_TO_Z),
}


def shown(picture: np.ndarray) -> str:
    """Return a picture as text, a line for each row of pixels."""
    return "\n".join("".join(".#"[int(pixel)] for pixel in row) for row in picture.reshape(HEIGHT, WIDTH))
