"""All formats: `FORMATS` by name, `called` by a kind of file's own names."""

from byhand.formats import blocks, plain  # register their formats
from byhand.formats.format import FORMATS, ErrorBound, Format, called
from byhand.formats.plain import FLOAT32

__all__ = ["FLOAT32", "FORMATS", "ErrorBound", "Format", "blocks", "called", "plain"]
