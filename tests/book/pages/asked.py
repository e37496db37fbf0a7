"""What a page's templates ask: the names of the Python file beside it."""

from types import SimpleNamespace

from pages.filling import docs
from pages.templates import beside


def answers_of(page):
    return SimpleNamespace(**beside(docs() / f"{page}.md"))
