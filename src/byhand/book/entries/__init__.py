"""What the book says about the equations, one file each, in the contract of `byhand.book.entries.contract`."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
