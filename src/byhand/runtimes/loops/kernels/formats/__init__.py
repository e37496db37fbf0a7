"""Number formats as used by the loops, a file for each; `contract.py` has the tables that they fill."""

import pkgutil
from importlib import import_module

for module in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(module.name)  # all at once, so that the tables' order is always the same
