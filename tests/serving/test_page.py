"""The files of the chat page: their types, what browsers keep of them, and where they are from."""

from __future__ import annotations

import asyncio
import hashlib
import re
from importlib.resources import files

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


def test_the_page_has_no_script_and_no_style_of_its_own():
    content = FILES["/"].content.decode()
    assert not re.search(r"<style|style=|\son\w+=|javascript:", content)
    assert re.findall(r"<script[^>]*>(.*?)</script>", content) == [""]
    assert set(re.findall(r'(?:src|href)="([^"]*)"', content)) <= FILES.keys()
    for path, file in FILES.items():  # what lit-html writes into an attribute `style` the policy would refuse
        if path.startswith("/web/") and "vendor" not in path:
            assert not re.search(r"[^.]style=\$|innerHTML|unsafeHTML", file.content.decode()), path
            for module in re.findall(r'from "\./([^"]*)"', file.content.decode()):
                assert f"/web/{module}" in FILES


def test_lit_html_is_the_one_that_its_note_names():
    note = (WEB / "vendor" / "README.md").read_text(encoding="utf-8")
    found = hashlib.sha256((WEB / "vendor" / "lit-html.js").read_bytes()).hexdigest()
    assert re.findall(r"\b[0-9a-f]{64}\b", note) == [found]
    assert "BSD 3-Clause" in (WEB / "vendor" / "lit-html.LICENSE").read_text(encoding="utf-8")
