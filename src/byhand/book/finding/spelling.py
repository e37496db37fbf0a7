"""Known words for misspelt ones: letters wrong, missing or swapped, words joined or torn apart, a Chinese character
for another of the same sound or in a known word."""

from __future__ import annotations

from functools import lru_cache
from itertools import zip_longest

from byhand.book.finding.stored import Index
from byhand.book.finding.words import HAN, nearest, stem

MOST_WORDS = 50  # of a question that are looked at
LONGEST = 40  # letters of a word
SHORTEST = 4  # letters of a word that may be misspelt
SHORTEST_OF_TWO = 7  # letters of a word that may be wrong twice
WINDOWS = range(2, 7)  # characters of a Chinese word
SHORT = 4  # characters of a question that may be one misspelt word


def spelt(index: Index, words: list[str]) -> list[str]:
    """Return the words of a question as the index knows them."""
    found: list[str] = []
    words = words[:MOST_WORDS]
    for word, after in zip_longest(words, words[1:], fillvalue=""):
        if HAN.match(word):
            found.append(_chinese(index, word))
            continue
        found += _known(index, word)
        if len(word) > 1 and after and word + after in index.words:
            found.append(word + after)
    return found


def _known(index: Index, word: str) -> list[str]:
    """Return a Latin word if it is known, else the nearest, or the two that were written together."""
    if index.knows(stem(word)) or not SHORTEST <= len(word) <= LONGEST or not word.isalpha():
        return [word]
    for at in range(3, len(word) - 2):
        if word[:at] in index.words and word[at:] in index.words:
            return [word[:at], word[at:]]
    near = nearest(word, index.words, 1 if len(word) < SHORTEST_OF_TWO else 2)
    if len(word) == SHORTEST > len(near):  # mmap is not map
        near = ""
    return [near or word]


def _chinese(index: Index, text: str) -> str:
    """Return a run of characters with known words in place of those that sound alike, or look alike but for one.

    Short windows are doubtful: two characters are read as another word only if the question is hardly more, and one
    character is taken for wrong only if three others of its word are right.
    """
    sounds = index.han.sound(text)
    by_sound, by_rest = _alike(index)
    at = 0
    while at < len(text):
        for size in reversed(WINDOWS):
            window = text[at : at + size]
            if len(window) < size or (size == 2 and len(text) > SHORT) or not _doubtful(index, window):
                continue
            word = by_sound.get(sounds[at : at + size], "")
            if not word and (size > 3 or size == len(text) == 3):
                rests = ((window[:i], window[i + 1 :]) for i in range(size) if _wrong(index, text, at + i))
                word = next((by_rest[rest] for rest in rests if rest in by_rest), "")
            if word and word != window:
                text = text[:at] + word + text[at + size :]
                at += size - 1
                break
        at += 1
    return text


def _doubtful(index: Index, window: str) -> bool:
    """Return whether a pair of its characters is unknown."""
    return any(not index.knows(window[i : i + 2]) for i in range(len(window) - 1))


def _wrong(index: Index, text: str, at: int) -> bool:
    """Return whether both pairs that a character is in are unknown."""
    return all(not index.knows(text[i : i + 2]) for i in (at - 1, at) if 0 <= i < len(text) - 1)


@lru_cache(maxsize=2)
def _alike(index: Index) -> tuple[dict[tuple[str, ...], str], dict[tuple[str, str], str]]:
    """Return the Chinese words of the index by their sounds, and by what remains without one character."""
    words = dict.fromkeys(
        word for _, _, _, word, *_ in index.rows if len(word) in WINDOWS and HAN.match(word) and " " not in word
    )
    by_sound: dict[tuple[str, ...], str] = {}
    by_rest: dict[tuple[str, str], str] = {}
    for word in words:
        by_sound.setdefault(index.han.sound(word), word)
        for i in range(len(word)):
            by_rest.setdefault((word[:i], word[i + 1 :]), word)
    return by_sound, by_rest
