"""What the page asks: the pages about the project itself."""

from pages.blocks.markdown import ROOT


def pages_in_english() -> list[str]:
    """Return the pages about the project itself, which have no other language, without suffix."""
    found = [path for folder in ("docs", "docs/decisions") for path in sorted((ROOT / folder).glob("*.md"))]
    return [path.relative_to(ROOT).with_suffix("").as_posix() for path in found if not path.name.startswith("index.")]
