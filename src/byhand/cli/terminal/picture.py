"""Writing pictures, and matplotlib titles in fonts that have their characters."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byhand.cli.terminal.shown import shown
from byhand.errors import ConfigError, install, reason
from byhand.files.reading import read_regular
from byhand.files.writing import replace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 1 << 24  # bytes of a picture; ours have some 50,000
LONGEST = 90  # characters of a title
CJK = (  # fonts with Chinese characters
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "PingFang SC", "Hiragino Sans GB", "Heiti SC", "STHeiti", "Microsoft YaHei", "SimHei",
    "SimSun", "Arial Unicode MS", "Droid Sans Fallback",
)  # fmt: skip
PLAIN = "DejaVu Sans"  # comes with matplotlib


def require_drawing(path: Path, example: str) -> None:
    """Raise ConfigError, before a measurement, for a --plot that could not be drawn after it."""
    name = shown(path, 200)
    if find_spec("matplotlib") is None:
        raise ConfigError(f"--plot needs matplotlib. Use {install('plot')}.")
    if path.suffix not in (".png", ".svg") or "\0" in str(path):
        raise ConfigError(f"--plot {name} is neither .png nor .svg. Use {example}.")
    if not os.path.isdir(path.parent):
        raise ConfigError(f"--plot {name}: there is no folder {shown(path.parent, 200)}. Choose another path.")


def save(figure: Figure, path: Path, remedy: str = "Choose another path.", **settings: Any) -> None:
    """Write a figure to the file that the user named; ConfigError if that fails."""
    drawn = io.BytesIO()
    figure.savefig(drawn, **{"format": path.suffix[1:], **settings})
    write(path, drawn.getvalue(), remedy)


def write(path: Path, content: bytes, remedy: str) -> None:
    """Write the file that the user named, whole, or a device or FIFO; ConfigError if that fails."""
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb", opener=_open) as file:
                file.write(content)
        else:
            replace(Path(os.path.realpath(path)), [content])
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise ConfigError(f"cannot write {shown(path, 200)}: {reason(error)}. {remedy}") from None


def _open(path: str, flags: int) -> int:
    """Open a file for writing; OSError for a FIFO without a reader, which would block."""
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:
            error.strerror = "nobody reads this FIFO"
        raise
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(descriptor, True)
    return descriptor


def is_free(path: Path, ours: Callable[[bytes], bool]) -> bool:
    """Return whether a picture may be written here: there is no file, or one of ours by its content, but no link."""
    with suppress(OSError, ValueError):
        if not os.path.lexists(path):
            return True
        return not path.is_symlink() and ours(read_regular(path, LARGEST))
    return False


def title(text: str) -> tuple[str, list[str]]:
    r"""Return a title and the fonts it needs; a character that no font has becomes `\u4e2d`."""
    from matplotlib import font_manager

    text = shown(text, LONGEST)
    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts = [PLAIN]
    written = ""
    for c in text:
        candidates = [*fonts, *(name for name in CJK if name in installed and name not in fonts)]
        having = next((name for name in candidates if ord(c) in _characters(name)), None)
        if having and having not in fonts:
            fonts.append(having)
        written += c if having else c.encode("unicode_escape").decode()
    return written, fonts


def _characters(font: str) -> Collection[int]:
    from matplotlib import font_manager

    return font_manager.get_font(font_manager.findfont(font)).get_charmap().keys()
