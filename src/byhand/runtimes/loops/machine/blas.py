"""Matrix products: register tiles, or a BLAS (MKL if installed, else SciPy's), and the threads of the BLAS.

Kernels call SGEMM by its address. Shares of the batch run in parallel, so BLAS has one thread for each. With fewer
shares than cores (batch 1) it uses threads of its own; register tiles cannot.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from byhand.errors import ConfigError, install
from byhand.runtimes.loops.machine.processor import cpu_features

INTEL_THREADS, SEQUENTIAL = 0, 1  # MKL's threading layers


@dataclass(frozen=True)
class Blas:
    """A way to multiply matrices.

    library      its name
    sgemm        address of C = op(A) op(B) in float32
    set_threads  sets its number of threads
    product      address of another product, by its symbol; 0 if the library has none
    tiles        register tiles multiply (`kernels/products/tiled_gemm.py`); the library multiplies only narrower
                 numbers than float32, and one product on several cores
    """

    library: str
    sgemm: int
    set_threads: Callable[[int], None]
    product: Callable[[str], int] = lambda symbol: 0
    tiles: bool = False

    @property
    def name(self) -> str:
        """The name that users see."""
        return f"register tiles, with {self.library}" if self.tiles else self.library


def takes_tiles(name: str) -> bool:
    """Return whether register tiles multiply if the BLAS is asked for by this name."""
    return name == "tiles" or (name == "auto" and {"avx2", "fma"} <= set(cpu_features()))


def one_core_each(batch: int, threads: int) -> bool:
    """Return whether each share of a batch has one core: register tiles multiply on one."""
    return threads // min(batch, threads) == 1


@cache
def find_blas(name: str = "auto") -> Blas:
    """Return "tiles", "mkl" or "scipy"; with "auto" the fastest here. ConfigError if it is not there.

    Register tiles were measured against both libraries with AVX-512 and with AVX2; elsewhere a library multiplies.
    """
    if name not in ("auto", "tiles", "mkl", "scipy"):
        raise ConfigError(f"BLAS {name!r} is not known. Use auto, tiles, mkl or scipy.")
    if takes_tiles(name):
        return replace(_library("auto"), tiles=True)
    return _library(name)


def _library(name: str) -> Blas:
    if name != "scipy":
        path = _mkl_path()
        if path is not None:
            return _mkl(path)
        if name == "mkl":
            raise ConfigError(f"MKL is not installed. Use {install('mkl')}, or --blas auto.")
    return _scipy()


def _mkl_path() -> Path | None:
    """Find the one library of the `mkl` wheel that holds everything."""
    try:
        files = importlib.metadata.files("mkl") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    stems = ("libmkl_rt.so", "libmkl_rt.dylib", "mkl_rt.")
    found = [f for f in files if f.name.startswith(stems) and not f.name.endswith(".lib")]
    return Path(str(found[0].locate())).resolve() if found else None


def _mkl(path: Path) -> Blas:
    """Return MKL with its own threads, which a batch smaller than the cores needs, where their library is there."""
    library = ctypes.CDLL(str(path))
    threaded = any(path.parent.glob("libiomp5*.so")) or any(path.parent.glob("libiomp5*.d*l*"))
    with contextlib.suppress(AttributeError):
        library.MKL_Set_Threading_Layer(INTEL_THREADS if threaded else SEQUENTIAL)
    set_threads = getattr(library, "MKL_Set_Num_Threads", None) if threaded else None

    def product(symbol: str) -> int:
        function = getattr(library, symbol, None)
        return _address(function) if function else 0

    return Blas(f"MKL ({path.name})", product("sgemm_"), set_threads or (lambda n: None), product)


def _scipy() -> Blas:
    try:
        import scipy
        from numba.extending import get_cython_function_address
    except ImportError as error:  # installed, but broken: Numba refuses a NumPy that is too new for it
        raise ConfigError(f"Numba or SciPy cannot be imported: {error}. Reinstall byhand[fast].") from None

    address = get_cython_function_address("scipy.linalg.cython_blas", "sgemm")
    set_threads = _openblas_threads(Path(scipy.__file__).parent)
    name = "Accelerate or other (SciPy's)" if set_threads is None else f"OpenBLAS (SciPy {scipy.__version__})"
    return Blas(name, address, set_threads or (lambda n: None))


def _openblas_threads(scipy_folder: Path) -> Callable[[int], None] | None:
    """Return the function that sets the threads of the OpenBLAS that SciPy's wheel carries; None for another BLAS."""
    folders = [scipy_folder.parent / "scipy.libs", scipy_folder / ".dylibs"]
    for path in (p for folder in folders if folder.is_dir() for p in folder.iterdir() if "openblas" in p.name):
        if path.suffix == ".a":
            continue
        library = ctypes.CDLL(str(path))  # already loaded by SciPy: this only finds it again
        for symbol in ("scipy_openblas_set_num_threads", "openblas_set_num_threads"):
            with contextlib.suppress(AttributeError):
                return getattr(library, symbol)
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):  # a distribution's SciPy
            return ctypes.CDLL("libopenblas.so.0").openblas_set_num_threads
    return None


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # pyright: ignore[reportArgumentType]
