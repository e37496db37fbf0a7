"""The glossary: each concept in English and in the Chinese of textbooks, and the code that it names.

`where` searches it, and pages in both languages take their terms from it.
"""

from dataclasses import dataclass
from pathlib import Path

from byhand.book.words.language import Words
from byhand.book.words.tables import table

GLOSSARY = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Concept(Words):
    """A term in both languages, the equations and places that implement it (best first), and its other names.

    is_first    whether it names the first itself, not something used there
    """

    entries: tuple[str, ...]
    also: tuple[str, ...] = ()
    is_first: bool = False


CONCEPTS = tuple(
    Concept(en, row["zh"], tuple(row["code"]), tuple(row["also"]), row.get("names", False))
    for en, row in table(GLOSSARY).items()
)
