"""All formats: `FORMATS` has them by name, `called` by what a kind of file calls them."""

from byhand.formats import blocks, plain  # they register their formats
from byhand.formats.format import FORMATS, ErrorBound, Format, called
from byhand.formats.plain import FLOAT32

__all__ = ["FLOAT32", "FORMATS", "ErrorBound", "Format", "blocks", "called", "plain"]
