"""Counts the words of the guides that one sees: without templates, folded parts and displayed formulas.

    python benchmarks/words.py [FOLDER]

A formula in a line is one word; in Chinese, characters and words in Latin letters count. FOLDER holds the guides,
such as an older commit's.
"""

import re
import sys
from pathlib import Path

HIDDEN = re.compile(r"<!--.*?-->|```math.*?```|(?<=</summary>).*?(?=</details>)", re.DOTALL)


def seen(page: Path) -> int:
    """Return how many words of a page are seen."""
    text = re.sub(r"\$`.*?`\$", "x", HIDDEN.sub("", page.read_text(encoding="utf-8")))
    text = re.sub(r"</?(details|summary)>", "", text)
    return len(re.findall(r"[\u4e00-\u9fff]|[A-Za-z]+", text)) if "zh" in page.name else len(text.split())


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parents[1] / "docs" / "guides"
    for english in sorted(page for page in folder.glob("*.md") if "zh" not in page.name):
        print(f"{english.stem:26}{seen(english):7,}{seen(english.with_suffix('.zh-CN.md')):7,}")
