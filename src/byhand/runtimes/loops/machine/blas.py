"""Matrix products of float32: register tiles, or SciPy's BLAS, and the BLAS's threads.

Kernels call SGEMM by its address. Shares of the batch run in parallel, each on one core. A batch of one row is a
single share: then the BLAS uses its own threads, at most one per core; register tiles cannot. With several shares it
does not: they would wait for OpenBLAS's only thread pool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from byhand.errors import ConfigError
from byhand.host import openblas_threads
from byhand.runtimes.loops.machine.processor import cpu_features


@dataclass(frozen=True)
class Blas:
    """A way to multiply matrices.

    library      its name
    sgemm        address of C = op(A) op(B)
    set_threads  sets its number of threads
    tiles        register tiles multiply (`kernels/products/tiled_gemm.py`); the library multiplies only for
                 batches of a single share
    """

    library: str
    sgemm: int
    set_threads: Callable[[int], None]
    tiles: bool = False

    @property
    def name(self) -> str:
        """The name that users see."""
        return f"register tiles, with {self.library}" if self.tiles else self.library


def takes_tiles(name: str) -> bool:
    """Return whether a BLAS of this name means register tiles."""
    return name == "tiles" or (name == "auto" and {"avx2", "fma"} <= set(cpu_features()))


def one_core_each(batch: int, threads: int) -> bool:
    """Return whether each share of a batch multiplies on one core, as register tiles do."""
    return threads == 1 or batch > 1


@cache
def find_blas(name: str = "auto") -> Blas:
    """Return "tiles" or "scipy"; for "auto" the faster one here. ConfigError if it is not available.

    Register tiles were measured against libraries on AVX-512 and AVX2 only; elsewhere a library multiplies.
    """
    if name not in ("auto", "tiles", "scipy"):
        raise ConfigError(f"BLAS {name!r} is not known. Use auto, tiles or scipy.")
    return replace(_scipy(), tiles=takes_tiles(name))


def _scipy() -> Blas:
    try:
        import scipy
        from numba.extending import get_cython_function_address
    except ImportError as error:  # installed but broken: Numba refuses NumPy versions that are too new
        raise ConfigError(f"Numba or SciPy cannot be imported: {error}. Reinstall byhand[fast].") from None

    address = get_cython_function_address("scipy.linalg.cython_blas", "sgemm")
    set_threads = openblas_threads(Path(scipy.__file__).parent)
    name = "Accelerate or other (SciPy's)" if set_threads is None else f"OpenBLAS (SciPy {scipy.__version__})"
    return Blas(name, address, set_threads or (lambda n: None))
