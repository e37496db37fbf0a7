"""The pictures that `--plot` of `work` and `explain` writes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from byhand.book.words.language import Words
from byhand.cli.arguments.settings import ValueOptional
from byhand.cli.terminal.shown import shown
from byhand.errors import ByhandError, reason
from byhand.files.reading import read_regular
from byhand.files.writing import replace

OPTIONAL = ValueOptional((".svg", ".png", ".pdf", ".jpg", ".jpeg", ".gif"))  # words that are meant as a file's name
MARK = "<!-- drawn by byhand -->\n"
LARGEST = 1 << 24  # bytes of a picture; ours have some 20,000
WROTE = Words("wrote {path}", "已写入 {path}")


def write(svg: str, path: Path, default: str, lang: str) -> str:
    """Write a picture, and return the line that says where.

    path     the current folder itself if --plot stands alone: then the file is `default` in it
    Raises ByhandError, one line, where it cannot be written, or another file than one of these pictures is there.
    """
    path = Path(default) if path == Path() else path
    named = shown(path, 200)
    if path.suffix != ".svg":
        raise ByhandError(f"--plot {named}: pictures are SVG. Use a name that ends in .svg, as in --plot {default}.")
    if not _is_free(path):
        raise ByhandError(
            f"{named} is there already and was not drawn by --plot. Move it, or name another file, as in "
            f"--plot {path.stem}-2.svg."
        )
    try:
        replace(path, [f"{MARK}{svg}".encode()])
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        why = reason(error) if isinstance(error, OSError) else error
        raise ByhandError(f"cannot write {named}: {why}. Choose another file, as in --plot {default}.") from None
    return WROTE.said(lang, path=named)


def _is_free(path: Path) -> bool:
    """Say whether no file is there, or one that was written here before."""
    with suppress(OSError, ValueError):
        if not os.path.lexists(path):
            return True
        return not path.is_symlink() and read_regular(path, LARGEST).startswith(MARK.encode())
    return False
