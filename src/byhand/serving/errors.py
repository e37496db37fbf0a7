"""Errors as OpenAI's API writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from byhand.errors import ByhandError
from byhand.generation import Full
from byhand.serving.limits import RequestError

RETRY_AFTER = 2  # seconds after which a full server may be asked again
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
LONGEST = 500  # characters of a message


def as_json(value: Any) -> bytes:
    """Return JSON as UTF-8, Chinese as it is."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def error(message: str, status: int = 400, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Return the object of an error."""
    kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    message = message.encode(errors="replace").decode()
    return {"error": {"message": message[:LONGEST], "type": kind, "param": param, "code": code}}


def refusal(
    message: str, status: int = 400, code: str | None = None, param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:  # fmt: skip
    """Return an error as a response."""
    content = as_json(error(message, status, code, param))
    return Response(content, status, headers, "application/json")


def of_ours(found: ByhandError) -> Response:
    """Return the response for an error of a person."""
    if isinstance(found, Full):
        return refusal(str(found), 429, "queue_full", headers={"retry-after": str(RETRY_AFTER)})
    if isinstance(found, RequestError):
        return refusal(str(found), found.status, found.code, found.param)
    return refusal(str(found))
