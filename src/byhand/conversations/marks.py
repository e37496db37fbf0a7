"""Marks in a text: they keep messages from writing special tokens, and show where answers begin and end.

A template joins its own text with that of messages, and special tokens are found in the result. (transformers lets
a message write special tokens, so a user can end their turn and begin the assistant's.) So we render twice: the
messages, and the same messages veiled, with all but white space replaced by other characters. Where the two texts
differ, a message wrote; a token with such a character is text, and one of its signs, such as <, is hidden: a
noncharacter of Unicode replaces it until the text is split at its special tokens.

Some special tokens stay special in messages: those that are text to readers, such as Gemma's <h1>, unless the
template writes them around messages; and in answers those that a template looks for, such as <think>.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise, takewhile
from string import ascii_letters
from typing import NamedTuple

from byhand.conversations.messages import OURS
from byhand.conversations.rendering import CLOSE, OPEN
from byhand.errors import DataError
from byhand.tokenizers.splitting import finder
from byhand.tokenizers.tokenizer import END, Tokenizer

HERE, *HIDING = OURS.removeprefix(OPEN + CLOSE)  # HERE: marks a place to find again
CODE = re.compile(r"\{[{%].*?[}%]\}", re.DOTALL)
GENERATED = re.compile(f"[{OPEN}{CLOSE}]")
LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)


class _Veil(dict[int, str]):
    """Substitutes for characters, of the same kind where it matters: letters keep their case, spaces stay."""

    def __missing__(self, code: int) -> str:
        one = chr(code)
        if one.isspace() or code >= 0x20000:
            found = one
        elif one.isascii() and one.isalpha():
            found = chr((0x10428 - ord("a") if one.islower() else 0x10400 - ord("A")) + code)  # Deseret
        else:
            found = chr(0xF0000 + code)
        return self.setdefault(code, found)


class _Unveil(dict[int, str]):
    def __missing__(self, code: int) -> str:
        return self.setdefault(code, chr(code % 0xF0000))


_VEIL = _Veil()
_UNVEIL = _Unveil({ord(_VEIL[ord(letter)]): letter for letter in ascii_letters})


def bare(text: str) -> str:
    """Return a text without the marks of generated text."""
    return GENERATED.sub("", text)


def unveiled(text: str) -> str:
    """Return a text as it was before `Marks.veil`."""
    return text.translate(_UNVEIL)


class Piece(NamedTuple):
    """A text with the signs of messages hidden, and whether it is learnt."""

    text: str
    learnt: bool = False


class Marks:
    """Hides the signs of special tokens, and encodes.

    around  returns the text that the format writes around messages; called if the tokenizer has special tokens
    named   the template's source, which may look for special tokens
    """

    def __init__(self, tokenizer: Tokenizer, around: Callable[[], str], named: str = "") -> None:
        self.tokenizer, self._around, self._named = tokenizer, around, named
        late = getattr(tokenizer, "late", ())
        cuts = finder([END.decode(), *(text for text in tokenizer.special if text not in late)])
        assert cuts
        self._cuts = cuts

    @cached_property
    def _written(self) -> str:
        return self._around()

    @cached_property
    def steering(self) -> list[str]:
        """The special tokens that messages must not write."""
        found, special = self.tokenizer.conventions, self.tokenizer.special
        own = {found.bos, found.eos, found.eot, *found.ends, *found.before, *found.after}
        text = {*found.shown} - own
        return [
            each for each, token in special.items()
            if not each.isspace() and (token not in text or each in self._written)
        ]  # fmt: skip

    @cached_property
    def _hidden(self) -> dict[int, str]:
        """The noncharacter that replaces each sign. DataError if there are too few."""
        signs = list[str]()
        for text in self.steering:
            if not any(sign in signs for sign in text):
                sign = next((c for c in text if not (c.isalnum() or c.isspace())), text[0])
                signs += dict.fromkeys((sign, sign.lower(), sign.upper()))
        if len(signs) > len(HIDING) or any(len(sign) > 1 for sign in signs):
            raise DataError("the special tokens of the model have too few signs in common. Use another tokenizer.")
        return dict(zip(map(ord, signs), HIDING, strict=False))

    @cached_property
    def shown(self) -> dict[int, str | None]:
        """The table for `str.translate` that restores hidden signs and deletes other marks."""
        return {**dict.fromkeys(map(ord, OURS)), **{ord(hidden): chr(sign) for sign, hidden in self._hidden.items()}}

    @cached_property
    def _tokens(self) -> tuple[set[str], set[str]]:
        """The special tokens that are text in messages, and in answers."""
        found = {*self.steering}
        return found, {text for text in found if text not in self._named or text in self._written}

    @cached_property
    def _words(self) -> list[re.Pattern[str] | None]:
        """The patterns of the special tokens; also of literals without parts of tokens; also of those with signs."""
        words = {one or other for code in CODE.findall(self._named) for one, other in LITERAL.findall(code)}
        words = {text.encode("ascii", "backslashreplace").decode("unicode_escape", "replace") for text in words}
        words = {text for text in words if text.strip() and not self.found(text)}
        some = (set[str](), *({text for text in words if not self._joins(text, signs)} for signs in (True, False)))
        return [finder({*self.tokenizer.special, *kept}) for kept in some]

    def _joins(self, word: str, signs: bool) -> bool:
        """Return whether a word has letters of a token, or signs: `user` would stay in a forged <|user|>."""
        tokens, longest = "\0".join(["", *self.steering, ""]), max(map(len, self.steering), default=0)
        ends = [part for i in range(1, longest + 1) for part in (f"{word[:i]}\0", f"\0{word[-i:]}")]
        return any(part in tokens and (signs or any(map(str.isalnum, part))) for part in (word, *ends))

    def hide(self, text: str, answer: bool) -> str:
        """Return a message's text with its signs of special tokens hidden."""
        hidden = text.translate(self._hidden)
        return hidden if hidden == text else self._with(hidden, text, answer)

    def veil(self, text: str, answer: bool, words: int = 0) -> str:
        """Return a message's text veiled, except tokens that stay and the literals that `words` selects."""
        return self._with(text.translate(_VEIL), text, answer, words)

    def _with(self, changed: str, text: str, answer: bool, words: int = 0) -> str:
        parts, at, find = list[str](), 0, self._words[words]
        for match in find.finditer(text) if find else ():
            if match[0] not in self._tokens[answer]:
                parts += [changed[at : match.start()], match[0]]
                at = match.end()
        return "".join([*parts, changed[at:]])

    def barred(self, text: str, veiled: str) -> str:
        """Return a text with a sign hidden in each special token of which a message wrote a part."""
        signs, at, generated = list[int](), 0, list(GENERATED.finditer(text))
        text, veiled = bare(text), bare(veiled)
        while self._find and (match := self._find.search(text, at)):
            begin, at = match.span()
            if text[begin:at] != veiled[begin:at]:
                signs.append(next(i for i in range(begin, at) if ord(text[i]) in self._hidden))
                at = signs[-1] + 1  # no token ends before its sign
        parts = [text[a:b] for a, b in pairwise([0, *signs, len(text)])]
        text = "".join([parts[0], *(self._hidden[ord(part[0])] + part[1:] for part in parts[1:])])
        for mark in generated:
            text = text[: mark.start()] + mark[0] + text[mark.start() :]
        return text

    def found(self, text: str) -> list[re.Match[str]]:
        """Return the special tokens that a template wrote, except those that are text to readers."""
        return list(self._find.finditer(text)) if self._find else []

    @cached_property
    def _find(self) -> re.Pattern[str] | None:
        return finder(self.steering)

    def encode(self, pieces: Sequence[Piece]) -> tuple[list[int], list[bool]]:
        """Return the ids of a text, and which are learnt: those with a learnt part. `END` ends a document."""
        text = "".join(piece.text for piece in pieces)
        ends = accumulate(len(piece.text) for piece in pieces)
        learnt = [
            (end - len(one.text), end) for one, end in zip(pieces, ends, strict=True) if one.learnt and one.text
        ]
        spans, ids, found, at = deque(learnt), list[int](), list[bool](), 0
        for match in [*self._cuts.finditer(text), None]:
            begin, end = match.span() if match else (len(text), len(text) + 1)
            section, first = text[at:begin], not ids
            new = self.tokenizer.encode_plain(section, self.shown, first)
            ids += new
            found += [False] * len(new)
            while spans and spans[0][1] <= at:
                spans.popleft()
            near = [(a - at, b - at) for a, b in takewhile(lambda span: span[0] < end, spans)]  # noqa: B023
            for a, b in near:
                low, high = (self._count(section[: max(0, place)], new, first) for place in (a, b))
                found[len(ids) - len(new) + low[0] : len(ids) - len(new) + sum(high)] = [True] * (sum(high) - low[0])
            if match:
                token = self.tokenizer.special.get(match[0])
                ids.append(self.tokenizer.end if token is None else token)
                found.append(bool(near) and near[-1][1] > len(section))
                at = end
        return ids, found

    def _count(self, begin: str, ids: Sequence[int], first: bool) -> tuple[int, bool]:
        """Return how many ids of a section lie within its beginning, and whether another crosses the edge."""
        known = self.tokenizer.encode_plain(begin, self.shown, first)
        same = next((i for i, pair in enumerate(zip(known, ids, strict=False)) if pair[0] != pair[1]), len(known))
        return min(same, len(ids)), same < len(known)
