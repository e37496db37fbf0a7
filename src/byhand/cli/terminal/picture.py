"""Pictures by matplotlib: checks of their path, and titles in fonts that have their characters."""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from byhand.cli.terminal.shown import shown
from byhand.errors import ConfigError, reason

LONGEST = 90  # characters that a title has room for
CJK = (  # fonts with Chinese characters, as the systems name them
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "PingFang SC", "Hiragino Sans GB", "Heiti SC", "STHeiti", "Microsoft YaHei", "SimHei",
    "SimSun", "Arial Unicode MS", "Droid Sans Fallback",
)  # fmt: skip
PLAIN = "DejaVu Sans"  # comes with matplotlib


def require_drawing(path: Path, example: str) -> None:
    """Raise ConfigError, before a measurement, for a --plot that could not be drawn after it."""
    name = shown(path, 200)
    if find_spec("matplotlib") is None:
        raise ConfigError("--plot needs matplotlib. Use pip install 'byhand[plot]'.")
    if path.suffix not in (".png", ".svg") or "\0" in str(path):
        raise ConfigError(f"--plot {name} is neither .png nor .svg. Use {example}.")
    if not os.path.isdir(path.parent):
        raise ConfigError(f"--plot {name}: there is no folder {shown(path.parent, 200)}. Choose another path.")


def unwritten(path: Path, error: OSError) -> ConfigError:
    """Return the error for a picture that cannot be written."""
    return ConfigError(f"cannot write {shown(path, 200)}: {reason(error)}. Choose another path.")


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
