"""Connections: uvicorn's, with bounds for clients that neither write nor read, and no signals of its own."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from byhand.serving.errors import as_json, error
from byhand.serving.limits import Limits

KEPT_ALIVE = 30  # seconds for the next request of a connection
GRACE = 30  # seconds for answers that have begun when the server stops
PIECE = 1 << 14  # bytes that are read at once: in chunks of two bytes they take 50 ms, in which nobody else is served
BACKLOG = 128  # connections that the system keeps, and that are taken at once
FILES = 64  # that the process opens besides
log = logging.getLogger(__name__)


def affordable(connections: int) -> int:
    """Return how many connections the process may hold: each is an open file. Raise its own bound where it may."""
    if sys.platform == "win32":
        return connections
    from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

    (soft, hard), need = getrlimit(RLIMIT_NOFILE), connections + BACKLOG + FILES
    if soft != RLIM_INFINITY and soft < need:
        soft = need if hard == RLIM_INFINITY else min(need, hard)
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    return connections if soft == RLIM_INFINITY else min(connections, max(8, soft - FILES - BACKLOG))


def protocol(limits: Limits) -> type[H11Protocol]:
    """Return the protocol of a connection, bounded."""
    most = affordable(limits.connections)

    class Bounded(H11Protocol):
        timer: asyncio.TimerHandle | None = None
        unread: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            super().connection_made(transport)
            transport.max_size = PIECE  # pyright: ignore[reportAttributeAccessIssue]
            if len(self.connections) > most:
                self._refuse(503, "there are too many connections. Try again later.")
            else:
                self._expect_header()

        def data_received(self, data: bytes) -> None:
            if self.timer is None and self._is_idle():
                self._expect_header()
            super().data_received(data)
            if self.timer is not None and not self._is_idle():
                self._unset_timer()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._expect_reading()
            if self.timer is None and self._is_idle() and self.conn.trailing_data[0]:  # the next one has begun
                self._expect_header()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._expect_reading()

        def connection_lost(self, exc: Exception | None) -> None:
            self._unset_timer()
            if self.unread is not None:
                self.unread.cancel()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            self._refuse(400, "this is not a valid HTTP request.")

        def _is_idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _expect_header(self) -> None:
            self.timer = self.loop.call_later(limits.header_seconds, self.transport.abort)

        def _expect_reading(self) -> None:
            """Abort when the client reads nothing for a while of what it was sent, be it for an answer that ended."""
            if self.unread is None:
                self.unread = self.loop.call_later(limits.read_seconds, self._look, self._size())

        def _look(self, before: int) -> None:
            self.unread, size = None, self._size()
            if size and size >= before:
                self.transport.abort()
            elif size:
                self._expect_reading()

        def _size(self) -> int:
            return self.transport.get_write_buffer_size()

        def _unset_timer(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

        def _refuse(self, status: int, message: str) -> None:
            """Answer what never became a request, and close."""
            self._unset_timer()
            content = as_json(error(message, status))
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                head = f"HTTP/1.1 {status} \r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
                self.transport.write(f"{head}connection: close\r\n\r\n".encode() + content)
            self.transport.close()
            self._expect_reading()

    return Bounded


class Said:
    """What the event loop reports, as a line: such as too many open files, again and again."""

    before = ""

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Say it, once."""
        said = f"{context['message']}: {context.get('exception')}"
        if said != self.before:
            log.error("%.300s", said)
        self.before = said


class Server(uvicorn.Server):
    """A server whose process receives the signals itself, and sets `should_exit`.

    ready  called when it answers
    """

    def __init__(self, app: Any, limits: Limits, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app, http=protocol(limits), ws="none", loop="asyncio", lifespan="on", log_config=None,
                access_log=False, log_level="critical", server_header=False, date_header=False, proxy_headers=False,
                backlog=BACKLOG, timeout_keep_alive=KEPT_ALIVE, timeout_graceful_shutdown=GRACE,
            )
        )  # fmt: skip
        self._ready, self._stop = ready, app.stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process."""
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to answer."""
        asyncio.get_running_loop().set_exception_handler(Said())
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Take no more connections, and finish what was asked."""
        self._stop()
        await super().shutdown(sockets)
