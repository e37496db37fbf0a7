"""A small model behind the endpoints, in the process of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from socket import create_server
from typing import Any, TypeVar

import httpx

from byhand import ModelConfig, TinyGPT
from byhand.generation import Engine
from byhand.serving.app import application
from byhand.serving.connections import Server
from byhand.serving.explorer import Explorer
from byhand.serving.guard import Access
from byhand.serving.limits import Limits
from byhand.serving.served import Served
from byhand.serving.service import Service
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.tokenizer import Tokenizer
from cli.process import PATIENCE

Result = TypeVar("Result")
CONTEXT = 48
EXPLAINED = {"answer": 42}


def model(vocab_size: int = 256, seed: int = 3, context: int = CONTEXT) -> TinyGPT:
    """A model with random weights, large enough that some tokens are likelier than others."""
    config = ModelConfig(vocab_size=vocab_size, seq_len=context, d_model=16, n_layers=2, n_heads=2)
    made = TinyGPT(config, seed=seed)
    for parameter in made.parameters().values():
        parameter.data = parameter.data * 4
    return made


def service(
    tokenizer: Tokenizer = BYTES, ends: frozenset[int] = frozenset(), limits: Limits | None = None,
    context: int = CONTEXT, **how: Any,
) -> Service:  # fmt: skip
    """A service of a small model; `how` are settings of the engine."""
    limits = limits or Limits(slots=3)
    made = model(tokenizer.vocab_size, context=context)
    engine = Engine(made, limits.slots, **{"runtime": "numpy", "queue": limits.queue} | how)
    served = Served("small", "step-00000001", made.config, tokenizer, ends, None, engine)
    return Service(served, lambda version, values: EXPLAINED, limits=limits)


@asynccontextmanager
async def client(found: Service, access: Access | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application, without a socket."""
    app = application(found, access or Access())
    async with (
        found,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=PATIENCE) as made,  # pyright: ignore
    ):
        yield made


def asking(ask: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Result]], **how: Any) -> Result:
    """Return what requests of a service give."""

    async def run() -> Result:
        async with client(service(**how)) as made:
            return await ask(made)

    return asyncio.run(run())


def posted(path: str, body: Any, **how: Any) -> httpx.Response:
    """Return the response to one request."""
    return asking(lambda made: made.post(path, json=body), **how)


def events(response: httpx.Response) -> list[Any]:
    """Return the values of a stream; the last one is [DONE]."""
    import json

    lines = response.text.split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


@contextmanager
def listening(
    found: Service | None, access: Access | None = None, explorer: Explorer | None = None, port: int = 0
) -> Iterator[int]:
    """Serve at a socket of this machine, in a thread; yield the port."""
    ready = threading.Event()
    limits = found.limits if found else Limits()
    with create_server(("127.0.0.1", port)) as socket:
        server = Server(application(found, access or Access(), explorer), limits, ready.set)
        thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
        thread.start()
        assert ready.wait(PATIENCE)
        try:
            yield socket.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
