"""How JAX compiles for byhand: precision, attention kernels, and the compilation cache on disk."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
from jax.experimental.serialize_executable import deserialize_and_load, serialize

from byhand.files.user_cache import cache_folder, read_own, write_own
from byhand.formats.registry import FORMATS
from byhand.runtimes.protocol import Request
from byhand.runtimes.xla.applying import TraceSettings
from byhand.runtimes.xla.mesh import MOST_CPU_DEVICES, Mesh

CUDNN_WIDEST = 256  # head width; it must be a multiple of 8
MOST_CODE = 1 << 30  # bytes of a compiled program
LOGITS_OF_CPU, LOGITS = 1 << 24, 1 << 27  # computed at once by each device: half a gigabyte on accelerators


def settings(request: Request, mesh: Mesh, platform: str) -> TraceSettings:
    """Return the trace settings of a request on this platform: GPUs use cuDNN's attention within its limits."""
    products, width = FORMATS[request.dtype], request.model.head_width
    by_cudnn = platform == "gpu" and products.bits == 16 and width % 8 == 0 and width <= CUDNN_WIDEST
    attention = "cudnn" if by_cudnn and mesh.sequence == 1 else "xla" if mesh.group_size > 1 else "equations"
    logits = (LOGITS_OF_CPU if platform == "cpu" else LOGITS) * mesh.tensor  # a trace sees one device's positions
    return TraceSettings(products, attention, request.recompute, logits)


def prepare(devices: int = 1, hosts: int = 1) -> None:
    """Set full float32 precision and the compilation cache, unless JAX was told otherwise.

    devices  size of the mesh: splits the hosts' CPUs into this many devices, unless JAX has started
    """
    settings: Any = jax.config
    with suppress(RuntimeError):  # JAX has started; its number of devices is fixed
        if settings.jax_num_cpu_devices < (each := -(-devices // hosts)) <= MOST_CPU_DEVICES:
            settings.update("jax_num_cpu_devices", each)
    if settings.jax_default_matmul_precision is None:
        settings.update("jax_default_matmul_precision", "highest")
    if settings.jax_compilation_cache_dir or not (folder := cache_folder()):
        return
    kept = folder / "xla" / f"jax-{jax.__version__}-{_processor()}"
    with suppress(OSError):
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = kept.lstat()
        if os.name == "nt" or (facts.st_uid == os.geteuid() and not facts.st_mode & 0o022):
            settings.update("jax_compilation_cache_dir", str(kept))
            settings.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def compiled(lowered: Any) -> Any:
    """Compile a lowered program, or load it from disk.

    JAX caches only process 0's programs, and on CPUs its key includes the process. So every other host has its own
    cache, keyed by the number of hosts and devices, too.
    """
    settings: Any = jax.config
    if (
        not (folder := settings.jax_compilation_cache_dir)
        or jax.process_index() == 0
        or jax.default_backend() != "cpu"
    ):
        return lowered.compile()
    place = jax.process_index(), jax.process_count(), jax.local_device_count()
    said = (jax.__version__, _processor(), os.environ.get("XLA_FLAGS"), place, lowered.as_text())
    kept = Path(folder) / f"host-{hashlib.sha256(repr(said).encode()).hexdigest()}"
    with suppress(Exception):  # absent, another user's, or written by another JAX: recompile
        content = read_own(kept, MOST_CODE)
        if hashlib.sha256(content[32:]).digest() == content[:32]:
            return deserialize_and_load(content[32:], lowered.in_tree, lowered.out_tree)
    made = lowered.compile()
    with suppress(Exception):  # JAX cannot serialise the program, or the disk is full
        code, *_ = serialize(made)
        write_own(kept, [hashlib.sha256(code).digest(), code])
    return made


def hush() -> None:
    """Keep messages of gloo (collectives between CPUs) off standard output, but not Python's."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        sys.stdout = os.fdopen(kept, "w", encoding="utf-8", errors="replace", buffering=1)


def _processor() -> str:
    """Return a digest of the processor's features: code compiled for a CPU needs the same features."""
    said = platform.processor() + platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        lines = file.read(1 << 16).splitlines()
        said += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(said.encode()).hexdigest()[:8]
