"""Pictures of the pages, drawn by code from the project's own graph and numbers, by name in `PICTURES`."""

from byhand.book.pictures import devices
from byhand.book.pictures.picture import PICTURES

__all__ = ["PICTURES", "devices"]
