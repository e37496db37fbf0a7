"""The text of a conversation for a model: by its own chat template, or in a plain format of byhand's.

    the model's template   Jinja, which comes with the model (`tokenizers/conventions.py`)
    chatml                 <|im_start|>user, a newline, what is said, <|im_end|>, a newline: if the tokenizer has
                           these special tokens
    plain                  User:, a newline, what is said, and the token that ends a document: for any tokenizer

The answers are learnt, each with its end. To find an answer's text, we render the conversation up to it, as to ask
for it; or the template marks it by `{% generation %}`. The whole text is tokenised at once, and a token that crosses
the edge of an answer is learnt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import get_args

from byhand.conversations.marks import GENERATED, HERE, Marks, Piece, bare, unveiled
from byhand.conversations.messages import Message, Messages, Role
from byhand.conversations.rendering import CLOSE, OPEN
from byhand.conversations.sandbox import Cut, Refused, Template
from byhand.errors import DataError
from byhand.tokenizers.conventions import DEFAULT, ONE, Conventions
from byhand.tokenizers.tokenizer import END, Tokenizer

ASK, ANSWER = {"role": "user", "content": "0"}, {"role": "assistant", "content": HERE}
FOLLOWING = {"role": "user", "content": HERE}
TOLD = re.compile(f"[^{OPEN}{CLOSE}]*(?:{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}[^{OPEN}{CLOSE}]*)*")


@dataclass
class Plain:
    """Role, content and end of each turn. Signs of special tokens are hidden in the contents (`Marks`)."""

    name: str
    tokenizer: Tokenizer
    begin: str
    end: str
    between: str = ""
    capital: bool = False
    missed: int = 0

    def __post_init__(self) -> None:
        self.marks = Marks(self.tokenizer, lambda: self.begin + self.end)

    def pieces(self, messages: Messages) -> list[Piece]:
        """Return the text of a conversation."""
        return list(chain.from_iterable(map(self._turn, messages)))

    def prompt(self, messages: Messages) -> str:
        """Return the text after which the assistant answers."""
        return "".join(piece.text for piece in self.pieces(messages)) + self._begin("assistant")

    @property
    def after(self) -> str:
        """The text that ends an answer."""
        return self.end

    def template(self, goal: str) -> str:
        """Return Jinja that writes the same text, in the dialect of transformers ("hf") or llama.cpp ("gguf")."""
        role = "message['role']"
        begins = "".join(
            f"{{% if {role} == '{r}' %}}{{{{ {self._begin(r)!r} }}}}{{% endif %}}" for r in get_args(Role)
        )
        end = repr(self.end + self.between)
        if goal == "gguf" and END.decode() in self.end:  # llama.cpp's Jinja cannot emit it; it exists as a token
            end = "eos_token"
        return (
            f"{{% for message in messages %}}{begins}{{{{ message['content'] + {end} }}}}{{% endfor %}}"
            f"{{% if add_generation_prompt %}}{{{{ {self._begin('assistant')!r} }}}}{{% endif %}}"
        )

    def _begin(self, role: str) -> str:
        return self.begin.format(role.capitalize() if self.capital else role)

    def _turn(self, message: Message) -> Iterator[Piece]:
        if message.thoughts:
            name = message.thoughts[0][0]
            raise DataError(f"a message has {name!r}, which byhand's {self.name} format does not write. Remove it.")
        yield Piece(self._begin(message.role))
        yield Piece(
            f"{HERE}{self.marks.hide(message.content, message.role == 'assistant')}{HERE}{self.end}", message.learnt
        )
        yield Piece(self.between)


class Templated:
    """The model's own template.

    missed  answers of the last conversation that do not follow the text that asks for them, so are not learnt
    """

    name = "the model's"

    def __init__(self, source: str, tokenizer: Tokenizer) -> None:
        named = {one: getattr(tokenizer.conventions, one) for one in ONE}
        tokens = {
            f"{one}_token": tokenizer.token_bytes[token].decode(errors="replace")
            for one, token in named.items()
            if token is not None
        }
        self.missed, self._template = 0, Template(source, tokens)
        self.marks = Marks(tokenizer, self._around, source)

    def prompt(self, messages: Messages) -> str:
        """Return the text after which the assistant answers."""
        return bare(self._rendered(messages, prompt=True)[0])

    def pieces(self, messages: Messages) -> list[Piece]:
        """Return the text of a conversation, cut where answers begin and end."""
        answers = [i for i, message in enumerate(messages) if message.role == "assistant"]
        if self._template.tells:
            return _told(self._rendered(messages)[0], [messages[i].learnt for i in answers])
        whole, places = self._rendered(messages, [cut for i in answers for cut in ((i, True), (i + 1, False))])
        found, at, self.missed = list[Piece](), 0, 0
        for i, begin, end in zip(answers, places[::2], places[1::2], strict=True):
            if not messages[i].learnt:
                continue
            end = self._end_in(whole, messages[: i + 2]) if end < 0 else begin + self._size(whole[begin:end])
            if at <= begin <= end:
                found += [Piece(whole[at:begin]), Piece(whole[begin:end], True)]
                at = end
            else:
                self.missed += 1
        if self.missed and not found:
            raise DataError(
                "the model's chat template does not write before an answer what it writes to ask for one, so none "
                "can be learnt. Remove this conversation, or tune a model with another template."
            )
        return [*found, Piece(whole[at:])]

    def _size(self, answer: str) -> int:
        """Return where an answer ends: after its last special token if only white space follows."""
        tokens = self.marks.found(answer)
        last = tokens[-1].end() if tokens else len(answer)
        return len(answer) if answer[last:].strip() else last

    def _end_in(self, whole: str, messages: Messages) -> int:
        """Return where an answer ends that is written differently before a question; -1 if it is not found."""
        before = self._around_here([*self._values(messages[:-1]), FOLLOWING])
        if messages[-1].role != "user" or not before or not before[0].endswith(self._between):
            return -1
        if not self._between or not whole.translate(self.marks.shown).startswith(before[0]):
            return -1
        tokens = self.marks.found(self._between)
        return len(before[0]) - len(self._between) + (tokens[0].end() if tokens else 0)

    def _rendered(self, messages: Messages, cuts: Sequence[Cut] = (), prompt: bool = False) -> tuple[str, list[int]]:
        """Return the text, with signs hidden where messages wrote part of a token, and the offsets of the cuts."""
        said = self._values(messages)
        text, at = self._template.places(said, cuts, prompt)
        # A template may edit the words it knows, so the second and third try leave those. If that fails, hide only
        # signs, or nothing if no message has a token, provided that the template writes the same tokens.
        own = ""
        for words in range(3):
            veiled = self._written(self._values(messages, partial(self.marks.veil, words=words)), prompt)
            own = own if words else veiled
            if unveiled(veiled) == text:
                return self.marks.barred(text, veiled), at
        inert = self._written(self._values(messages, self.marks.hide), prompt)
        if inert.translate(self.marks.shown) != bare(text):
            inert = "" if any(self.marks.found(each) for one in said for each in one.values()) else text
        tokens, others = (
            [each.count(END.decode()), *(match[0] for match in self.marks.found(bare(each)))] for each in (inert, own)
        )
        if inert and tokens == others:
            return inert, at
        raise DataError(
            "the model's chat template edits a message that holds parts of a special token, so they cannot be told "
            "apart. Remove what looks like a special token from the message."
        )

    def _written(self, messages: Sequence[dict[str, str]], prompt: bool = False) -> str:
        try:
            return self._template(messages, prompt)
        except Refused:
            return ""  # as it writes them otherwise

    def _values(self, messages: Messages, change: Callable[[str, bool], str] | None = None) -> list[dict[str, str]]:
        """Return the messages as the template gets them. DataError for thoughts that it does not write."""
        found = list[dict[str, str]]()
        for message in messages:
            for name, _ in message.thoughts:
                if not re.search(rf"[.'\"]{name}\b", self._template.source):
                    raise DataError(
                        f"a message has {name!r}, which the model's chat template does not write. Remove it."
                    )
            said = {"content": message.content, **dict(message.thoughts)}
            if change:
                said = {name: change(text, message.role == "assistant") for name, text in said.items()}
            found.append({"role": message.role, **said})
        return found

    def _around_here(self, messages: Sequence[dict[str, str]]) -> list[str]:
        """Return the texts around each `HERE`; [] if the template cannot write these messages."""
        try:
            return bare(self._template(messages)).split(HERE)
        except Refused:
            return []

    @cached_property
    def after(self) -> str:
        """The text that ends an answer, "" if the template writes none."""
        return "".join(self._around_here([ASK, ANSWER])[1:])

    @cached_property
    def _between(self) -> str:
        """The text between an answer and the question that follows it."""
        return "".join(self._around_here([ASK, ANSWER, FOLLOWING])[1:2])

    def _around(self) -> str:
        """Return the texts that the template writes around messages, or else its whole source."""
        for probe in ([{**ASK, "role": "system"}, ASK, ANSWER, ASK], [ASK, ANSWER, ASK], [ASK, ANSWER]):
            if around := self._around_here(probe):
                return "".join([*around, self.after])
        return self._template.source


def _told(whole: str, learnt: Sequence[bool]) -> list[Piece]:
    """Return the pieces of a text in which the template marks what is generated."""
    if not TOLD.fullmatch(whole):
        raise DataError("the model's chat template nests or cuts its {% generation %} blocks. Use another template.")
    texts = GENERATED.split(whole)
    if not all(learnt) and len(texts) // 2 != len(learnt):
        raise DataError("the model's chat template does not mark each answer, but some are not to be learnt.")
    return [Piece(text, bool(i % 2) and (all(learnt) or learnt[i // 2])) for i, text in enumerate(texts)]


class Chat:
    """Writes prompts for a model of this tokenizer, and conversations with what it learns of them.

    ends   tokens that end an answer
    stops  texts that end an answer, where no token does
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.format = tokenizer, _format(tokenizer)

    @property
    def name(self) -> str:
        """The name of its format."""
        return self.format.name

    def conversation(self, messages: Messages) -> tuple[list[int], list[bool]]:
        """Return the ids of a conversation, and which of them are learnt."""
        return self.format.marks.encode(self.format.pieces(messages))

    def prompt(self, messages: Messages, check: Callable[[str], None] = lambda text: None) -> list[int]:
        """Return the ids after which the assistant answers; `check` gets their text before it is encoded."""
        text = self.format.prompt(messages)
        check(text.translate(self.format.marks.shown))
        return self.format.marks.encode([Piece(text)])[0]

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens that end an answer."""
        marks, after = self.format.marks, self.format.after
        found = {self.tokenizer.special[match[0]] for match in marks.found(after)}
        return frozenset(found | ({self.tokenizer.end} if END.decode() in after else set()))

    @cached_property
    def stops(self) -> Sequence[bytes]:
        """The texts that end an answer, if no token does."""
        text = self.format.after
        return () if self.ends or not text.strip() else (text.encode(),)


def with_template(tokenizer: Tokenizer, goal: str) -> Tokenizer:
    """Return a tokenizer with the template of its plain format (`Plain.template`); itself if it has one."""
    if tokenizer.conventions.templates:
        return tokenizer
    chat = Chat(tokenizer)
    assert isinstance(chat.format, Plain)
    found = tokenizer.conventions or Conventions(eos=min(chat.ends))
    ends = tuple(dict.fromkeys([*found.ends, *sorted(chat.ends), tokenizer.end]))
    return tokenizer.using(replace(found, ends=ends, templates={DEFAULT: chat.format.template(goal)}))


def _format(tokenizer: Tokenizer) -> Plain | Templated:
    templates = tokenizer.conventions.templates
    if templates:
        return Templated(templates.get(DEFAULT) or next(iter(templates.values())), tokenizer)
    if {"<|im_start|>", "<|im_end|>"} <= tokenizer.special.keys():
        return Plain("chatml", tokenizer, "<|im_start|>{}\n", "<|im_end|>", "\n")
    return Plain("plain", tokenizer, "{}:\n", tokenizer.end_text.decode(), capital=True)
