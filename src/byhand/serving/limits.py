"""What a server takes on: bounds of requests, checked before work begins for them."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.errors import ByhandError


class RequestError(ByhandError):
    """A request that is not answered, with what OpenAI's clients read: the status, the code, the field at fault."""

    def __init__(self, message: str, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


@dataclass(frozen=True)
class Limits:
    """Bounds of a server.

    slots        texts that are continued side by side
    queue        texts that may wait for a slot; more are refused with 429
    seconds      that a request may take, waiting included
    body         bytes of a request's body
    drained      bytes of a body that is too long which are read, and dropped, so that its client reads the answer
    header_seconds, body_seconds  in which a request's header and its body must have come
    read_seconds  in which a client must read something of what was sent to it
    connections  that may be open
    choices      texts of a request: prompts times candidates
    scores       log-probabilities of a request, with the alternatives that it asks for
    lane         requests that wait for the tokenizer, or for an explanation
    explained    tokens of a prompt that is explained
    """

    slots: int = 8
    queue: int = 256
    seconds: float = 600.0
    body: int = 1 << 20
    drained: int = 1 << 24
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    read_seconds: float = 30.0
    connections: int = 512
    choices: int = 128
    scores: int = 1 << 19
    lane: int = 64
    explained: int = 64
