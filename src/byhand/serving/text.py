"""The text of a choice: tokens become text piece by piece, and each token gets its place in it.

A token waits while its bytes could begin a stop text, a character until its last byte has come. The pieces joined are
the text, whatever they are cut into.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Iterable

from byhand.generation import StopText


class GrowingText:
    """A text that grows; the `Stream.until` of its stream, which calls it with each token.

    decode  bytes of ids, one after the other, such as `Tokenizer.decoder()`
    stops   texts that end it, as bytes
    echo    the bytes of each token of a prompt that the text begins with; stop texts are not looked for in it
    count   how many tokens were drawn, those of a stop text too
    length  how many characters were given out
    """

    def __init__(
        self, decode: Callable[[tuple[int]], bytes], stops: Iterable[bytes] = (), echo: Iterable[bytes] = ()
    ) -> None:
        self._stop = StopText(decode, stops)
        self._echo, self._given = deque(echo), 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._kept: int | None = None
        self.count = self.length = 0

    def __call__(self, token: int) -> int | None:
        """Take a drawn token; return None, or at a stop text how many tokens the text keeps a part of."""
        self.count += 1
        self._kept = self._stop(token)
        return self._kept

    @property
    def stopped(self) -> bool:
        """Whether a stop text has ended it."""
        return self._kept is not None

    def more(self, final: bool) -> tuple[str, list[int]]:
        """Return what the text has gained, and the offset in characters of each token that is new in it.

        Inside of a character the offset is the length of the bytes before it, decoded with replacements.

        final  nothing follows, so nothing waits
        """
        pieces, offsets = list[str](), list[int]()
        while self._echo:
            pieces.append(self._added(self._echo.popleft(), offsets))
        begins, text = self._stop.begins, self._stop.text
        count = len(begins) if self._kept is None else self._kept
        settled = len(text) if final else self._stop.settled
        while self._given < count:
            begin, following = begins[self._given], begins[self._given + 1 : self._given + 2]
            end = min(*following, len(text)) if following else len(text)
            if end > settled:
                break
            pieces.append(self._added(text[begin:end], offsets))
            self._given += 1
        if final:
            pieces.append(self._decoder.decode(b"", final=True))
            self.length += len(pieces[-1])
        return "".join(pieces), offsets

    def _added(self, content: bytes | bytearray, offsets: list[int]) -> str:
        begun: bytes = self._decoder.getstate()[0]
        offsets.append(self.length + len(begun.decode("utf-8", "replace")))
        piece = self._decoder.decode(content)
        self.length += len(piece)
        return piece


def name_of(content: bytes | None, token: int) -> str:
    """Return what a token is called: its text, `bytes:\\xe4` if it is not whole UTF-8, or its id if it has none."""
    if content is None:
        return f"token_id:{token}"
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)
