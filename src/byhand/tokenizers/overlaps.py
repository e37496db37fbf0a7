"""Overlaps between two sets of texts: one contains another, or ends with another's beginning.

An Aho-Corasick automaton of the first set scans each text of the second set once: linear in the characters for any
number of pairs.

Source      Aho & Corasick 1975, "Efficient string matching"
"""

from __future__ import annotations

from collections.abc import Iterable


class Prefixes:
    """A trie of texts with failure links; state 0 is the empty prefix."""

    table = dict

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = list(texts)
        self.of = [0]  # by state: a text with this prefix
        self.whole: list[int | None] = [None]  # by state: a text that is a suffix of this prefix
        self._next: dict[tuple[int, str], int] = self.table()
        levels: dict[int, list[tuple[int, int, str]]] = {}  # by length: state, parent, last character
        for number, text in enumerate(self.texts):
            state = 0
            for length, sign in enumerate(text, 1):
                before, state = state, self._next.setdefault((state, sign), len(self.of))
                if state == len(self.of):
                    self.of.append(number)
                    self.whole.append(None)
                    levels.setdefault(length, []).append((state, before, sign))
            self.whole[state] = number
        self._suffix = [0] * len(self.of)  # failure link: the longest proper suffix that is a state
        for length in sorted(levels):
            for state, before, sign in levels[length]:
                if before:
                    self._suffix[state] = self.step(self._suffix[before], sign)
                if self.whole[state] is None:
                    self.whole[state] = self.whole[self._suffix[state]]

    def step(self, state: int, sign: str) -> int:
        """Return the state after one more character: the longest prefix that the text ends with."""
        while (state, sign) not in self._next and state:
            state = self._suffix[state]
        return self._next.get((state, sign), 0)

    def end_of(self, text: str) -> str:
        """Return a text that `text` contains, or whose beginning it ends with; "" if there is none."""
        state = 0
        for sign in text:
            state = self.step(state, sign)
            if (inside := self.whole[state]) is not None:
                return self.texts[inside]
        return self.texts[self.of[state]] if state else ""


def overlap(some: Iterable[str], others: Iterable[str]) -> tuple[str, str] | None:
    """Return a text of each set that can occur overlapping in one text; None if there are none."""
    some, others = list(some), list(others)
    if not some or not others:
        return None
    for one, another, turned in ((some, others, False), (others, some, True)):
        prefixes = Prefixes(one)
        for text in another:
            if found := prefixes.end_of(text):
                return (text, found) if turned else (found, text)
    return None
