"""The path through the book: its pages in reading order, each with the knowledge it needs and its outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from byhand.book.words.language import Words
from pages.data import read


@dataclass(frozen=True)
class Stop:
    """A page of the path: its name in docs/guides, its number, the next page, and its row of `data/path.toml`.

    chapter  the part of the path that begins with it
    made_by  the page whose own command makes the run that this one's reads
    """

    name: str
    number: int
    following: str
    prior: str
    needs: Words
    outcome: Words
    minutes: int
    command: str
    earlier: Sequence[str] = ()
    sheet: str = ""
    pencil: int = 0
    made_by: str = ""
    chapter: Words | None = None

    def command_in(self, lang: str) -> str:
        """Return the command as a reader of `en` or `zh` types it."""
        bilingual = self.command.startswith(("byhand work", "byhand where", "byhand explain"))
        return f"{self.command} --lang zh" if lang == "zh" and bilingual else self.command


def _path() -> Iterator[Stop]:
    said = read("path")
    knowledge, chapters = said["knowledge"], said["chapters"]
    names = [*(name for name in said if name not in ("knowledge", "chapters")), ""]
    for number, name in enumerate(names[:-1], 1):
        own = dict(said[name])
        prior, outcome = own.pop("needs"), Words(*own.pop("outcome"))
        chapter = Words(*chapters[name]) if name in chapters else None
        yield Stop(name, number, names[number], prior, Words(*knowledge[prior]), outcome, **own, chapter=chapter)


PATH = tuple(_path())
STOPS = {stop.name: stop for stop in PATH}
