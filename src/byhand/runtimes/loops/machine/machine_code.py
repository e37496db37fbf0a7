"""Machine code on disk and in this process: one object file for each kernel, hashed, never unpickled.

Files live in the user's cache, in a folder keyed by everything that decides their content: sources, versions,
processor. The first line has the SHA-256 of that key, the kernel's name and the code; on a mismatch the kernel is
recompiled. A process runs only code that could have come from such a file, so the first start computes the same bits
as every later one.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable
from contextlib import suppress
from ctypes import CFUNCTYPE, addressof, c_int32, c_int64, c_void_p
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from byhand.errors import reason
from byhand.files.user_cache import cache_folder, read_own, remove_older, write_own
from byhand.quantities import counted
from byhand.runtimes.loops.machine.processor import target

LARGEST = 16 << 20  # bytes of an object file
UNUSED = 90  # days until the folder of another key is deleted
ENTRY = "byhand_"  # prefix of the entry point's symbol, before the kernel's name
SOURCES = (
    *(f"machine/{name}.py" for name in ("native", "views", "kernel", "processor")),
    *("compiler.py", "program/controls.py", "encode/tables.py", "encode/walk.py", "../../equations/orthogonalise.py"),
)


@cache
def key() -> str:
    """Return the digest of everything that decides a kernel's machine code."""
    runtime = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in [*(runtime / name for name in SOURCES), *sorted((runtime / "kernels").rglob("*.py"))]:
        digest.update(path.read_bytes())
    packages = [f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy")]
    facts = [sys.version, platform.system(), platform.machine(), *target(), *packages]
    digest.update("\n".join(facts).encode(errors="surrogateescape"))
    return digest.hexdigest()


def folder() -> Path | None:
    """Return the folder of this process's machine code; None if the user has no home."""
    base = cache_folder()
    return base / f"loops-{key()[:16]}" if base else None


def described() -> str:
    """Describe where machine code is kept, and how much of it."""
    place = folder()
    if place is None:
        return "compiled at each start: this user has no home folder (set BYHAND_CACHE)"
    count = len(list(place.glob("*.o")))
    return f"{place} ({counted(count, 'kernel') + ' ready' if count else 'kernels are compiled when first needed'})"


def path_of(kernel: str) -> Path | None:
    """Return the file of a kernel's object code."""
    place = folder()
    return place / f"{kernel}.o" if place else None


def read(kernel: str) -> tuple[bytes | None, str]:
    """Return a kernel's object code, or None unless its file is whole, matches the key and belongs to the user.

    The second result says what is wrong with an existing file; "" for nothing.
    """
    path = path_of(kernel)
    if path is None:
        return None, ""
    try:
        content = read_own(path, LARGEST)
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"is not used: {reason(error)}"
    with suppress(OSError):
        os.utime(path.parent)  # marks the folder as used
    header, _, code = content.partition(b"\n")
    return (code, "") if header == _header(kernel, code) else (None, "is damaged")


def keep(kernel: str, code: bytes) -> None:
    """Save a kernel's object code for later starts; OSError if that fails."""
    path = path_of(kernel)
    if path is None:
        raise OSError(2, "this user has no home")
    write_own(path, _header(kernel, code) + b"\n" + code)
    remove_older(path.parent.parent, "loops-[0-9a-f]{16}", UNUSED)


def _header(kernel: str, code: bytes) -> bytes:
    return b"byhand object " + hashlib.sha256(f"{key()} {kernel}\n".encode() + code).hexdigest().encode()


@cache
def _engine() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


def load(kernel: str, code: bytes) -> int:
    """Load object code into this process and return the address of its entry point."""
    from llvmlite import binding

    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(ENTRY + kernel)


_NOWHERE = c_void_p()  # Numba's outputs that nothing reads
_PROTOTYPE = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int64, c_int64)


def callable_at(address: int) -> Callable[[int, int], int]:
    """Return the entry point at an address as a function (rows, resources) -> status, 0 on success.

    Numba's functions take two more pointers, to a result and to an exception. Calls release the GIL.
    """
    function, nowhere = _PROTOTYPE(address), addressof(_NOWHERE)

    def call(rows: int, resources: int) -> int:
        return function(nowhere, nowhere, rows, resources)

    return call
