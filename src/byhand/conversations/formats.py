"""How a model writes a conversation: by its own chat template, or by a plain one of byhand's.

    the model's template   Jinja, which comes with the model (`tokenizers/conventions.py`)
    chatml                 <|im_start|>user, a newline, what is said, <|im_end|>, a newline: if the tokenizer has
                           these special tokens
    plain                  User:, a newline, what is said, and the token that ends a document: for any tokenizer

Learnt are the answers, each with what ends it. What belongs to an answer is found by rendering the conversation up to
it, as it is rendered to ask for it, and then with it; or the template says so by `{% generation %}`. The pieces in
between are encoded one by one, so that a model reads in training the tokens that it reads when it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from typing import NamedTuple, Protocol, get_args

from byhand.conversations.marks import CLOSE, OPEN, Marks, unmarked
from byhand.conversations.messages import Message, Messages, Role
from byhand.conversations.sandbox import Template
from byhand.errors import DataError
from byhand.tokenizers.conventions import DEFAULT, ONE, Conventions
from byhand.tokenizers.tokenizer import END, Tokenizer

PROBE = (Message("user", "0"), Message("assistant", "1"))


class Piece(NamedTuple):
    """A marked text, and whether it is learnt."""

    text: str
    learnt: bool = False


class Format(Protocol):
    """Messages to marked texts; see `Marks`."""

    @property
    def name(self) -> str:
        """What `byhand info` calls it."""
        ...

    def pieces(self, messages: Messages) -> list[Piece]:
        """Return the text of a conversation. DataError if the template cannot write it."""
        ...

    def prompt(self, messages: Messages) -> str:
        """Return the text after which the assistant answers."""
        ...


@dataclass(frozen=True)
class Plain:
    """A role, what it says, and what ends its turn."""

    name: str
    marks: Marks
    begin: str
    end: str
    after: str = ""
    capital: bool = False

    def pieces(self, messages: Messages) -> list[Piece]:
        """Return the text of a conversation."""
        return list(chain.from_iterable(map(self._turn, messages)))

    def prompt(self, messages: Messages) -> str:
        """Return the text after which the assistant answers."""
        return "".join(piece.text for piece in self.pieces(messages)) + self._begin("assistant")

    def template(self, goal: str) -> str:
        """Return Jinja that writes the same text, in what transformers ("hf") and llama.cpp ("gguf") know."""
        role = "message['role']"
        begins = "".join(
            f"{{% if {role} == '{r}' %}}{{{{ {self._begin(r)!r} }}}}{{% endif %}}" for r in get_args(Role)
        )
        end = repr(self.end + self.after)
        if goal == "gguf" and END.decode() in self.end:  # llama.cpp's Jinja cannot write it, but has it as a token
            end = "eos_token"
        return (
            f"{{% for message in messages %}}{begins}{{{{ message['content'] + {end} }}}}{{% endfor %}}"
            f"{{% if add_generation_prompt %}}{{{{ {self._begin('assistant')!r} }}}}{{% endif %}}"
        )

    def _begin(self, role: str) -> str:
        return self.begin.format(role.capitalize() if self.capital else role)

    def _turn(self, message: Message) -> Iterator[Piece]:
        yield Piece(self._begin(message.role))
        yield Piece(self.marks.guarded(message)["content"] + self.end, message.role == "assistant")
        yield Piece(self.after)


class Templated:
    """The model's own template."""

    name = "the model's"

    def __init__(self, source: str, marks: Marks) -> None:
        named = {one: getattr(marks.tokenizer.conventions, one) for one in ONE}
        tokens = {
            f"{one}_token": marks.tokenizer.token_bytes[token].decode(errors="replace")
            for one, token in named.items()
            if token is not None
        }
        self.marks, self._template = marks, Template(source, tokens)

    def prompt(self, messages: Messages) -> str:
        """Return the text after which the assistant answers."""
        return self._rendered(messages, True).replace(OPEN, "").replace(CLOSE, "")

    def _rendered(self, messages: Messages, prompt: bool = False) -> str:
        return self._template([self.marks.guarded(message) for message in messages], prompt)

    def pieces(self, messages: Messages) -> list[Piece]:
        """Return the text of a conversation, cut where answers begin and end."""
        whole, found, begin = self._rendered(messages), list[Piece](), 0
        if self._template.tells:
            before, *answers = whole.split(OPEN)
            found.append(Piece(before))
            for answer, after in (each.split(CLOSE, 1) for each in answers):
                found += [Piece(answer, True), Piece(after)]
            return found
        for i, message in enumerate(messages):
            if message.role == "assistant":
                asked = self.prompt(messages[:i])
                answered = whole if i + 1 == len(messages) else self._rendered(messages[: i + 1])
                if not (whole.startswith(answered) and answered.startswith(asked) and len(asked) >= begin):
                    raise DataError(
                        "the model's chat template does not write what comes before an answer as it does to ask for "
                        "one, so answers cannot be told from the rest. Tune a model with another template."
                    )
                end = begin_of_rest(self.marks, answered, len(asked))
                found += [Piece(whole[begin : len(asked)]), Piece(whole[len(asked) : end], True)]
                begin = end
        return [*found, Piece(whole[begin:])]


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces of which no two neighbours are learnt, or not: each is encoded by itself."""
    groups = groupby(pieces, key=lambda piece: piece.learnt)
    return [Piece("".join(piece.text for piece in group), learnt) for learnt, group in groups]


def begin_of_rest(marks: Marks, text: str, begin: int) -> int:
    """Return where an answer from `begin` on ends: after its last special token if only white space follows."""
    last = max((match.end() for match in marks.found(text) if match.start() >= begin), default=len(text))
    return len(text) if text[last:].strip() else last


class Chat:
    """How a model of this tokenizer is asked, and what of a conversation it learns.

    ends   tokens that end an answer
    stops  texts that do, where no token does
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.marks = Marks(tokenizer)
        self.format: Format = _format(self.marks)

    @property
    def name(self) -> str:
        """The name of its format."""
        return self.format.name

    def conversation(self, messages: Messages) -> tuple[list[int], list[bool]]:
        """Return the ids of a conversation, and which of them are learnt."""
        ids, learnt = list[int](), list[bool]()
        for piece in joined(self.format.pieces(messages)):
            new = self.marks.encode(piece.text)
            ids += new
            learnt += [piece.learnt] * len(new)
        return ids, learnt

    def prompt(self, messages: Messages) -> list[int]:
        """Return the ids after which the assistant answers: those that it has read in training."""
        pieces, before = list[Piece](), self.format.prompt(messages)
        if any(message.role == "assistant" for message in messages):
            last = max(i for i, message in enumerate(messages) if message.role == "assistant")
            known = self.format.pieces(messages[: last + 1])
            text = "".join(piece.text for piece in known)
            if before.startswith(text):
                pieces, before = known, before[len(text) :]
                while pieces and not pieces[-1].learnt:  # the text up to the question is one piece in training
                    before = pieces.pop().text + before
        return [token for piece in joined([*pieces, Piece(before)]) for token in self.marks.encode(piece.text)]

    @cached_property
    def _after(self) -> str:
        """The text that ends an answer."""
        answer = next((piece.text for piece in self.format.pieces(PROBE) if piece.learnt), "")
        return answer.partition("1")[2]

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens that end an answer."""
        found = {self.marks.special[match[0]] for match in self.marks.found(self._after)}
        return frozenset(found | ({self.marks.tokenizer.end} if END.decode() in self._after else set()))

    @cached_property
    def stops(self) -> Sequence[bytes]:
        """The texts that end an answer, if no token does."""
        text = unmarked(self._after)
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


def _format(marks: Marks) -> Format:
    templates = marks.tokenizer.conventions.templates
    if templates:
        return Templated(templates.get(DEFAULT) or next(iter(templates.values())), marks)
    if {"<|im_start|>", "<|im_end|>"} <= marks.special.keys():
        return Plain("chatml", marks, "<|im_start|>{}\n", "<|im_end|>", "\n")
    return Plain("plain", marks, "{}:\n", marks.tokenizer.end_text.decode(), capital=True)
