"""Pictures of the pages, drawn by code from the project's own graph and numbers, by name in `PICTURES`.

Each file of this folder registers its pictures when it is imported, and all are imported here.
"""

from importlib import import_module
from pkgutil import iter_modules

from byhand.book.pictures.picture import PICTURES

__all__ = ["PICTURES"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
