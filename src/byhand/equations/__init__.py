"""The equations, one file each.

Importing this package imports every file, which fills the engine's registry. The file `softmax.py` has the
equation's formulas, forward, derivative and terms; `byhand.equations.softmax` is the equation itself.
"""

from importlib import import_module
from pkgutil import iter_modules

from byhand.engine.equation import registry

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
    if _file.name in registry:
        globals()[_file.name] = registry[_file.name]
