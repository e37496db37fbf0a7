"""Building: machine code for the kernels that are asked for, read from disk, or made by compiling processes.

What takes longer than a moment is logged: how many kernels, how far, how long it took. Interrupted, it ends the
compiling processes at once and keeps what they had finished.
"""

from __future__ import annotations

import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import IO

from byhand.errors import ConfigError, reason
from byhand.runtimes.loops import cores, machine_code
from byhand.runtimes.loops.processor import target

log = logging.getLogger(__name__)
COSTLY = ("attention", "tiled_gemm", "attention_back", "row_product", "attend_all")  # compiled first, as others wait
MOST_PROCESSES = 4  # each takes 150 MB
EVERY = 2.0  # seconds between two lines of progress
EACH = 1.0  # seconds that a kernel takes on an idle core, on average

_addresses: dict[str, int] = {}


def addresses_of(kernels: Iterable[str]) -> dict[str, int]:
    """Return where the kernels' ways in are in this process, once they are compiled and loaded.

    Raises ConfigError if a kernel cannot be compiled here.
    """
    wanted = list(dict.fromkeys(kernels))
    codes = {name: machine_code.read(name) for name in wanted if name not in _addresses}
    lacking = [name for name, code in codes.items() if code is None]
    if lacking:
        codes |= _compiled(lacking)
    for name, code in codes.items():
        assert code is not None
        _addresses[name] = machine_code.load(name, code)
    return {name: _addresses[name] for name in wanted}


def _compiled(kernels: list[str]) -> dict[str, bytes]:
    """Compile kernels, say how far it is, and keep what comes out for later starts."""
    estimate = EACH * len(kernels) / _processes_for(kernels)
    log.info("compiling %d kernels for this processor, once: about %.0f s if it is idle", len(kernels), estimate)
    begun = said = time.monotonic()
    codes: dict[str, bytes] = {}
    kept = True
    for name, code in _from_processes(kernels):
        if name:
            codes[name] = code
        if name and kept:
            try:
                machine_code.keep(name, code)
            except OSError as error:
                kept = False
                log.warning("cannot keep compiled code: %s: %s", error.filename, error.strerror or error)
        now = time.monotonic()
        if now - said >= EVERY and len(codes) < len(kernels):
            said = now
            log.info("compiled %d of %d kernels in %.0f s", len(codes), len(kernels), now - begun)
    log.info("compiled %d kernels in %.1f s", len(codes), time.monotonic() - begun)
    return codes


def _processes_for(kernels: list[str]) -> int:
    return min(cores(), MOST_PROCESSES, len(kernels))


def _from_processes(kernels: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield kernels with their object code as compiling processes finish them, and "" while they take their time.

    The processes end with this generator.
    """
    ordered = sorted(kernels, key=lambda name: COSTLY.index(name) if name in COSTLY else len(COSTLY))
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in ordered:
        waiting.put(name)
    answers: queue.SimpleQueue[tuple[str, bytes, str]] = queue.SimpleQueue()
    processes: list[subprocess.Popen[bytes]] = []
    threads: list[threading.Thread] = []
    try:
        for _ in range(_processes_for(kernels)):
            processes.append(_process())
            threads.append(threading.Thread(target=_converse, args=(processes[-1], waiting, answers), daemon=True))
            threads[-1].start()
        left = len(ordered)
        while left:
            try:
                name, code, why = answers.get(timeout=EVERY)
            except queue.Empty:
                yield "", b""
                continue
            left -= 1
            if not code:
                raise ConfigError(f"cannot compile the kernel {name}: {why}. Use --runtime numpy.")
            yield name, code
    except OSError as error:
        raise ConfigError(f"cannot start a compiling process: {reason(error)}. Use --runtime numpy.") from None
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
        for thread in threads:
            thread.join()
        for process in processes:
            for stream in (process.stdin, process.stdout):
                if stream:
                    stream.close()


def _process() -> subprocess.Popen[bytes]:
    name, features = target()
    environment = os.environ | {
        "BYHAND_COMPILING": "1",
        "NUMBA_CPU_NAME": name,
        "NUMBA_CPU_FEATURES": features,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONHASHSEED": "0",
    }
    command = [sys.executable, "-P", "-m", "byhand.runtimes.loops.compiler"]
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    )


def _converse(
    process: subprocess.Popen[bytes],
    waiting: queue.SimpleQueue[str],
    answers: queue.SimpleQueue[tuple[str, bytes, str]],
) -> None:
    """Hand names to one process until none is left; a process that dies answers with nothing."""
    assert process.stdin
    assert process.stdout
    while not waiting.empty():
        try:
            name = waiting.get_nowait()
        except queue.Empty:
            break
        code, why = machine_code.read(name, logging.DEBUG), ""  # another start may have made it meanwhile
        try:
            if code is None:
                process.stdin.write(f"{name}\n".encode())
                size, _, why = process.stdout.readline().decode(errors="replace").partition(" ")
                code = _exactly(process.stdout, int(size))
        except (OSError, ValueError):
            code, why = b"", "its process ended"
        answers.put((name, code, why.strip()))


def _exactly(stream: IO[bytes], size: int) -> bytes:
    parts = []
    while size > 0:
        part = stream.read(size)
        if not part:
            raise OSError("the stream ended")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
