"""The path through the book: its pages in reading order, each with the knowledge it needs and its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.book.pages.data import read
from byhand.book.words.language import Words


@dataclass(frozen=True)
class Stop:
    """A page of the path: its name in docs/guides, and what `data/path.toml` says of it."""

    name: str
    needs: Words
    minutes: int
    outcome: Words
    command: str
    earlier: tuple[str, ...] = ()
    sheet: str = ""
    pencil: int = 0

    def command_in(self, lang: str) -> str:
        """Return the command as a reader of `en` or `zh` types it."""
        bilingual = self.command.startswith(("byhand work", "byhand where", "byhand explain"))
        return f"{self.command} --lang zh" if lang == "zh" and bilingual else self.command


DATA = read("path")
KNOWLEDGE = {name: Words(*said) for name, said in DATA.pop("knowledge").items()}
STOPS = {
    name: Stop(name, **(stop | {"needs": KNOWLEDGE[stop["needs"]], "outcome": Words(*stop["outcome"])}))
    for name, stop in DATA.items()
}
PATH = tuple(STOPS.values())
