"""What the page asks: the papers and books that equations are taken from."""

import re

from byhand.book.finding import flow
from where.index import findings


def works() -> dict[str, list[str]]:
    """Return the papers and books, each with the equations that are taken from it."""
    found: dict[str, list[str]] = {}
    for stem in flow.order():
        work = re.sub(r",? (section|equation) .*", "", findings()[stem].source)
        if re.search(r"\d{4}", work):
            found.setdefault(work, []).append(stem)
    return found
