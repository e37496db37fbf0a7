"""What is said of a place in the code that is no equation."""

from dataclasses import dataclass

from byhand.book.words.language import Words


@dataclass(frozen=True)
class Place(Words):
    """A definition in the package, its seed names, and how formulas write what it computes.

    `path` is its file within the package, `definition` its dotted name there; `asked` holds names in other programs
    and questions that lead here, separated by commas.
    """

    name: str
    path: str
    definition: str
    seed_names: tuple[str, ...] = ()
    notations: tuple[str, ...] = ()
    asked: str = ""
