"""What computed a run so far, what computes it now, and how a resumed run stays as close to its bits as it can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from byhand.errors import ConfigError
from byhand.runtimes.cores import cores
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose


def resumed(request: Request, used: Any) -> Request:
    """Return the request with which a run goes on that `used` computed so far (see `TrainingSession.provenance`).

    If the number of threads was left open it stays what it was, if there are cores for it: then a resumed run has
    the same bits. A checkpoint without `used` names the runtime that was used in place of the one asked for.
    """
    if not isinstance(used, dict):
        try:
            choose(request)
        except ConfigError:
            return replace(request, runtime="auto")
        return request
    threads = used.get("threads")
    if type(threads) is int and 1 <= threads <= cores() and not request.threads:
        return replace(request, threads=threads)
    return request


def difference(before: Any, now: dict[str, Any]) -> str:
    """Say in a line that a run goes on otherwise than it was computed so far; "" if it does not or nobody knows."""
    if not isinstance(before, dict) or before == now:
        return ""
    return (
        f"so far {_words(before)} computed this run, now {_words(now)} goes on: "
        "from here on losses may differ in their last digits from an uninterrupted run"
    )


def _words(used: dict[str, Any]) -> str:
    runtime, threads, blas = (str(used.get(key, ""))[:60] for key in ("runtime", "threads", "blas"))
    return f"{runtime} on {threads} threads ({blas})" if threads else f"{runtime or 'another runtime'}"
