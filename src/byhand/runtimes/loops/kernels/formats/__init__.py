"""Number formats as loops compute with them, a file for each; `contract.py` has the tables that they fill."""

import pkgutil
from importlib import import_module

for module in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(module.name)  # whatever is imported from here first, the order of the tables is the same
