"""`byhand worksheet`: a page of exercises to print, and its answer key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from byhand.book.sheet_html import html
from byhand.book.sheet_text import markdown
from byhand.book.sheets import TOPICS, make
from byhand.cli.arguments import parse
from byhand.errors import ByhandError


@dataclass(frozen=True)
class Options:
    """Write a worksheet and its answer key, each as Markdown and as HTML that prints well."""

    topic: str = ""
    """attention, cross-entropy, layer-norm, backprop, adamw or full; nothing lists them."""
    seed: int = 1
    """Same seed, same sheet."""
    lang: Literal["en", "zh"] = "en"
    """Language."""
    out: Path = Path()
    """Folder to write into; made if it is not there."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand worksheet")
    if not options.topic:
        width = max(map(len, TOPICS))
        print("\n".join(f"{topic:<{width}}  {words.said(options.lang)}" for topic, words in TOPICS.items()))
        return 0
    sheet = make(options.topic, options.seed)
    stem = f"{sheet.topic}-{sheet.seed}.{options.lang}"
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for key in (False, True):
            for ending, write in (("md", markdown), ("html", html)):
                path = options.out / f"{stem}{'.key' if key else ''}.{ending}"
                path.write_text(write(sheet, options.lang, key), encoding="utf-8", newline="\n")
                print(path)
    except OSError as error:
        raise ByhandError(
            f"cannot write into {options.out}: {error.strerror}. Choose another folder with --out."
        ) from None
    return 0
