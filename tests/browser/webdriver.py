"""A real browser, driven through chromedriver by the WebDriver protocol (W3C): as much of it as the tests need."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from cli.process import PATIENCE

CHROMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
)  # fmt: skip
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER, TAB, ESCAPE = "\ue007", "\ue004", "\ue00c"
LEFT, UP, RIGHT, DOWN = "\ue012", "\ue013", "\ue014", "\ue015"


def missing() -> str:
    """Return what this machine lacks to run a browser; "" for nothing."""
    if not any(map(shutil.which, CHROMES)):
        return "no browser: install chromium"
    return (
        "" if shutil.which("chromedriver") else "no chromedriver: install the one of your browser (chromium-driver)"
    )


class Browser:
    """A session of a headless browser with a profile of its own."""

    def __init__(self, profile: Path) -> None:
        port_file = profile / "driver.log"
        self._log = port_file.open("w")
        self._process = subprocess.Popen(["chromedriver", "--port=0"], stdout=self._log, stderr=subprocess.STDOUT)
        self._root = f"http://127.0.0.1:{self._port(port_file)}"
        chrome = next(filter(None, map(shutil.which, CHROMES)))
        options = {"binary": chrome, "args": [*FLAGS, f"--user-data-dir={profile}"]}
        settings = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": settings}})
        self._session = f"/session/{made['sessionId']}"
        self.devtools("Emulation.setFocusEmulationEnabled", enabled=True)

    def open(self, page: Path | str) -> None:
        """Open a page, a file or an address; its scripts have run when it is loaded."""
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self._ask("POST", f"{self._session}/url", {"url": url})

    def look(self, width: int = 1280, height: int = 800, **media: str) -> None:
        """Set the window's size, and media features such as `prefers_color_scheme="dark"`."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.devtools("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a function's body in the page; `arguments` are the script's."""
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def later(self, script: str) -> Any:
        """Run a script that calls `done` when it is ready."""
        whole = f"const done = arguments[arguments.length - 1]; {script}"
        return self._ask("POST", f"{self._session}/execute/async", {"script": whole, "args": []})

    def type(self, *keys: str) -> None:
        """Type into what has the focus, as a keyboard does."""
        actions = [{"type": kind, "value": key} for text in keys for key in text for kind in ("keyDown", "keyUp")]
        body = {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}
        self._ask("POST", f"{self._session}/actions", body)

    def devtools(self, command: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self._ask("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def complaints(self) -> list[str]:
        """Return what the page's console complained of since the last call."""
        entries = self._ask("POST", f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def close(self) -> None:
        """End the browser and its driver."""
        try:
            self._ask("DELETE", self._session)
        finally:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._log.close()

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def _port(self, log: Path) -> int:
        """Return the port that chromedriver chose."""
        deadline = time.monotonic() + PATIENCE
        while "started successfully on port" not in (said := log.read_text()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"chromedriver does not start: {said}")
            time.sleep(0.02)
        return int(said.split("successfully on port ")[1].split(".")[0])
