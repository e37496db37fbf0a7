"""Stop texts: end a generated text at a stop text, even one that spans tokens or splits characters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable


class StopText:
    """A stream's text up to the first stop text; for `Stream.until`, which is called with each token.

    The first is the one completed first, the longest of those completed at the same byte: so the text does not depend
    on its division into tokens.

    decode  ids -> bytes, such as `Tokenizer.decode`
    stops   bytes, none of them empty
    text    the text so far, without the stop text
    begins  offset of each token in it; of tokens of the stop text, its end or more
    """

    def __init__(self, decode: Callable[[tuple[int]], bytes], stops: Iterable[bytes]) -> None:
        self._decode, self._stops = decode, tuple(stops)
        self.begins: list[int] = []
        self.text = bytearray()

    def __call__(self, token: int) -> int | None:
        """Append a token; return None, or at the end of the text the number of tokens that contribute to it."""
        self.begins.append(len(self.text))
        for byte in self._decode((token,)):
            self.text.append(byte)
            if found := [len(stop) for stop in self._stops if self.text.endswith(stop)]:
                del self.text[-max(found) :]
                return bisect_left(self.begins, len(self.text))
        return None

    @property
    def settled(self) -> int:
        """The number of bytes that are final: a stop text may have begun after them."""
        begun = (n for stop in self._stops for n in range(1, len(stop)) if self.text.endswith(stop[:n]))
        return len(self.text) - max(begun, default=0)
