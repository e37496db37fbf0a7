"""What a template of a page may call: answers by name in `ANSWERS`, formats of values in `FORMATS`.

Every file of this folder registers its own.
"""

from importlib import import_module
from pkgutil import iter_modules

from pages.answers.registry import ANSWERS, FORMATS

__all__ = ["ANSWERS", "FORMATS"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
