"""Makes static/explorer.png: `python docs/site/explorer.py`, the explorer's first look at the model on paper.

Needs byhand[serve], Pillow, a Chinese font, and Chromium with its driver, as the browser tests do.
"""

import base64
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser.explorer import Page  # noqa: E402
from browser.webdriver import Browser  # noqa: E402
from byhand.exploring import paper  # noqa: E402
from byhand.serving.explorer import Explorer  # noqa: E402
from serving.house import listening  # noqa: E402

PICTURE = ROOT / "docs" / "site" / "static" / "explorer.png"
ADDRESS = "?lang=en&theme=light#/blocks.0.attn.weights[0,0,2,1]?lens=1"
MOST = 150_000  # bytes
COLOURS = 256


def smaller(png: bytes) -> bytes:
    """Return the same picture with fewer colours."""
    held, picture = io.BytesIO(), Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(held, "PNG", optimize=True)
    return held.getvalue()


def main() -> None:
    """Open the page as a reader does, and keep what is seen."""
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(Path(profile))
        try:
            explorer = Explorer(paper.subject(), paper.PROMPT, paper.NEXT)
            with listening(None, None, explorer) as port:
                browser.look(prefers_reduced_motion="reduce", prefers_color_scheme="light")
                page = Page(browser, explorer, port)
                page.open(ADDRESS)
                page.wait("document.querySelector('.nudge b') && !document.querySelector('[aria-busy=true]')")
                page.settle()
                png = smaller(base64.b64decode(browser.devtools("Page.captureScreenshot", format="png")["data"]))
                browser.open("about:blank")
        finally:
            browser.close()
    if len(png) > MOST:
        raise SystemExit(f"the picture has {len(png):,} bytes, and at most {MOST:,} are wanted.")
    PICTURE.write_bytes(png)


main()
