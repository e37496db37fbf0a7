"""The pages: their files, read once, as browsers get them."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

PAGES = {"index.html": "/", "explore.html": "/explore"}
TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "woff2": "font/woff2",
}


class PageFile(NamedTuple):
    """A file of the page, as browsers get it."""

    content: bytes
    kind: str
    tag: str

    def response(self, request: Request) -> Response:
        """Return it, or that the browser has it."""
        headers = {"etag": self.tag, "cache-control": "no-cache", "content-type": self.kind}
        known = request.headers.get("if-none-match", "")
        if self.tag in known.replace(",", " ").replace("W/", "").split():
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers)


def _read() -> dict[str, PageFile]:
    found = dict[str, PageFile]()

    def read(folder: Traversable, path: str) -> None:
        for each in folder.iterdir():
            if each.is_dir():
                read(each, f"{path}{each.name}/")
            elif kind := TYPES.get(each.name.rpartition(".")[2]):
                content = each.read_bytes()
                name = PAGES.get(each.name, path + each.name)
                found[name] = PageFile(content, kind, f'"{sha256(content).hexdigest()[:32]}"')

    read(files("byhand") / "web", "/web/")
    return found


FILES = _read()  # path to file
