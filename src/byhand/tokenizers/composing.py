"""Unicode normalisation of a text that comes in blocks; special tokens stay unchanged."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator

from byhand.tokenizers.splitting import finder, with_end
from byhand.tokenizers.tokenizer import utf8

UNTIL_ASCII = re.compile(r".*(?=[\x00-\x7f])", re.DOTALL)


def composed(blocks: Iterable[bytes], form: str, special: Collection[str]) -> Iterator[bytes]:
    """Yield a text in this form; parts end before ASCII, which never composes with what precedes it."""
    decoder, left = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape"), ""
    find, longest = finder(special), max(map(len, special), default=0)
    for block, ends in with_end(blocks):
        left += decoder.decode(block, final=ends)
        match = None if ends else UNTIL_ASCII.match(left[: max(0, len(left) - longest)])
        cut = len(left) if ends else match.end() if match else 0
        parts, at = list[str](), 0
        for found in find.finditer(left) if find else ():
            if found.end() > cut:
                cut = min(cut, found.start())
                break
            parts += [unicodedata.normalize(form, left[at : found.start()]), found[0]]  # pyright: ignore[reportArgumentType]
            at = found.end()
        parts.append(unicodedata.normalize(form, left[at:cut]))  # pyright: ignore[reportArgumentType]
        yield utf8("".join(parts))
        left = left[cut:]
