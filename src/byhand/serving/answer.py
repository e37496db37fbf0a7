"""An answer on its way: whole or as a stream, as long as its client is there and its time lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from byhand.generation import Stream
from byhand.serving.errors import as_json, error
from byhand.serving.limits import RequestError
from byhand.serving.replies import CompletionReply
from byhand.serving.service import Service
from byhand.serving.worker import Answers, Growth, ServedChoice

Result = TypeVar("Result")


class AnswerResponse(Response):
    """An answer that is made while its client waits for it; nothing works on for a client that is gone."""

    def __init__(self, service: Service, reply: CompletionReply, answers: Answers, prompt: int, request: Any) -> None:
        self.service, self.reply, self.answers, self.prompt, self.request = service, reply, answers, prompt, request
        self.status_code, self.background = 200, None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        work = self._stream(send) if self.request.stream else self._whole(scope, receive, send)
        try:
            await while_connected(receive, self.service.limits.seconds, work)
        except RequestError as found:
            if not self.request.stream:
                raise
            content = as_json(error(str(found), found.status, found.code))
            await send({"type": "http.response.body", "body": b"data: " + content + b"\n\n"})
        finally:
            self.answers.cancel()
            self.service.count(self.answers.choices)

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        choices, per = self.answers.choices, self.request.candidates
        pieces: list[list[Growth]] = [[] for _ in choices]
        async for i, piece in self.answers.follow():
            pieces[i].append(piece)
        if per > self.request.count:
            groups = (range(i, i + per) for i in range(0, len(pieces), per))
            ranked = (sorted(group, key=lambda i: mean(choices[i].stream), reverse=True) for group in groups)
            pieces = [pieces[i] for group in ranked for i in group[: self.request.count]]
        content = as_json(self.reply.whole(pieces, usage(self.prompt, choices)))
        await Response(content, media_type="application/json")(scope, receive, send)

    async def _stream(self, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        options = self.request.stream_options
        counted = {"usage": None} if options and options.include_usage else {}

        async def write(value: Any, more: bool = True) -> None:
            body = b"data: " + (as_json(value) if isinstance(value, dict) else value) + b"\n\n"
            await send({"type": "http.response.body", "body": body, "more_body": more})

        for chunk in self.reply.begin(len(self.answers.choices)):
            await write(chunk | counted)
        async for i, piece in self.answers.follow():
            await write(self.reply.part(i, piece) | counted)
        if counted:
            found = usage(self.prompt, self.answers.choices)
            await write(self.reply.chunked([]) | {"usage": found})
        await write(b"[DONE]", more=False)


async def while_connected(receive: Receive, seconds: float, work: Awaitable[Result]) -> Result | None:
    """Return what work returns; None if its client is gone before. RequestError if it takes longer.

    receive  of the request, whose body is read
    """

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(gone())]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            return tasks[0].result()  # pyright: ignore[reportReturnType]
        if tasks[1].done():
            return None
        raise RequestError(f"the answer took more than {seconds:g} seconds.", 504, "timeout")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # then nothing works on for it


def usage(prompt: int, choices: Sequence[ServedChoice]) -> dict[str, int]:
    """Return the tokens of a request: a prompt counts once, every drawn token of every candidate."""
    drawn = sum(choice.drawn for choice in choices)
    return {"prompt_tokens": prompt, "completion_tokens": drawn, "total_tokens": prompt + drawn}


def mean(stream: Stream) -> float:
    """Return the mean ln p of the drawn tokens, by which candidates are compared; without an echoed prompt."""
    scores = [*stream.logprobs, *([stream.ended[1]] if stream.ended else [])]
    return sum(scores) / len(scores) if scores else 0.0
