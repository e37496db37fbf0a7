"""The routes: OpenAI's endpoints for a model, and what clients and people ask beside them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from byhand.config_checks import brief
from byhand.errors import ByhandError
from byhand.files.reading import parse_json
from byhand.serving.answer import AnswerResponse, while_connected
from byhand.serving.errors import as_json, of_ours, refusal
from byhand.serving.explorer import Explorer
from byhand.serving.guard import Access, Guard
from byhand.serving.limits import RequestError
from byhand.serving.page import FILES
from byhand.serving.protocol import ChatCompletion, Completion, Detokenize, Explain, Tokenize
from byhand.serving.replies import ChatReply, CompletionReply
from byhand.serving.service import Service
from byhand.tokenizers.conventions import DEFAULT, ONE
from byhand.version import __version__

DEPTH = 16  # nested values of a request
LARGE = 1 << 16  # bytes of a body that takes a while to parse
STREAMED: Any = {200: {"content": {"application/json": {}, "text/event-stream": {}}}}
OTHER = "other"  # the path of what is not there, as it is counted


class Bounded(Request):
    """A request whose JSON is bounded in depth and numbers."""

    async def json(self) -> Any:
        """Return the value; HTTPException if there is none."""
        try:
            body = await self.body()
            return await asyncio.to_thread(parse_json, body, DEPTH) if len(body) > LARGE else parse_json(body, DEPTH)
        except ValueError as found:
            raise HTTPException(400, f"the body is not JSON that is read here: {str(found)[:200]}.") from None


class Route(APIRoute):
    """A route whose requests are bounded."""

    waits = False

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # pyright: ignore
        """Return the handler."""
        handle = super().get_route_handler()

        async def bounded(given: Request) -> Response:
            request = Bounded(given.scope, given.receive)
            if not self.waits:
                return await handle(request)
            await request.body()
            found = await while_connected(request.receive, request.app.state.seconds, handle(request))
            return found or Response(status_code=499)  # nobody gets it

        return bounded


class Awaited(Route):
    """A route on whose answer nothing works when its client is gone, or its time is over."""

    waits = True


def application(service: Service | None, access: Access, explorer: Explorer | None = None) -> Guard:
    """Return the application behind its guard; its lifespan is that of the service.

    explorer  adds its routes; without a service there are only these
    """
    found = service or explorer
    assert found

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service or nullcontext():
            yield
        if explorer:
            await explorer.close()

    app = FastAPI(
        title="byhand", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False,
        responses={"4XX": {"description": "An error in OpenAI's form"}},
    )  # fmt: skip
    app.router.route_class = Route
    _add_errors(app)
    _add_pages(app, {"/", "/explore"} - ({"/"} if service else set()) - ({"/explore"} if explorer else set()))
    if explorer:
        explorer.add_to(app)
    if service:
        app.router.route_class, app.state.seconds = Awaited, service.limits.seconds
        _add_texts(app, service)
        _add_facts(app, service)

    def ending() -> None:
        for each in (service, explorer):
            if each:
                each.stop()

    return Guard(Counted(app, service) if service else app, access, found.limits, ending)


class Counted:
    """An application whose requests are counted."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        status = 0

        async def noted(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            if scope["type"] == "http":
                path = getattr(scope.get("route"), "path", OTHER)
                self.service.metrics.requests.labels(path, str(status or "gone")).inc()


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(ByhandError)
    async def _(request: Request, found: ByhandError) -> Response:
        return of_ours(found)

    @app.exception_handler(HTTPException)
    async def _(request: Request, found: HTTPException) -> Response:
        said, code = found.detail, None
        if found.status_code in (404, 405):
            said, code = f"there is no {request.method} {request.scope['path'][:100]}.", "not_found"
        return refusal(said, found.status_code, code, headers=found.headers)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, found: RequestValidationError) -> Response:
        first = found.errors()[0]
        place = [each for each in first["loc"] if each not in ("body", "query", "path")]
        param = str(place[0])[:100] if place else None
        said = first["msg"].removeprefix("Value error, ")
        if said == first["msg"] and first["type"] != "missing":
            said += f", not {brief(first['input'])}"
        if len({each["loc"][1:2] for each in found.errors()}) == 1 < len(found.errors()):
            said = "; or ".join(dict.fromkeys(each["msg"] for each in found.errors()))
        if not param and first["type"] in ("model_attributes_type", "missing"):
            said = "the body must be a JSON object, sent with the header Content-Type: application/json"
        return refusal(f"{param}: {said}." if param else f"{said}.", 400, "invalid_request", param)

    @app.exception_handler(Exception)
    async def _(request: Request, found: Exception) -> Response:
        return refusal("this is a defect of the server; its log has more", 500)


