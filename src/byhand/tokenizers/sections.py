"""Sections: split a text for SentencePiece at its special tokens; replace spaces by ▁ and prepend it to sections.

If no piece has a ▁ after another character, no merge crosses that place, and texts are split there into words.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterable, Iterator

from byhand.tokenizers.splitting import finder, with_end

SPACE = "▁"
PREFIXES = ("each", "words", "first", "none")
WORDS = re.compile(f"{SPACE}*[^{SPACE}]+|{SPACE}+")
CROSSING = re.compile(f"[^{SPACE}]{SPACE}")


class Sections:
    """Splits texts; settings as in `SentencePieceTokenizer`.

    pieces  of several characters
    """

    def __init__(self, pieces: Iterable[str], special: Collection[str], late: Collection[str], prefix: str) -> None:
        self.prefix = prefix
        self._crossing = any(CROSSING.search(piece) for piece in pieces)
        self._find = finder([text for text in special if text not in late])
        self._find_late = finder([SPACE + text for text in late]) if prefix == "each" else None
        self._longest = max(map(len, special), default=0)

    def words(self, blocks: Iterable[bytes]) -> Iterator[list[tuple[str, bool]]]:
        """Yield the words and special tokens of a text that comes in blocks, each with whether it is special.

        Bytes that are not UTF-8 are surrogates, as in Python's `surrogateescape`.
        """
        decoder, left = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape"), ""
        begins, first, kept = True, True, 0  # at the beginning of a section; of the text
        for block, ends in with_end(blocks):
            left += decoder.decode(block, final=ends)
            if len(left) < 2 * kept and not ends:  # a long word: rescan when the buffer has doubled
                continue
            found, at = list[tuple[str, bool]](), 0
            for match in self._find.finditer(left) if self._find else ():
                if not ends and match.start() + self._longest > len(left):
                    break
                found += self.section(left[at : match.start()], begins, first)
                found.append((match[0], True))
                begins, first, at = True, False, match.end()
            sure = len(left) if ends else at + self._sure(left[at : max(at, len(left) - self._longest)])
            if sure > at:
                found += self.section(left[at:sure], begins, first)
                begins = first = False
            left = left[sure:]
            kept = len(left)
            yield found

    def _sure(self, text: str) -> int:
        """Return the start of a text's last word, which may continue in the next block."""
        last = max(text.rfind(" "), text.rfind(SPACE))
        return 0 if self._crossing else len(text[: last + 1].rstrip(" " + SPACE))

    def section(self, text: str, begins: bool, first: bool) -> Iterator[tuple[str, bool]]:
        """Yield the words of a section, or of a part of it."""
        written = text.replace(" ", SPACE)
        bare = self.prefix == "each" or not written.startswith(SPACE)
        if text and begins and bare and (first or self.prefix != "first") and self.prefix != "none":
            written = SPACE + written
        for word in [written] if self._crossing and written else WORDS.findall(written):
            at = 0
            for match in self._find_late.finditer(word) if self._find_late else ():
                yield word[at : match.start()], False
                yield match[0].removeprefix(SPACE), True
                at = match.end()
            yield word[at:], False
