"""The files of the chat page: their types, what browsers keep of them, and where they are from."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from importlib.resources import files
from urllib.parse import urljoin

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from byhand.serving.guard import Access
from byhand.serving.page import FILES
from serving.house import client, service

WEB = files("byhand") / "web"


def test_files_have_types_and_are_asked_for_again_only_if_they_changed():
    async def ask():
        async with client(service(), Access("a-key-of-the-test")) as made:
            assert (await made.get("/explore")).status_code == 404  # that needs the explorer
            for path, file in FILES.items():
                if path == "/explore":
                    continue
                first = await made.get(path)
                assert (first.status_code, first.content) == (200, file.content)
                assert first.headers["content-type"] == file.kind
                assert first.headers["cache-control"] == "no-cache"
                policy = first.headers["content-security-policy"]
                assert "unsafe" not in policy
                assert "frame-ancestors 'none'" in policy
                again = await made.get(path, headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
                assert (again.status_code, again.content) == (304, b"")
                assert (await made.head(path)).status_code == 200
            for path in (
                "/web/",
                "/web/index.html",
                "/web/vendor/README.md",
                "/web/%2e%2e/errors.py",
                "/web//style.css",
            ):
                assert (await made.get(path)).status_code == 401, path  # as whatever is not the page

    asyncio.run(ask())


@pytest.mark.parametrize("page", ["/", "/explore"])
def test_a_page_has_no_script_and_no_style_of_its_own(page):
    content = FILES[page].content.decode()
    assert not re.search(r"<style|style=|\son\w+=|javascript:", content)
    assert re.findall(r"<script[^>]*>(.*?)</script>", content) == [""]
    assert set(re.findall(r'(?:src|href)="([^"]*)"', content)) <= FILES.keys()


def test_modules_are_there_and_write_no_styles():
    for path, file in FILES.items():  # what lit-html writes into an attribute `style` the policy would refuse
        if path.endswith(".js") and "vendor" not in path:
            content = file.content.decode()
            assert not re.search(r"[^.]style=\$|<\w[^>\n]* style=|innerHTML|unsafeHTML", content), path
            assert content.count("\n") <= 250, path
            for module in re.findall(r'from "(\.[^"]*)"', content):
                assert urljoin(path, module) in FILES, (path, module)


def test_a_page_is_small_without_its_fonts():
    sent = [gzip.compress(file.content) for path, file in FILES.items() if not re.search(r"woff2$|/live/", path)]
    assert sum(map(len, sent)) < 120_000


@pytest.mark.parametrize(
    ("file", "license"),
    [
        ("lit-html.js", "BSD 3-Clause"),
        ("inter.woff2", "SIL OPEN FONT LICENSE"),
        ("mono.woff2", "SIL OPEN FONT LICENSE"),
        ("formulas.woff2", "GUST Font License"),
    ],
)
def test_what_is_from_elsewhere_is_the_one_that_its_note_names(file, license):
    note = (WEB / "vendor" / "README.md").read_text(encoding="utf-8")
    found = hashlib.sha256((WEB / "vendor" / file).read_bytes()).hexdigest()
    assert re.findall(rf"^{re.escape(file)} is .*\nSHA-256: (\w+)$", note, re.MULTILINE) == [found]
    own = file.rpartition(".")[0]
    assert license in (WEB / "vendor" / f"{own}.LICENSE").read_text(encoding="utf-8")
