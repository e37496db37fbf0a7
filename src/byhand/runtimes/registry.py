"""The registry of runtimes; the only place that chooses one."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from byhand.errors import ByhandError, ConfigError, is_interrupt
from byhand.runtimes.loops.runtime import LoopsRuntime
from byhand.runtimes.numpy.runtime import NumpyRuntime
from byhand.runtimes.protocol import Request, Runtime
from byhand.runtimes.xla.runtime import XlaRuntime

log = logging.getLogger(__name__)
Made = TypeVar("Made")
_runtimes: dict[str, Runtime] = {}  # the preferred one first; the last one computes everything


def register(runtime: Runtime) -> None:
    """Register a runtime by its name; `auto` prefers it to those registered before."""
    before = {name: each for name, each in _runtimes.items() if name != runtime.name}
    _runtimes.clear()
    _runtimes.update({runtime.name: runtime}, **before)


register(NumpyRuntime())
register(LoopsRuntime())
register(XlaRuntime())


def runtimes() -> list[Runtime]:
    """Return the registered runtimes, the preferred one first."""
    return list(_runtimes.values())


def offered() -> tuple[str, ...]:
    """Return the valid values of `Request.runtime`."""
    return ("auto", *_runtimes)


@dataclass(frozen=True)
class Choice:
    """The runtime chosen for a request.

    why    why auto did not take a faster one; "" if it did, or if the runtime was named
    tried  names of runtimes that started and failed
    """

    request: Request
    runtime: Runtime
    why: str = ""
    tried: tuple[str, ...] = ()

    def start(self, make: Callable[[Runtime], Made]) -> tuple[Made, Choice]:
        """Return the result of `make` with the runtime, or with the next one if it fails under auto."""
        choice = self
        while True:
            try:
                return make(choice.runtime), choice
            except Exception as error:
                choice = choice._instead(error)

    def _instead(self, error: Exception) -> Choice:
        """Return the next choice after a failure; if none is left, raise the error in one line."""
        if is_interrupt(error) or isinstance(error, MemoryError):  # another runtime would need as much
            raise error
        name, known = self.runtime.name, isinstance(error, ByhandError)
        last = list(_runtimes)[-1]
        what = f"{type(error).__name__}: {error}".strip().splitlines()[0][:200]
        line = str(error) if known else f"the {name} runtime failed ({what}). Use the {last} runtime."
        tried = (*self.tried, name)
        if self.request.runtime == "auto":
            log.debug("the %s runtime failed", name, exc_info=error)
            for runtime in _suitable(self.request):
                if runtime.name not in tried and not runtime.obstacle(self.request):
                    return replace(self, runtime=runtime, why=self.why or _followed(line), tried=tried)
        if known or name == last:
            raise error
        raise ConfigError(line) from error


def choose(request: Request) -> Choice:
    """Return the named runtime, or the first that can serve the request. ConfigError if none can."""
    if request.runtime != "auto":
        if (runtime := _runtimes.get(request.runtime)) is None:
            raise ConfigError(f"runtime is {request.runtime[:60]!r}. Use one of {', '.join(offered())}.")
        if obstacle := runtime.obstacle(request):
            raise ConfigError(obstacle)
        return Choice(request, runtime)
    why = ""
    for runtime in _suitable(request):
        obstacle = runtime.obstacle(request)
        if not obstacle:
            return Choice(request, runtime, _followed(why))
        why = why or obstacle
    raise ConfigError(why)


def _followed(why: str) -> str:
    """Return an obstacle without the advice to use another runtime, which auto follows."""
    return re.sub(r"(\. Use|, or) (the \w+ runtime|--runtime \w+)[^.]*\.$", ".", why)


def begin(request: Request, make: Callable[[Runtime], Made]) -> tuple[Made, Choice]:
    """Choose a runtime and return the result of `make` with it.

    If that fails, auto takes the next one and `Choice.why` says so; a runtime that was named raises a ByhandError.
    """
    return choose(request).start(make)


def _suitable(request: Request) -> list[Runtime]:
    return [runtime for runtime in _runtimes.values() if runtime.suits(request)]
