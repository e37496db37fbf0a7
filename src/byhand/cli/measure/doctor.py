"""`byhand doctor`: the machine's features, and how the fast runtime uses them."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Switch
from byhand.cli.terminal.say import show, show_json
from byhand.config import ModelConfig
from byhand.quantities import counted
from byhand.runtimes.cores import cores
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import choose, runtimes
from byhand.version import __version__

PACKAGES = ("numpy", "scipy", "numba", "matplotlib", "torch")


@dataclass(frozen=True)
class Options:
    """Show what this machine offers for training: cores, CPU features, packages, BLAS, compiled code."""

    json: Switch = False
    """Print one JSON object."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand doctor")
    facts = found()
    if options.json:
        show_json(facts)
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        show(f"{name:<{width}}  {', '.join(value) if isinstance(value, list) else value}")
    return 0


def found() -> dict[str, Any]:
    """Return the machine's features, by name."""
    facts: dict[str, Any] = {
        "byhand": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores(),
        "packages": [f"{name} {version}" for name in PACKAGES if (version := _version(name))],
    }
    choice = choose(Request("train", ModelConfig()))
    how = f": {choice.why}" if choice.why else f" on {counted(cores(), 'thread')}"
    facts["runtime"] = f"{choice.runtime.name}{how}"
    for runtime in runtimes():
        facts |= runtime.facts()
    return facts


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
