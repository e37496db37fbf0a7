"""Makes a film of the explorer for the first page: its tours through the GPT on paper, 40 seconds in each language.

A part of the site where chromium, its driver, Pillow and a font are there; elsewhere the first page has a picture.
"""

import base64
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler as Files
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from browser.webdriver import Browser, missing  # noqa: E402

TOURS, GUIDES = ROOT / "src" / "byhand" / "web" / "explore" / "tours", ("gpt", "gradient")
LANGUAGES = {"en": "en", "zh-CN": "zh"}  # folder of the site: the explorer's name of the language
SIZE, SECONDS, PATIENCE, MOST = (1280, 800), 40, 20, 2_000_000  # pixels, of the film, of waiting; bytes
WEBP: dict[str, Any] = {"quality": 60, "kmin": 0, "kmax": 1}  # each frame whole: nothing of the one before is left
READY = """return document.querySelector('.tour p') && document.querySelector('.cell')
    && !document.querySelector('[aria-busy=true]') && !/…$/.test(document.querySelector('.nudge')?.textContent)"""


def stops() -> Iterator[str]:
    """Yield the address of each stop, with the tour that says its sentence."""
    for guide in GUIDES:
        for number, stop in enumerate(json.loads((TOURS / f"{guide}.json").read_bytes()), 1):
            yield f"{stop['address']}{'&' if '?' in stop['address'] else '?'}tour={number}&guide={guide}"


def pictures(browser: Browser, page: str, addresses: list[str]) -> Iterator[bytes]:
    """Yield what is seen at each address of an explorer's page, as PNG."""
    browser.look(*SIZE, prefers_reduced_motion="reduce", prefers_color_scheme="light")
    for address in addresses:
        browser.open("about:blank")
        browser.open(page + address)
        until = time.monotonic() + PATIENCE
        while not browser.run(READY):
            if time.monotonic() > until:
                raise SystemExit(f"the explorer shows nothing at {address}.")
            time.sleep(0.05)
        browser.later("requestAnimationFrame(() => requestAnimationFrame(() => done()))")
        yield base64.b64decode(browser.devtools("Page.captureScreenshot", format="png")["data"])


def with_font() -> dict[str, str]:
    """Return the languages that this machine has a font for."""
    if not (fonts := shutil.which("fc-list")):
        return {}
    asked = {name: [fonts, f":lang={lang}"] for name, lang in LANGUAGES.items()}
    found = {n for n, words in asked.items() if subprocess.run(words, capture_output=True, check=False).stdout}
    return {name: lang for name, lang in LANGUAGES.items() if name in found}


def write(
    site: Path, explorer: str, addresses: list[str] | None = None, languages: dict[str, str] | None = None
) -> None:
    """Write film/LANGUAGE.webp into a site with an explorer, or say what it lacks for that.

    addresses  that it shows: the tours' stops
    languages  as in LANGUAGES: those with a font
    """
    if lack := missing() or ("" if importlib.util.find_spec("PIL") else "no Pillow: pip install pillow"):
        return print(f"no film of the explorer: {lack}")
    from PIL import Image

    addresses, folder = addresses or list(stops()), site / "film"
    folder.mkdir()
    served: Any = partial(type("Quiet", (Files,), {"log_message": lambda *_: None}), directory=str(site))
    with tempfile.TemporaryDirectory() as profile, ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = Browser(Path(profile))
        try:
            for name, lang in (languages or with_font()).items():
                page = f"http://127.0.0.1:{server.server_port}/{explorer}/index.html?lang={lang}"
                frames = [Image.open(io.BytesIO(png)) for png in pictures(browser, page, addresses)]
                each, path = SECONDS * 1000 // len(frames), folder / f"{name}.webp"
                frames[0].save(path, save_all=True, append_images=frames[1:], duration=each, loop=0, **WEBP)
                if path.stat().st_size > MOST:
                    raise SystemExit(f"{path} has {path.stat().st_size:,} bytes, and at most {MOST:,} are wanted.")
        finally:
            browser.close()
            server.shutdown()