def _add_texts(app: FastAPI, service: Service) -> None:
    @app.post("/v1/completions", responses=STREAMED)
    async def _(request: Completion) -> Response:
        """Continue prompts."""
        served, answers, prompt = await service.answers(request)
        return AnswerResponse(service, CompletionReply(served, request.top is not None), answers, prompt, request)

    @app.post("/v1/chat/completions", responses=STREAMED)
    async def _(request: ChatCompletion) -> Response:
        """Answer a conversation."""
        served, answers, prompt = await service.answers(request)
        return AnswerResponse(service, ChatReply(served, request.top is not None), answers, prompt, request)

    @app.post("/v1/explain")
    async def _(request: Explain) -> Response:
        """Explain one number of the model, on a prompt: its equation, its terms, the numbers that it is made of."""
        served, most = service.served, service.limits.explained
        for text in (request.prompt, request.targets or ""):
            if len(await service.texts.run(served.tokenizer.encode, text)) > most:
                raise RequestError(f"prompt and targets may have {most} tokens here.", param="prompt")
        values = request.model_dump(exclude_none=True)
        content = await service.explaining.run(lambda: as_json(service.explain(served.version, values)))
        return Response(content, media_type="application/json")

    @app.post("/tokenize")
    async def _(request: Tokenize) -> Response:
        """Return the tokens of a text."""
        tokenizer, special = service.served.tokenizer, request.add_special_tokens is not False
        encode = tokenizer.prompt if special else tokenizer.encode
        tokens = await service.texts.run(encode, request.prompt.encode())
        return _json({"tokens": tokens, "count": len(tokens), "max_model_len": service.served.config.seq_len})

    @app.post("/detokenize")
    async def _(request: Detokenize) -> Response:
        """Return the text of tokens."""
        content = await service.texts.run(service.served.tokenizer.decode, request.tokens)
        return _json({"prompt": content.decode(errors="replace")})


def _add_facts(app: FastAPI, service: Service) -> None:
    def model() -> dict[str, Any]:
        served = service.served
        about = {"id": served.name, "object": "model", "created": served.created, "owned_by": "byhand"}
        about |= {"max_model_len": served.config.seq_len, "version": served.version}
        about |= {"command": served.command or shlex.join(("byhand", "chat", served.name))}
        return about | {"sampling": served.tokenizer.conventions.sampling}  # as the model's makers suggest

    @app.get("/v1/models")
    async def _() -> Response:
        """List the model."""
        return _json({"object": "list", "data": [model()]})

    @app.get("/v1/models/{id:path}")
    async def _(id: str) -> Response:
        """Describe the model."""
        if id != service.served.name:
            raise RequestError(
                f"there is no model {id[:100]!r}. Use {service.served.name}.", 404, "model_not_found", "model"
            )
        return _json(model())

    @app.get("/tokenizer_info")
    async def _() -> Response:
        """Describe the tokenizer."""
        tokenizer = service.served.tokenizer
        found, texts = tokenizer.conventions, tokenizer.token_bytes
        named = {f"{one}_token": getattr(found, one) for one in ONE}
        spelled = {name: None if i is None else texts[i].decode(errors="replace") for name, i in named.items()}
        if spelled["eos_token"] is None:
            spelled["eos_token"] = tokenizer.end_text.decode(errors="replace")
        template = found.templates.get(DEFAULT) or next(iter(found.templates.values()), None)
        about = {"tokenizer_class": tokenizer.kind, "model_max_length": service.served.config.seq_len}
        return _json({**about, **spelled, "chat_template": template})

    @app.get("/metrics", response_class=PlainTextResponse)
    async def _() -> Response:
        """Count, for Prometheus."""
        return PlainTextResponse(service.metrics.write())


def _add_pages(app: FastAPI, absent: Collection[str]) -> None:
    @app.head("/health", include_in_schema=False)
    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz")
    @app.get("/health")
    async def _() -> Response:
        """Say that the server answers."""
        return _json({"status": "ok"})

    @app.get("/favicon.ico", include_in_schema=False)
    async def _() -> Response:
        return Response(status_code=204)

    for path in FILES.keys() - absent:

        @app.api_route(path, methods=["GET", "HEAD"], name=path, include_in_schema=False)
        async def _(request: Request) -> Response:
            return FILES[request.scope["path"]].response(request)


def _json(value: Any) -> Response:
    return Response(as_json(value), media_type="application/json")
