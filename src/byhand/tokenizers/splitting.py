"""Pre-tokenisation: split a text into words; no token crosses from one word into the next.

GPT-2's words are contractions, letters, numbers, other symbols and spaces; a space belongs to the next word. In
GPT-4's, any symbol belongs to the letters after it, numbers have at most three digits, and newlines belong to the
symbols before them. The kinds of characters are those of Unicode 16 (`unicode_kinds`) on every Python.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from byhand.errors import DataError
from byhand.tokenizers.patterns import NAMED, Step, cut, require_steps
from byhand.tokenizers.unicode_kinds import LETTER, NUMBER, OTHER, kinds

SEARCHED = 1 << 18  # characters of special tokens; models with thousands of them have a tenth of that
AHEAD = 4  # characters of lookahead that may decide where a word ends
MARGIN = 1 << 12  # the same for any pattern: more than any known model needs
SPACES = " \t\n\r\f\v"
STANDS_FOR = {OTHER: "!", LETTER: "A", NUMBER: "0"}  # any other kind: a tab


@dataclass(frozen=True)
class Split:
    """A pre-tokenizer.

    pattern  its words, after each character is replaced by an ASCII one of its kind (`re` lacks Unicode classes)
    regex    equivalent expressions of other programs, first the one that we write
    joins    symbols join the letters after them (see `kernels.tokens.cutting`)
    digits   the most in a word; 0: no limit, and a space may precede them
    steps    of any other pre-tokenizer (`patterns`), to which the rest does not apply
    """

    name: str
    pattern: re.Pattern[str]
    regex: tuple[str, ...]
    joins: bool
    digits: int
    steps: tuple[Step, ...] = ()


How = str | Sequence[Step]  # a split's name, or steps


def split_of(how: How) -> Split:
    """Return the split for a name or steps. DataError if there is none."""
    if isinstance(how, str) and how in SPLITS:
        return SPLITS[how]
    steps = require_steps(NAMED.get(how, how) if isinstance(how, str) else how)
    name = next((name for name, known in NAMED.items() if known == steps), "patterns of its own")
    return Split(name, re.compile(""), (), False, 0, steps)


def _split(name: str, pattern: str, joins: bool, digits: int, *regex: str) -> Split:
    return Split(name, re.compile(pattern, re.ASCII), regex, joins, digits)


_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"
_GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_GPT4_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
SPLITS = {
    split.name: split
    for split in (
        _split(
            "gpt2", _GPT2, False, 0, r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
            r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        ),
        _split(
            "gpt4", _GPT4, True, 3, _GPT4_REGEX,
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
            r"\s+(?!\S)|\s+",
        ),
        _split("qwen2", _GPT4.replace("{1,3}", ""), True, 1, _GPT4_REGEX.replace("{1,3}", "")),
        _split("smollm", _GPT2.replace(" ?[0-9]+", "[0-9]").replace(r"(?!\S)", r"(?![^\s0-9])"), False, 1),
    )
}  # fmt: skip


class _Signs(dict[int, str]):
    """The ASCII character of a character's kind, for `str.translate`."""

    def __missing__(self, point: int) -> str:
        sign = chr(point) if point < 128 else "S" if point == 0x17F else STANDS_FOR.get(kinds()[point], "\t")
        self[point] = sign  # the long s is a letter, and equals S where case is ignored
        return sign


_SIGNS = _Signs()


def words(text: str, split: Split = SPLITS["gpt2"]) -> list[str]:
    """Split a text into words; joined, they are the text."""
    if split.steps:
        return cut([text], split.steps)
    return [text[match.start() : match.end()] for match in split.pattern.finditer(_signs(text))]


def pieces(blocks: Iterable[bytes], split: Split, special: Collection[str] = ()) -> Iterator[list[str]]:
    """Yield the words and special tokens of a text that comes in blocks, independent of the blocks' ends.

    Bytes that are not UTF-8 are surrogates, as in Python's `surrogateescape`.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    find, longest = finder(special), max(map(len, special), default=0)
    left, kept = "", 0
    for block, ends in with_end(blocks):
        left += decoder.decode(block, final=ends)
        if len(left) < 2 * kept and not ends:  # a long word: rescan when the buffer has doubled
            continue
        found: list[str] = []
        begin = 0
        for match in find.finditer(left) if find else ():
            if not ends and match.start() + longest > len(left):
                break
            found += [*words(left[begin : match.start()], split), match[0]]
            begin = match.end()
        if ends:
            found += words(left[begin:], split)
        elif split.steps:  # the first step's words that end well before the block does
            parts, at = cut([left[begin:]], split.steps[:1]), len(left)
            while parts and at > max(begin, len(left) - MARGIN - longest):
                at -= len(parts.pop())
            found += cut(parts, split.steps[1:])
            left, kept = left[at:], len(left) - at
        else:
            signs = _signs(left[begin:])
            sure = min(len(signs) - AHEAD - longest, len(signs.rstrip(SPACES)))
            at = begin
            for match in split.pattern.finditer(signs):
                if match.end() > sure:
                    break
                found.append(left[at : begin + match.end()])
                at = begin + match.end()
            left, kept = left[at:], len(left) - at
        yield found


def require_searchable(characters: int) -> None:
    """Raise DataError if special tokens have too many characters in total, since texts are searched for them."""
    if characters > SEARCHED:
        raise DataError(f"its special tokens have more than {SEARCHED:,} characters. Use a tokenizer with fewer.")


def finder(special: Collection[str]) -> re.Pattern[str] | None:
    """Return a pattern for special tokens that finds the first, and of those the longest; None without any."""
    ordered = sorted(special, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def with_end(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield the blocks, then an empty one, each with whether the text ends there."""
    for block in blocks:
        yield block, False
    yield b"", True


def _signs(text: str) -> str:
    return text if text.isascii() else text.translate(_SIGNS)
