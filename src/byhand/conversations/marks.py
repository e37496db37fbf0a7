"""Marks in a text: what a message says is never a special token, and where an answer begins and ends.

A template joins what it says with what messages say, and special tokens are found in the result. So each place of a
message at which a special token begins gets a mark before; what follows a mark is text, and the marks go.
(transformers lets a message write special tokens: whoever asks can then end their turn, and begin the assistant's.)

Tokens that are text to readers, such as <think>, stay what they are: answers hold them.
"""

from __future__ import annotations

import re
from functools import cached_property

from byhand.conversations.messages import OURS, Message
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.splitting import finder
from byhand.tokenizers.tokenizer import END, Tokenizer

TEXT, OPEN, CLOSE = OURS


class Marks:
    """What marks the texts for a tokenizer, and encodes those that are marked.

    special  its special tokens, and the texts that messages must not write as such
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.special = tokenizer.special if isinstance(tokenizer, BytePairTokenizer) else {}
        shown = set(tokenizer.conventions.shown)
        self._steering = [text for text, token in self.special.items() if token not in shown]

    @cached_property
    def _begins(self) -> re.Pattern[str] | None:
        found = finder(self._steering)
        return found and re.compile(f"(?={found.pattern})")

    def guarded(self, message: Message) -> dict[str, str]:
        """Return a message whose content is no special token, and begins none at its end."""
        content = unmarked(message.content).replace(END.decode(), "")
        if self._begins:
            longest = max(map(len, self._steering))
            begun = [
                at
                for at in range(max(0, len(content) - longest + 1), len(content))
                if any(text.startswith(content[at:]) for text in self._steering)
            ]
            places = {*begun, *(match.start() for match in self._begins.finditer(content))}
            content = "".join(TEXT * (at in places) + sign for at, sign in enumerate(content)) if places else content
        return {"role": message.role, "content": content}

    @cached_property
    def _tokens(self) -> re.Pattern[str] | None:
        found = finder(self.special)
        return found and re.compile(f"(?<!{TEXT})(?:{found.pattern})")

    def found(self, text: str) -> list[re.Match[str]]:
        """Return the special tokens that a template wrote, but for those that are text to readers."""
        shown = self.tokenizer.conventions.shown
        found = self._tokens.finditer(text) if self._tokens else ()
        return [match for match in found if self.special[match[0]] not in shown]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a marked text. Where it has `END`, the token that ends a document."""
        first, *others = text.split(END.decode())
        ids = self._encoded(first)
        for part in others:
            ids += [self.tokenizer.end, *self._encoded(part)]
        return ids

    def _encoded(self, text: str) -> list[int]:
        if TEXT not in text:
            return self.tokenizer.encode(text)
        ids, begin = list[int](), 0
        for match in self._tokens.finditer(text) if self._tokens else ():
            ids += [*self._plain(text[begin : match.start()]), self.special[match[0]]]
            begin = match.end()
        return ids + self._plain(text[begin:])

    def _plain(self, text: str) -> list[int]:
        return self.tokenizer.encode_plain(unmarked(text))


def unmarked(text: str) -> str:
    """Return a text without its marks."""
    return text.translate(dict.fromkeys(map(ord, OURS)))
