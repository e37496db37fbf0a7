r"""Pre-tokenizers by any pattern: steps, each a regular expression and the treatment of its matches.

Patterns come from untrusted files, in Oniguruma's syntax, which Hugging Face's `tokenizers` uses. The library `regex`
runs them: it knows `\p{..}` and the newest Unicode, and has timeouts. Only syntax with the same meaning in both is
accepted: no `\w`, `^`, `$`, `{2}?`, lookbehind, or reference to a group. So a word does not depend on what precedes
it, and a text that comes in blocks can be cut between two words of the first step.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from byhand.errors import DataError

Step = tuple[str, str]  # a pattern, and how its matches are split off; the rest stays whole
ISOLATED, CONTIGUOUS, BACKWARD, FORWARD, ONLY = BEHAVIORS = (
    "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext", "Removed"
)  # fmt: skip
LONGEST, MOST = 1 << 12, 16  # characters of a pattern, steps
SECONDS, SPEED = 5, 20_000  # CPU time limit: minimum, and characters per second and step
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SMALL = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
_LARGE = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
_END = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^NL\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[NL]*|"""
    r"\s*[NL]+|\s+(?!\S)|\s+"
).replace("NL", "\r\n")
NAMED: dict[str, tuple[Step, ...]] = {  # by llama.cpp's names, from the models' own files
    "gpt-4o": ((rf"{_SMALL}{_END}?|{_LARGE}{_END}?|\p{{N}}{{1,3}}|{_REST}", ISOLATED),),
    "tekken": ((rf"{_SMALL}|{_LARGE}|\p{{N}}|{_REST}", ISOLATED),),
    "qwen35": ((
        rf"{_END}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+", ISOLATED,
    ),),
    "deepseek-v3": ((r"\p{N}{1,3}", ISOLATED), ("[一-龥぀-ゟ゠-ヿ]+", ISOLATED), (_DEEPSEEK, ISOLATED)),
    "deepseek-coder": (
        ("[\r\n]", ISOLATED), (r"\s?\p{L}+", ISOLATED), (r"\s?\p{P}+", ISOLATED), ("[一-龥ࠀ-一가-퟿]+", ISOLATED),
        (r"\p{N}", ISOLATED),
    ),
}  # fmt: skip
PARTS = re.compile(
    r"\\[pP]\{\^?(?P<kind>[A-Za-z_]+)\}|\\[dDsSrntfv]|\\(?P<sign>[^\w\s])|(?P<group>\((?:\?(?:i?:|=|!|>)|(?!\?))|[)|.])|"
    r"(?P<set>\[\^?(?![]:^]))|(?P<end>\])|(?P<both>&&)|"
    r"(?P<times>\{\d{1,4}(?:\}(?![?+])|,\d{0,4}\}(?:\?|(?!\+)))|[?*+]|(?<=[?*+])[?+])|"
    r"(?P<letter>[^\\])", re.DOTALL
)  # fmt: skip


@cache
def compiled(pattern: str) -> Any:
    """Compile a pattern with `regex`. DataError if it is invalid, or means something else in Oniguruma."""
    try:
        import regex
    except ImportError:
        raise DataError("its pre_tokenizer has its own pattern. Use pip install 'byhand[patterns]'") from None
    if len(pattern) > LONGEST:
        raise DataError(f"a pattern of its pre_tokenizer has more than {LONGEST:,} characters")
    try:
        found = regex.compile(_translated(pattern), regex.VERSION1)
        empty = found.search("") is not None
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise DataError(f"byhand cannot use the pattern {pattern[:80]!r} of its pre_tokenizer: {error}") from None
    if empty:
        raise DataError(f"the pattern {pattern[:80]!r} of its pre_tokenizer matches an empty text")
    return found


def _translated(pattern: str) -> str:
    """Translate Oniguruma's pattern for `regex`. ValueError names syntax that the two do not share."""
    found, at, inside = list[str](), 0, 0  # inside: depth of nested sets
    while at < len(pattern):
        part = PARTS.match(pattern, at)
        kind, text = (part.lastgroup, part[0]) if part else ("", "")
        again = kind == "times" and not inside and "".join(found[-1:]).startswith("{")  # Ruby nests repetitions
        if not part or again or (kind == "letter" and (text == "[" or (not inside and text in "^${("))):
            raise ValueError(f"it does not read {pattern[at : at + 3]!r}")
        at = part.end()
        if kind == "kind" and len(part["kind"]) > 2:
            text = text.replace(part["kind"], f"Script={part['kind']}")
        elif kind == "letter" or (kind in ("group", "times") and inside) or (kind in ("end", "both") and not inside):
            text = "".join(sign if sign.isalnum() or (sign == "-" and inside) else re.escape(sign) for sign in text)
        inside = max(0, inside + (kind == "set") - (kind == "end"))
        found.append(text)
    return "".join(found)


def require_steps(steps: Any) -> tuple[Step, ...]:
    """Return steps from a file. DataError if they are invalid, or one cannot be used."""
    pairs = steps if isinstance(steps, (list, tuple)) else ()
    if not 0 < len(pairs) <= MOST or not all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str) and pair[1] in BEHAVIORS
        for pair in pairs
    ):
        raise DataError(f"its pre-tokenizer is not a list of at most {MOST} patterns and behaviors")
    for pattern, _ in pairs:
        compiled(pattern)
    return tuple((pattern, behavior) for pattern, behavior in pairs)


def cut(texts: Iterable[str], steps: Sequence[Step]) -> list[str]:
    """Split texts by one step after another; joined, the parts are the texts."""
    found = list(texts)
    due = time.process_time() + SECONDS + len(steps) * sum(map(len, found)) / SPEED
    for pattern, behavior in steps:
        found = [word for text in found for word in _cut(text, pattern, behavior, due)]
    return found


def _cut(text: str, pattern: str, behavior: str, due: float) -> list[str]:
    """Return the words of a text; gives up at the CPU time `due`."""
    found, at = list[tuple[str, bool]](), 0
    try:
        for match in compiled(pattern).finditer(text, timeout=max(0.01, due - time.process_time())):
            begin, end = match.span()
            found += [(text[at:begin], False)] * (begin > at) + [(match[0], True)]
            at = end
    except TimeoutError:
        raise DataError(f"the pattern {pattern[:80]!r} of the tokenizer takes too long. Use another one.") from None
    found += [(text[at:], False)] * (at < len(text))
    if not all(word and (matches or behavior != ONLY) for word, matches in found):
        raise DataError(f"the pattern {pattern[:80]!r} of the tokenizer skips a part of the text.")
    if behavior == CONTIGUOUS:
        return ["".join(word for word, _ in group) for _, group in groupby(found, lambda each: each[1])]
    words, joins = list[str](), False
    back = -1 if behavior == FORWARD else 1
    for word, matches in found[::back]:
        if joins and matches:
            words[-1] = "".join([words[-1], word][::back])
        else:
            words.append(word)
        joins = behavior in (BACKWARD, FORWARD) and not matches
    return words[::back]
