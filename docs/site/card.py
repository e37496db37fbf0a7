"""Makes docs/images/front.png and its Chinese: `python docs/site/card.py build/site`; needs chromium.

The picture is the first screen of the built site. READMEs begin with it, and other sites show it for a shared link.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[1] / "images"
SIZE, PIXELS = (1200, 630), 1.5  # what a shared link shows; of the screen for each of the page's
NAMES = {"en": "front.png", "zh-CN": "front.zh-CN.png"}


def main(site: Path) -> None:
    """Take both pictures."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    for language, name in NAMES.items():
        with tempfile.TemporaryDirectory() as profile:
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
            size = f"--window-size={','.join(map(str, SIZE))}"
            taken = [f"--screenshot={IMAGES / name}", size, f"--force-device-scale-factor={PIXELS}"]
            page = (site / language / "index.html").resolve().as_uri()
            subprocess.run([browser, *flags, *taken, page], check=True, capture_output=True, timeout=60)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
