"""Building: machine code for requested kernels, read from disk or made by compiling processes.

The log reports the number of kernels to compile, the progress, and the time taken. An interrupt ends the compiling
processes at once; finished kernels are kept.
"""

from __future__ import annotations

import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from byhand.errors import ConfigError, reason
from byhand.quantities import counted
from byhand.runtimes.cores import cores
from byhand.runtimes.loops.machine import machine_code
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.machine.processor import target

log = logging.getLogger(__name__)
MOST_PROCESSES = 4  # each takes 150 MB
READY = b"byhand "  # begins the line of every answer
EVERY = 2.0  # seconds between progress lines
EACH = 1.0  # average seconds per kernel on an idle core

_addresses: dict[str, int] = {}
_loading = threading.Lock()  # LLVM's engine takes code from one thread at a time; others wait for its kernels


def addresses_of(kernels: Iterable[str]) -> dict[str, int]:
    """Return the addresses of the kernels' entry points in this process, once they are compiled and loaded.

    Raises ConfigError if a kernel cannot be compiled here.
    """
    with _loading:
        return _loaded(list(dict.fromkeys(kernels)))


def _loaded(wanted: list[str]) -> dict[str, int]:
    found = {name: machine_code.read(name) for name in wanted if name not in _addresses}
    if wrong := [name for name, (_, why) in found.items() if why]:
        more = f" (and {counted(len(wrong) - 1, 'more file')})" if len(wrong) > 1 else ""
        path, (_, why) = machine_code.path_of(wrong[0]), found[wrong[0]]
        log.warning("compiled code %s %s%s; compiling it anew", path, why, more)
    codes = {name: code for name, (code, _) in found.items() if code is not None}
    if lacking := [name for name in found if name not in codes]:
        codes |= _compiled(lacking)
    for name, code in codes.items():
        _addresses[name] = machine_code.load(name, code)
    return {name: _addresses[name] for name in wanted}


def _compiled(kernels: list[str]) -> dict[str, bytes]:
    """Compile kernels, log the progress, and keep the object code for later starts."""
    estimate = EACH * len(kernels) / _processes_for(kernels)
    log.info(
        "compiling %s for this processor, once: about %.0f s if it is idle", counted(len(kernels), "kernel"), estimate
    )
    begun = said = time.monotonic()
    codes: dict[str, bytes] = {}
    warned = False
    for name, code in _from_processes(kernels):
        if name:
            codes[name] = code
            try:
                machine_code.keep(name, code)
            except OSError as error:
                if not warned:
                    log.warning(
                        "cannot keep compiled code in %s: %s. It is compiled anew at each start; "
                        "BYHAND_CACHE names another folder", machine_code.folder(), reason(error),
                    )  # fmt: skip
                warned = True
        now = time.monotonic()
        if now - said >= EVERY and len(codes) < len(kernels):
            said = now
            log.info("compiled %d of %s in %.0f s", len(codes), counted(len(kernels), "kernel"), now - begun)
    log.info("compiled %s in %.1f s", counted(len(codes), "kernel"), time.monotonic() - begun)
    return codes


def _processes_for(kernels: list[str]) -> int:
    return min(cores(), MOST_PROCESSES, len(kernels))


def _from_processes(kernels: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield kernels with their object code as they are finished, and "" after EVERY seconds without one.

    The processes end with this generator. A kernel whose process dies is retried in another one, once.
    """
    ordered = sorted(kernels, key=lambda name: not (name in KERNELS and KERNELS[name].costly))  # costly ones first
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in ordered:
        waiting.put(name)
    answers: queue.SimpleQueue[Reply] = queue.SimpleQueue()
    compilers: list[Compiler] = []
    left, failed = len(ordered), set[str]()
    try:
        for _ in range(_processes_for(kernels)):
            compilers.append(Compiler(waiting, answers))
        while left:
            try:
                answer = answers.get(timeout=EVERY)
            except queue.Empty:
                yield "", b""
                continue
            if answer.died and answer.name not in failed:
                failed.add(answer.name)
                waiting.put(answer.name)
                compilers.append(Compiler(waiting, answers))
                continue
            if not answer.code:
                raise ConfigError(f"cannot compile the kernel {answer.name}: {answer.why}. Use the numpy runtime.")
            left -= 1
            yield answer.name, answer.code
    except OSError as error:
        raise ConfigError(f"cannot start a compiling process: {reason(error)}. Use the numpy runtime.") from None
    finally:
        for compiler in compilers:
            compiler.process.kill()
        for compiler in compilers:
            compiler.close()


@dataclass(frozen=True)
class Reply:
    """A kernel's object code; or None, the reason, and whether the compiling process died."""

    name: str
    code: bytes
    why: str = ""
    died: bool = False


class Compiler:
    """A compiling process, and the thread that feeds it names until none is left."""

    def __init__(self, waiting: queue.SimpleQueue[str], answers: queue.SimpleQueue[Reply]) -> None:
        self._waiting, self._answers = waiting, answers
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self.process = self._started()
        self._thread = threading.Thread(target=self._converse, daemon=True)
        self._thread.start()

    def _started(self) -> subprocess.Popen[bytes]:
        """Start the process without Numba's environment variables and configuration, which could change the code."""
        name, features = target()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | {
            "BYHAND_COMPILING": "1",
            "NUMBA_CPU_NAME": name,
            "NUMBA_CPU_FEATURES": features,
            "NUMBA_OPT": "0",  # see `compiler`
            "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path if p),
            "PYTHONHASHSEED": "0",
        }
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "byhand.runtimes.loops.compiler"], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, cwd=Path(__file__).parent,
        )  # fmt: skip

    def _converse(self) -> None:
        while not self._waiting.empty():
            try:
                name = self._waiting.get_nowait()
            except queue.Empty:
                break
            code, _ = machine_code.read(name)  # another start may have made it meanwhile
            try:
                answer = Reply(name, code) if code else self._answer(name)
            except (OSError, ValueError):
                self._answers.put(Reply(name, b"", self._last_words(), died=True))
                return
            self._answers.put(answer)

    def _answer(self, name: str) -> Reply:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{name}\n".encode())
        self.process.stdin.flush()
        line = b""
        while not line.startswith(READY):  # skip what libraries print when a process starts
            line = self.process.stdout.readline()
            if not line:
                raise OSError("the process ended")
        size, _, why = line.removeprefix(READY).decode(errors="replace").partition(" ")
        code = self.process.stdout.read(int(size))
        if len(code) < int(size):
            raise OSError("the stream ended")
        return Reply(name, code, why.strip())

    def _last_words(self) -> str:
        """Return the last error line of a dead process, or its exit code."""
        code = self.process.wait()
        self._errors.seek(0)
        lines = self._errors.read()[-10_000:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with code {code}"

    def close(self) -> None:
        """Wait for the process and the thread, and close their streams."""
        self.process.wait()
        self._thread.join()
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream:
                with suppress(OSError):  # the process died without reading a name
                    stream.close()
