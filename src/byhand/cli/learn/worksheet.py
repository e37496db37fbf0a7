"""`byhand worksheet`: a page of exercises to print, and its answer key."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from byhand.book.practice.sheet_pages import html, markdown
from byhand.book.practice.sheets import TOPICS, make
from byhand.book.words.language import Language, preferred
from byhand.cli.arguments.parsing import read
from byhand.cli.terminal.say import show
from byhand.cli.terminal.shown import shown
from byhand.errors import ByhandError, reason
from byhand.files.reading import read_regular
from byhand.files.writing import create_all


@dataclass(frozen=True)
class Options:
    """Write a worksheet and its answer key, each as Markdown and as HTML to print or to save as PDF."""

    topic: str = ""
    """attention, cross-entropy, layer-norm, backprop, adamw or full. Omit it to list them."""
    seed: int = 1
    """Same seed, same sheet."""
    lang: Language = field(default_factory=preferred)
    """Language; from LANG if not given."""
    out: Path = Path()
    """Folder to write into; created if absent."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand worksheet")
    options = given.over()
    if not options.topic:
        given.refuse({"seed", "out"}, f"without a topic, as in --topic {next(iter(TOPICS))}")
        width = max(map(len, TOPICS))
        show("\n".join(f"{topic:<{width}}  {words.said(options.lang)}" for topic, words in TOPICS.items()))
        return 0
    sheet = make(options.topic, options.seed)
    stem = f"{sheet.topic}-{sheet.seed}.{options.lang}"
    pages = {
        options.out / f"{stem}{'.key' if key else ''}.{ending}": write(sheet, options.lang, key).encode()
        for key in (False, True)
        for ending, write in (("md", markdown), ("html", html))
    }
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        there = [path for path in pages if os.path.lexists(path)]
        for path in there:
            if not _holds(path, pages[path]):
                raise ByhandError(
                    f"{shown(path, 200)} exists already and differs, perhaps filled in. "
                    f"Move it, or use another --out."
                )
        create_all(options.out, [(path.name, page) for path, page in pages.items() if path not in there])
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise ByhandError(
            f"cannot write into {shown(options.out, 200)}: {reason(error)}. Choose another folder with --out."
        ) from None
    show("\n".join(shown(path, 400) for path in pages))
    return 0


def _holds(path: Path, content: bytes) -> bool:
    with suppress(OSError):
        return read_regular(path, len(content)) == content
    return False
