"""`byhand doctor`: what this machine offers, and what the fast runtime makes of it."""

from __future__ import annotations

import json as jsonlib
import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Annotated, Any

import tyro

from byhand import __version__
from byhand.cli.arguments.parsing import parse
from byhand.runtimes import loops
from byhand.runtimes.loops.machine.processor import cpu_features

PACKAGES = ("numpy", "scipy", "numba", "mkl", "matplotlib", "torch")


@dataclass(frozen=True)
class Options:
    """Say what this machine offers to training: cores, CPU features, packages, BLAS, compiled code."""

    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print one JSON object."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand doctor")
    facts = found()
    if options.json:
        print(jsonlib.dumps(facts))
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {', '.join(value) if isinstance(value, list) else value}")
    return 0


def found() -> dict[str, Any]:
    """Return what there is, by name."""
    facts: dict[str, Any] = {
        "byhand": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": loops.cores(),
        "cpu features": list(cpu_features()) or ["unknown without Numba"],
        "packages": [f"{name} {version}" for name in PACKAGES if (version := _version(name))],
    }
    missing = loops.missing()
    if missing:
        facts["runtime"] = f"numpy; pip install 'byhand[fast]' for loops (lacks {', '.join(missing)})"
        return facts
    from byhand.runtimes.loops.machine.blas import find_blas, lacks_bfloat16

    return facts | {
        "runtime": f"loops on {loops.cores()} threads",
        "blas": find_blas().name,
        "bfloat16": lacks_bfloat16(find_blas()) or "yes, --dtype bfloat16",
        "compiled code": _compiled_code(),
    }


def _compiled_code() -> str:
    from byhand.runtimes.loops.machine.machine_code import folder

    place = folder()
    if place is None:
        return "compiled at each start: this user has no home folder (set BYHAND_CACHE)"
    count = len(list(place.glob("*.o")))
    return f"{place} ({f'{count} kernels ready' if count else 'kernels are compiled when first needed'})"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
