"""Provenance: the runtime and threads of a run; a resumed run keeps them to reproduce its bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from byhand.errors import ConfigError
from byhand.runtimes.cores import cores
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose


def resumed(request: Request, used: Any) -> Request:
    """Return the request that continues a run with provenance `used` (see `TrainingSession.provenance`).

    Unless threads are given, their number stays if this machine has the cores and may use the same runtime: then a
    resumed run has the same bits. A checkpoint without `used` stores the runtime that computed it as the requested
    one.
    """
    if not isinstance(used, dict):
        try:
            choose(request)
        except ConfigError:
            return replace(request, runtime="auto")
        return request
    threads = used.get("threads")
    if request.mesh or request.runtime not in ("auto", used.get("runtime")):
        return request
    if type(threads) is int and 1 <= threads <= cores() and not request.threads:
        return replace(request, threads=threads)
    return request


def difference(before: Any, now: dict[str, Any]) -> str:
    """Return a line that says how provenance changed; "" if it did not change or is unknown."""
    if not isinstance(before, dict) or before == now:
        return ""
    return (
        f"so far {_words(before)} computed this run, now {_words(now)} goes on: "
        "from here on losses may differ in their last digits from an uninterrupted run"
    )


def _words(used: dict[str, Any]) -> str:
    runtime, number, blas, mesh = (str(used.get(key, ""))[:60] for key in ("runtime", "threads", "blas", "mesh"))
    threads = number and f"{number} thread{'s' * (number != '1')}"
    if mesh:
        return f"{runtime} on {str(used.get('device', ''))[:60]} ({mesh})"
    if threads:
        return f"{runtime} on {threads} ({blas})" if blas else f"{runtime} on {threads}"
    return runtime or "another runtime"
