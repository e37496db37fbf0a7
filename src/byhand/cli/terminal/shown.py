"""Untrusted text for a terminal: no control characters, bounded length."""

import re
import unicodedata
from collections.abc import Callable

MOST = 1000  # characters: a few lines of a terminal
_HIDDEN = frozenset(["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"])  # controls, direction marks, surrogates, line ends
_JOINERS = "\u200c\u200d"  # join Persian and Indic letters, and emoji; harmless in a terminal


def shown(text: object, most: int = MOST) -> str:
    r"""Return text on one line: control characters become escapes such as `\x1b`, a long middle becomes `…`."""
    written = str(text)
    if len(written) > most:
        half = (most - 1) // 2
        written = f"{written[:half]}…{written[-half:]}"
    return escaped(written)


def on_terminal(text: str) -> str:
    """Return text with its line ends and tabs kept; other control characters become escapes as in `shown`."""
    return text if text.isprintable() else "\n".join("\t".join(map(escaped, s.split("\t"))) for s in text.split("\n"))


def escaped(text: str, by: Callable[[str], str] = lambda c: c.encode("unicode_escape").decode()) -> str:
    """Return text with control characters, line ends and tabs included, replaced `by` their escapes."""
    if text.isprintable():
        return text
    return "".join(by(c) if unicodedata.category(c) in _HIDDEN and c not in _JOINERS else c for c in text)


def quoted(text: str) -> str:
    """Return text as a Python literal, a long middle as `…`."""
    return repr(text if len(text) <= 80 else f"{text[:40]}…{text[-40:]}")


def one_line(message: object) -> str:
    """Return a message on one line: its line ends and runs of spaces become one space, the rest as `shown`."""
    written = str(message)
    return shown(re.sub(r"\s*[\r\n]\s*", " ", written[: 4 * MOST].strip()) + written[4 * MOST :])
