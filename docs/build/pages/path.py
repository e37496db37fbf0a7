"""The tracks through the book and its shelf: each page with the knowledge it needs and its outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from byhand.book.words.language import Words
from pages.data import read


@dataclass(frozen=True)
class Stop:
    """A page: its name in docs/guides, its track, its number there (0 on the shelf), and its row of `data/path.toml`.

    following  the next page of the track; "" at its end, and on the shelf
    first      whether the track begins with it
    leg        the part of the track that begins with it
    made_by    the page whose own command makes the run that this one's reads
    """

    name: str
    track: Words
    number: int
    of: int
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
    first: bool = False
    leg: Words | None = None

    @property
    def anchor(self) -> Words:
        """The anchor of its track on the index."""
        return Words(self.track.en.lower().replace(" ", "-"), self.track.zh)

    def command_in(self, lang: str) -> str:
        """Return the command as a reader of `en` or `zh` types it."""
        bilingual = self.command.startswith(("byhand work", "byhand where", "byhand explain"))
        return f"{self.command} --lang zh" if lang == "zh" and bilingual else self.command


def _path() -> Iterator[Stop]:
    said = read("path")
    knowledge, tracks, legs = (said.pop(name) for name in ("knowledge", "tracks", "legs"))
    begins = [*map(list(said).index, tracks), len(said)]
    for track, begin, end in zip(tracks, begins, begins[1:], strict=False):
        names, shelf = list(said)[begin:end], end == len(said)
        for number, name in enumerate(names):
            own = dict(said[name])
            prior, outcome = own.pop("needs"), Words(*own.pop("outcome"))
            yield Stop(
                name, Words(*tracks[track]), 0 if shelf else number + 1, len(names),
                "" if shelf else (*names, "")[number + 1], prior, Words(*knowledge[prior]), outcome, **own,
                first=number == 0, leg=Words(*legs[name]) if name in legs else None,
            )  # fmt: skip


PATH = tuple(_path())
STOPS = {stop.name: stop for stop in PATH}
