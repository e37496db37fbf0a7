"""The guard before every route: who may ask, by which name, from which page, with how large a body.

It reads `scope["path"]`, as the routes do, and no URL that is made from a request's headers. A page of another site
cannot reach a server on this machine through a browser: its Origin is refused, and a name of its own that leads here
(DNS rebinding) is none of the allowed hosts.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from byhand.serving.errors import refusal
from byhand.serving.limits import Limits, RequestError
from byhand.serving.page import FILES

log = logging.getLogger(__name__)
LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))
OPEN = frozenset(("/favicon.ico", "/health", "/healthz", *FILES))  # need no key: they say nothing, and start nothing
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
]


@dataclass(frozen=True)
class Access:
    """Who may ask.

    key      the key that a request must have; "" takes any
    hosts    names of this server in a Host header, besides `LOCAL`
    origins  pages of other servers that may ask, such as http://localhost:3000
    open     paths that need no key
    """

    key: str = ""
    hosts: Collection[str] = ()
    origins: Collection[str] = ()
    open: frozenset[str] = OPEN


class Guard:
    """The application behind its checks.

    ending  called when the server stops, before it waits for the answers that have begun
    """

    def __init__(
        self, app: ASGIApp, access: Access, limits: Limits, ending: Callable[[], None] = lambda: None
    ) -> None:
        self.app, self.access, self.limits, self.ending = app, access, limits, ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begun = False
        allowed: list[tuple[bytes, bytes]] = []

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS, *allowed]}
            await send(message)

        try:
            allowed = self._require(scope)
            refused = None
            if scope["method"] == "OPTIONS" and allowed:
                refused = Response(status_code=204, headers=PREFLIGHT)
            else:
                self._require_key(scope)
                receive = await self._read(scope, receive)
        except RequestError as error:
            headers = {"connection": "close"} | ({"www-authenticate": "Bearer"} if error.status == 401 else {})
            refused = refusal(str(error), error.status, error.code, headers=headers)
        try:
            await (refused or self.app)(scope, receive, guarded)
        except Exception as error:  # a defect: it is said here in a line, and to the client without details
            log.error("%s %.200s: %s: %s", scope["method"], scope["path"], type(error).__name__, error)
            if not begun:
                await refusal("this is a defect of the server; its log has more", 500)(scope, receive, guarded)

    def _require(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """Check framing, Host and Origin; return the headers that let another server's page read the answer."""
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            raise RequestError("the length of the body is given in two ways.")  # a proxy may believe the other one
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        found = HOST.fullmatch(hosts[0].decode("latin-1")) if len(hosts) == 1 else None
        if not found or not self._is_ours(found[1].strip("[]").lower().rstrip("."), scope):
            named = hosts[0].decode("latin-1")[:80] if hosts else ""
            raise RequestError(f"{named!r} is not a name of this server. Allow it with --allow-host.", 403, "host")
        for name, value in scope["headers"]:
            if name == b"origin":
                origin = value.decode("latin-1")
                if origin in self.access.origins:
                    return [(b"access-control-allow-origin", value), (b"vary", b"Origin")]
                if origin.lower() not in (f"http://{found[0].lower()}", f"https://{found[0].lower()}"):
                    said = f"pages of {origin[:80]!r} may not ask. Allow them with --allow-origin."
                    raise RequestError(said, 403, "origin")
        return []

    def _is_ours(self, name: str, scope: Scope) -> bool:
        if name in LOCAL or name in self.access.hosts:
            return True
        server = scope.get("server") or ("",)  # an address that the connection came to leads nowhere else
        try:
            return ip_address(name) == ip_address(server[0])
        except ValueError:
            return False

    def _require_key(self, scope: Scope) -> None:
        if not self.access.key or scope["path"] in self.access.open:
            return
        given = dict(scope["headers"])  # of several the last one counts
        kind, _, bearer = given.get(b"authorization", b"").partition(b" ")
        key = self.access.key.encode()
        asked = [given.get(b"x-api-key", b""), bearer.strip() if kind.lower() == b"bearer" else b""]
        matches = [hmac.compare_digest(each, key) for each in asked]  # both, whatever the first one gives
        if not any(matches):
            raise RequestError("the API key is missing or wrong.", 401, "invalid_api_key")

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """Read the body within its bounds; return what gives it once, and then waits for the client to leave."""
        content, size, most = bytearray(), 0, self.limits.body
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        break
                    piece, more = message.get("body", b""), message.get("more_body", False)
                    if (size := size + len(piece)) <= most:
                        content += piece
                    else:
                        content.clear()
                        more = more and size <= self.limits.drained
        except TimeoutError:
            raise RequestError("the body did not come in time.", 408, "timeout") from None
        if size > most:
            raise RequestError(f"the body has more than {most:,} bytes.", 413, "body_too_large")
        whole = [{"type": "http.request", "body": bytes(content), "more_body": False}]

        async def given() -> Message:
            return whole.pop() if whole else await receive()

        return given


PREFLIGHT = {
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "authorization, content-type, x-api-key",
    "access-control-max-age": "600",
}
