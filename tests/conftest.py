"""How the suite runs: the same Hypothesis examples on every machine, and in any order that `--shuffle` asks for.

`suite` is the profile of `dev.py test`, with nothing in it that depends on the machine: no database of earlier
failures, no deadline, no complaint about slow data. `bite` does not shrink what it finds, since `bite.py` counts
mutants. `fuzz` draws anew for each `--hypothesis-seed`; `dev.py fuzz` gives it one.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from byhand.files.user_cache import cache_folder

UNTIMED = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("suite", derandomize=True, max_examples=20, **UNTIMED)
settings.register_profile("bite", settings.get_profile("suite"), phases=(Phase.explicit, Phase.generate))
settings.register_profile("fuzz", derandomize=False, max_examples=100, print_blob=True, **UNTIMED)
settings.load_profile("suite")

# Hypothesis also draws constants that it reads in the modules of this checkout, those that happen to be loaded by
# then: what a test draws would depend on the tests before it. `test_draws.py` fails if this has no effect.
providers._get_local_constants = lambda: providers._local_constants


# Processes that tests start share compiled imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Compiling is most of what XLA's tests cost; without its newer emitters of fusions it takes a third of the time, and
# in one part, without threads, a tenth less.
os.environ["XLA_FLAGS"] = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1"
)

# Settings that change how Python itself behaves would change the processes that tests start.
for name in ("UNBUFFERED", "IOENCODING", "UTF8", "WARNINGS", "OPTIMIZE", "DEVMODE", "SAFEPATH", "INSPECT", "VERBOSE"):
    os.environ.pop(f"PYTHON{name}", None)

# Commands speak the language of the shell that starts the tests, which read English.
for name in ("LC_ALL", "LC_MESSAGES"):
    os.environ.pop(name, None)
os.environ["LANG"] = "C.UTF-8"

# What tests write need not outlive a loss of power, and to wait for the disk was most of what checkpoints cost.
os.fsync = os.fstat  # which also refuses anything but an open file

# A shell's background jobs ignore Ctrl-C, and so would every process that a test starts to interrupt it.
for number in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
    if hasattr(signal, number) and signal.getsignal(getattr(signal, number)) is signal.SIG_IGN:
        signal.signal(getattr(signal, number), signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    """Give a user whose cache folder cannot be written one for this session: compiled code would not be kept."""
    try:
        folder = cache_folder()
        if folder is None:
            raise OSError
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        os.environ["BYHAND_CACHE"] = made = tempfile.mkdtemp(prefix="byhand-cache-")
        config.add_cleanup(lambda: shutil.rmtree(made, ignore_errors=True))


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels once, so that workers do not compile the same ones at the same time."""
    if not session.config.getoption("numprocesses", None) or hasattr(session.config, "workerinput"):
        return
    from byhand.config import ModelConfig
    from byhand.runtimes.protocol import Request
    from byhand.runtimes.registry import runtimes

    if any(
        runtime.name == "loops" and not runtime.obstacle(Request("train", ModelConfig())) for runtime in runtimes()
    ):
        from byhand.runtimes.loops.machine.building import addresses_of
        from byhand.runtimes.loops.machine.kernel import KERNELS
        from byhand.runtimes.loops.run import decoding, training  # noqa: F401  register the kernels of both

        addresses_of(name for name, kernel in KERNELS.items() if kernel.compiles_here)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no folder whose tests a mark leaves out: PyTorch alone takes every worker two seconds."""
    name = collection_path.name
    left_out = name in ("oracle", "browser") and f"not {name}" in config.option.markexpr
    return True if left_out and collection_path.parent == Path(__file__).parent else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep ten thousand tests, and what they import, out of the garbage collector's way."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and tests in a file, in another order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle the files, then the tests of each: fixtures of a file are still made once."""
    seed = config.getoption("--shuffle")
    if seed is not None:
        order = random.Random(seed)
        files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
        order.shuffle(files)
        for tests in files:
            order.shuffle(tests)
        items[:] = [item for tests in files for item in tests]


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Undo `main`'s printing of the library's log, which would go on in later tests."""
    log = logging.getLogger("byhand")
    before = log.handlers[:], log.level, log.propagate
    yield
    log.handlers[:], level, log.propagate = before
    log.setLevel(level)


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"shuffled: --shuffle {seed}"
