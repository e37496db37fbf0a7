"""Pictures that `work --plot` and `explain --plot` write."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from byhand.book.words.language import Words
from byhand.cli.arguments.settings import ValueOptional
from byhand.cli.terminal.picture import is_free
from byhand.cli.terminal.shown import shown
from byhand.errors import ByhandError, reason
from byhand.files.writing import replace

ENDINGS = (".svg", ".png", ".pdf", ".jpg", ".jpeg", ".gif")  # a word after --plot with one of these names a file
Plot = Annotated[Path | None, ValueOptional(ENDINGS)]
MARK = "<!-- drawn by byhand -->\n"
WROTE = Words("wrote {path}", "已写入 {path}")


def write(svg: str, path: Path, default: str, lang: str) -> str:
    """Write a picture; return a line that names the file.

    path     Path() if --plot has no value: the file is then `default` in the current folder
    Raises ByhandError if it cannot be written, or would overwrite a file that --plot did not draw.
    """
    path = Path(default) if path == Path() else path
    named = shown(path, 200)
    if path.suffix != ".svg":
        raise ByhandError(f"--plot {named}: pictures are SVG. Use a name that ends in .svg, as in --plot {default}.")
    if not is_free(path, lambda content: content.startswith(MARK.encode())):
        raise ByhandError(
            f"{named} exists already and was not drawn by --plot. Move it, or name another file, as in "
            f"--plot {path.stem}-2.svg."
        )
    try:
        replace(path, [f"{MARK}{svg}".encode()])
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise ByhandError(
            f"cannot write {named}: {reason(error)}. Choose another file, as in --plot {default}."
        ) from None
    return WROTE.said(lang, path=named)
