"""The kinds of generated block, each a function (page, language, *arguments) -> Markdown, by name in `BLOCKS`.

Every file of this folder registers its own.
"""

from importlib import import_module
from pkgutil import iter_modules

from pages.blocks.markdown import BLOCKS

__all__ = ["BLOCKS"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
