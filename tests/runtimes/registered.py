"""The registered runtimes as parameters of tests: a new one is held by all that takes `NAMES`, `OTHERS` or `ways`."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from byhand.config import ModelConfig, OptimConfig
from byhand.model import TinyGPT, declared
from byhand.optim import Optimizer
from byhand.runtimes.protocol import Request, Runtime
from byhand.runtimes.registry import runtimes

NAMES = tuple(runtime.name for runtime in runtimes())
REFERENCE = NAMES[-1]
"""The runtime that the others are held against: the last one computes everything."""
OTHERS = NAMES[:-1]
SUITED = tuple(runtime.name for runtime in runtimes() if runtime.suits(Request("train", ModelConfig())))
"""Those that `auto` thinks of on this machine: another compiles each shape for seconds."""
PROGRAMS: dict[Any, dict[Any, Any]] = {}
"""What XLA compiled, by request and settings: programs hold no numbers, and to compile them is what a test costs."""


def able(request: Request) -> Runtime:
    """Return the runtime that a request names; skip the test if it has an obstacle on this machine."""
    runtime = named(request.runtime)
    if why := runtime.obstacle(request):
        pytest.skip(why)
    return runtime


def named(name: str) -> Runtime:
    return next(each for each in runtimes() if each.name == name)


def ways(*asked: dict[str, Any], names: tuple[str, ...] = OTHERS) -> list[Any]:
    """Return runtimes with each of these settings of a request that they have no obstacle to; with none, always."""
    found = []
    for name, settings in product(names, asked):
        if not settings or not named(name).obstacle(Request("train", ModelConfig(), name, **settings)):
            said = ", ".join((name, *(f"{key}={value}" for key, value in settings.items())))
            found.append(pytest.param({"runtime": name, **settings}, id=said))
    return found


def slow(found: list[Any]) -> list[Any]:
    """Return these parameters for the slow sweep: XLA compiles each mesh for seconds."""
    return [pytest.param(*each.values, id=each.id, marks=pytest.mark.slow) for each in found]


def session_of(model, optimizer, runtime, threads=0, **asked):
    """Return a runtime's session, with this number of threads if it can be chosen."""
    request = Request("train", model.config, runtime, threads=threads, **asked)
    if named(runtime).obstacle(request):
        request = replace(request, threads=0)
    made = able(request).session(model, optimizer, request)
    if type(optimizer) is Optimizer and hasattr(made, "_made"):
        made._made = PROGRAMS.setdefault((request, optimizer.settings), {})
    return made


def new_session(config, optim=None, seed=1, **way):
    """Return a session of a new model and optimizer; programs that XLA compiled before are used again."""
    optim = optim or OptimConfig()
    return session_of(TinyGPT(config, seed), Optimizer(optim, declared(config)), **{"runtime": REFERENCE, **way})
