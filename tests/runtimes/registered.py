"""The registered runtimes as parameters of tests: a new one is held by all that takes `NAMES` or `OTHERS`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from byhand.runtimes.protocol import Request, Runtime
from byhand.runtimes.registry import runtimes

NAMES = tuple(runtime.name for runtime in runtimes())
REFERENCE = NAMES[-1]
"""The runtime that the others are held against: the last one computes everything."""
OTHERS = NAMES[:-1]


def able(request: Request) -> Runtime:
    """Return the runtime that a request names; skip the test if it has an obstacle on this machine."""
    runtime = next(each for each in runtimes() if each.name == request.runtime)
    if why := runtime.obstacle(request):
        pytest.skip(why)
    return runtime


def session_of(model, optimizer, runtime, threads=0):
    """Return a runtime's session, with so many threads if it lets one choose."""
    request = Request("train", model.config, runtime, threads=threads)
    if next(each for each in runtimes() if each.name == runtime).obstacle(request):
        request = replace(request, threads=0)
    return able(request).session(model, optimizer, request)
