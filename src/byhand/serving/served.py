"""A model as it is served: its tokens, how it is asked, and the choices that a request makes of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from byhand.conversations.formats import Chat
from byhand.conversations.messages import conversation
from byhand.errors import DataError
from byhand.generation import Engine, Stream
from byhand.generation.text import beginning
from byhand.model_config import ModelConfig
from byhand.serving.limits import Limits, RequestError
from byhand.serving.protocol import ChatCompletion, Completion, TextRequest, seed_of_none
from byhand.serving.text import GrowingText
from byhand.serving.worker import ServedChoice
from byhand.tokenizers.tokenizer import Tokenizer


class PromptTokens(NamedTuple):
    """A prompt's tokens, and the bytes of each in the text that `echo` gives back: none of what was put around it."""

    tokens: list[int]
    echoed: list[bytes]


@dataclass(frozen=True, eq=False)
class Served:
    """A model, and what is known of it.

    name     its id
    version  which checkpoint it is
    ends     tokens that end a text
    allowed  booleans (V,): which ids may be drawn; None allows all
    command  that chats with it in a terminal
    """

    name: str
    version: str
    config: ModelConfig
    tokenizer: Tokenizer
    ends: frozenset[int]
    allowed: np.ndarray | None
    engine: Engine
    chat: Chat = field(init=False)
    command: str = ""
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        object.__setattr__(self, "chat", Chat(self.tokenizer))
        object.__setattr__(self, "_longest", max(map(len, self.tokenizer.token_bytes.values()), default=1))

    def prompt(self, given: str | list[int]) -> PromptTokens:
        """Return the tokens of a prompt; RequestError if it is longer than the context."""
        tokenizer = self.tokenizer
        if not isinstance(given, str):
            if unknown := [token for token in given if token not in tokenizer.token_bytes]:
                raise RequestError(f"prompt has the token {unknown[0]}, which the vocabulary lacks.", param="prompt")
            tokens, before, after = given, 0, 0
            self._require_room(len(tokens))
        else:
            content = given.encode()
            self._require_room_of(len(content))
            tokens = tokenizer.prompt(content)
            before, after = len(tokenizer.conventions.before), len(tokenizer.conventions.after)
            if not tokens:
                tokens, before = beginning(tokenizer, self.config.vocab_size), 1
            self._require_room(len(tokens))
        decode = tokenizer.decoder()
        pieces = [decode((token,)) for token in tokens]
        shown = range(before, len(tokens) - after)
        return PromptTokens(tokens, [piece if i in shown else b"" for i, piece in enumerate(pieces)])

    def asked(self, messages: Any) -> PromptTokens:
        """Return the tokens after which the assistant answers; DataError if these are not messages."""
        found = conversation([{**message, "name": None} for message in messages], "messages")
        if all(not message.content for message in found):
            raise DataError("the messages are empty. Ask something.")
        tokens = self.chat.prompt(found, lambda text: self._require_room_of(len(text), "messages"))
        if not tokens:
            raise DataError("the chat template writes no text for these messages. Ask something else.")
        self._require_room(len(tokens), "messages")
        return PromptTokens(tokens, [])

    def choices(self, request: Completion | ChatCompletion, limits: Limits) -> tuple[list[ServedChoice], int]:
        """Return the choices that a request makes, prompt by prompt, and how many tokens its prompts have."""
        prompts, ends, stops = 1, self.ends, [text.encode() for text in request.stops]
        if isinstance(request, ChatCompletion):
            ends, stops = ends | self.chat.ends, [*self.chat.stops, *stops]
        else:
            prompts = len(request.prompts)
        if prompts * request.candidates > limits.choices:
            raise RequestError(
                f"the request asks for {prompts * request.candidates} texts; at most {limits.choices}."
            )
        special = self.tokenizer.special
        ends |= {special[text] for text in request.stops if text in special}
        asked = (
            [self.asked(request.messages)]
            if isinstance(request, ChatCompletion)
            else map(self.prompt, request.prompts)
        )
        found, total, scores = list[ServedChoice](), 0, 0
        for prompt in asked:
            total += len(prompt.tokens)
            for choice in self._candidates(request, prompt, ends, stops):
                stream = choice.stream
                scores += stream.scored * (stream.count + stream.prompt * stream.prompt_scored) * (1 + stream.top)
                if scores > limits.scores:
                    raise RequestError(
                        "the request asks for too many log-probabilities. Ask for fewer texts or tokens."
                    )
                found.append(choice)
        return found, total

    def _candidates(
        self, request: TextRequest, prompt: PromptTokens, ends: frozenset[int], stops: list[bytes]
    ) -> Iterator[ServedChoice]:
        completion = isinstance(request, Completion)
        echo, top = bool(completion and request.echo), request.top  # pyright: ignore[reportAttributeAccessIssue]
        room = max(1, self.config.seq_len - len(prompt.tokens))
        usual = 16 if completion else room  # OpenAI's
        count, seed = min(usual if request.most is None else request.most, room), seed_of_none()
        scored = top is not None or request.candidates > request.count
        for i in range(request.candidates):
            text = GrowingText(self.tokenizer.decoder(prompt.tokens[-1]), stops, prompt.echoed if echo else ())
            stream = Stream(
                prompt.tokens, count, request.sampling(self.tokenizer.conventions, i, seed), self.allowed, ends,
                scored=scored, until=text, top=top or 0, prompt_scored=echo and top is not None,
            )  # fmt: skip
            yield ServedChoice(stream, text, echo)

    def _require_room_of(self, size: int, param: str = "prompt") -> None:
        """Raise RequestError if a text of so many bytes or more is longer than the context, before it is encoded."""
        if self.tokenizer.faithful:  # then a token stands for so many bytes at most, and nothing is lost
            self._require_room(-(-size // self._longest), param)  # pyright: ignore[reportAttributeAccessIssue]

    def _require_room(self, count: int, param: str = "prompt") -> None:
        """Raise RequestError if a prompt of so many tokens is longer than the context."""
        if count > (most := self.config.seq_len):
            raise RequestError(
                f"this model's maximum context length is {most} tokens, but the {param} came to {count} or more.",
                400, "context_length_exceeded", param,
            )  # fmt: skip
