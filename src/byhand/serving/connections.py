"""Connections: uvicorn's, with a bound in time for a header that does not come, and no signals of its own."""

from __future__ import annotations

import asyncio
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


def protocol(limits: Limits) -> type[H11Protocol]:
    """Return the protocol of a connection, bounded."""

    class Bounded(H11Protocol):
        timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
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
            if self.timer is None and self._is_idle() and self.conn.trailing_data[0]:  # the next one has begun
                self._expect_header()

        def connection_lost(self, exc: Exception | None) -> None:
            self._unset_timer()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            self._refuse(400, "this is not a valid HTTP request.")

        def _is_idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _expect_header(self) -> None:
            self.timer = self.loop.call_later(limits.header_seconds, self.transport.abort)

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

    return Bounded


class Server(uvicorn.Server):
    """A server whose process receives the signals itself, and sets `should_exit`.

    ready  called when it answers
    """

    def __init__(self, app: Any, limits: Limits, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app, http=protocol(limits), ws="none", lifespan="on", log_config=None, access_log=False,
                log_level="critical", server_header=False, date_header=False, proxy_headers=False,
                timeout_keep_alive=KEPT_ALIVE, timeout_graceful_shutdown=GRACE,
            )
        )  # fmt: skip
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process."""
        yield

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self._ready()
