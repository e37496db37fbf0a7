"""Answers as OpenAI's API writes them: whole, and as the chunks of a stream."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any
from uuid import uuid4

from byhand.serving.served import Served
from byhand.serving.text import name_of
from byhand.serving.worker import Growth, Token

UNLIKELY = -9999.0  # OpenAI's for a token of probability 0, which JSON cannot write as ln 0


@dataclass
class CompletionReply:
    """An answer's form.

    scored  with log-probabilities
    """

    served: Served
    scored: bool
    kind: str = "text_completion"
    chunk: str = "text_completion"
    prefix: str = "cmpl"
    head: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        about = {"created": int(time()), "model": self.served.name, "system_fingerprint": self.served.version}
        self.head = {"id": f"{self.prefix}-{uuid4().hex}", **about}

    def whole(self, choices: Sequence[Sequence[Growth]], usage: Mapping[str, int]) -> dict[str, Any]:
        """Return the answer, of the pieces of each choice."""
        found = [self._choice(i, pieces) for i, pieces in enumerate(choices)]
        return {"object": self.kind, **self.head, "choices": found, "usage": usage}

    def begin(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield what a stream of so many choices begins with."""
        yield from ()

    def part(self, i: int, piece: Growth) -> dict[str, Any]:
        """Return the chunk with a piece of choice i."""
        return self.chunked([self._choice(i, [piece])])

    def chunked(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a chunk."""
        return {"object": self.chunk, **self.head, "choices": choices}

    def _choice(self, i: int, pieces: Sequence[Growth]) -> dict[str, Any]:
        text = "".join(piece.text for piece in pieces)
        tokens = [token for piece in pieces for token in piece.tokens]
        scores = self._scores(tokens) if self.scored else None
        return {"index": i, "text": text, "logprobs": scores, "finish_reason": pieces[-1].finish}

    def _scores(self, tokens: Sequence[Token]) -> dict[str, Any]:
        """Return the log-probabilities of tokens. Alternatives are by name: of two of one name, the likelier one."""
        likeliest = list[dict[str, float] | None]()
        for token in tokens:
            names = {self._name(i): _number(logp) for i, logp in reversed(token.likeliest)}
            names = dict(reversed(names.items()))
            likeliest.append(None if token.logp is None else names | {self._name(token.id): _number(token.logp)})
        return {
            "tokens": [self._name(token.id) for token in tokens],
            "token_logprobs": [None if token.logp is None else _number(token.logp) for token in tokens],
            "top_logprobs": likeliest,
            "text_offset": [token.offset for token in tokens],
        }

    def _name(self, token: int) -> str:
        return name_of(self.served.tokenizer.token_bytes.get(token), token)


@dataclass
class ChatReply(CompletionReply):
    """The form of an answer in a conversation."""

    kind: str = "chat.completion"
    chunk: str = "chat.completion.chunk"
    prefix: str = "chatcmpl"

    def begin(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield what a stream of so many choices begins with: who speaks."""
        for i in range(count):
            delta = {"role": "assistant", "content": ""}
            yield self.chunked([{"index": i, "delta": delta, "logprobs": None, "finish_reason": None}])

    def part(self, i: int, piece: Growth) -> dict[str, Any]:
        """Return the chunk with a piece of choice i."""
        choice = self._choice(i, [piece])
        text = choice.pop("message")["content"]
        return self.chunked([{**choice, "delta": {"content": text} if text else {}}])

    def _choice(self, i: int, pieces: Sequence[Growth]) -> dict[str, Any]:
        found = super()._choice(i, pieces)
        text = found.pop("text")
        return {**found, "message": {"role": "assistant", "content": text, "refusal": None}}

    def _scores(self, tokens: Sequence[Token]) -> dict[str, Any]:
        content = list[dict[str, Any]]()
        for token in tokens:
            found = self._scored(token.id, token.logp or 0.0) | ({"bytes": []} if token.ends else {})
            content.append({**found, "top_logprobs": [self._scored(*each) for each in token.likeliest]})
        return {"content": content, "refusal": None}

    def _scored(self, token: int, logp: float) -> dict[str, Any]:
        content = self.served.tokenizer.token_bytes.get(token)
        spelled = None if content is None else [*content]
        return {"token": name_of(content, token), "logprob": _number(logp), "bytes": spelled}


def _number(logp: float) -> float:
    return logp if math.isfinite(logp) else UNLIKELY
