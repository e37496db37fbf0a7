"""Builds the site from the pages of docs/: `python docs/site/build.py [FOLDER [PAGE ...]]`, by default build/site.

With names of pages (`classifier`) it builds only these and the first page's doors, without links to others.

The pages are written for GitHub. They are copied once for each language with their links and formulas in Sphinx's
form, and Sphinx builds `en/` and `zh-CN/` of them; `source/` holds every file that a page points into, line by line.
Needs the dependency group `docs`. What comes out is static and loads nothing from elsewhere.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from urllib.parse import unquote

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.cmd.build import main as sphinx

SITE = Path(__file__).resolve().parent
ROOT = SITE.parents[1]
sys.path.insert(0, str(ROOT / "docs" / "build"))

from byhand.book.finding.finding import Finding  # noqa: E402
from live import explorer  # noqa: E402
from live.pages import hooked  # noqa: E402
from pages.filling import as_read  # noqa: E402
from where.exported import exported  # noqa: E402
from where.syntax import statement  # noqa: E402

WEB = ROOT / "src" / "byhand" / "web"
SCRIPTS = {"live": "live/start.js", "front": "live/front.js", "theme": "theme.js"}  # of pages: their first module
SEARCH = ("words", "formula", "search", "show")  # as one file, behind the index
LANGUAGES = {"en": "en", "zh-CN": "zh_CN"}  # folder of the site: Sphinx's name of the language
SITE_URL = os.environ.get("SITE_URL", "")  # which only the pictures of shared links need
CARD, SUFFIX = ROOT / "docs" / "images" / "front", {"en": ".png", "zh-CN": ".zh-CN.png"}  # made by card.py
DOORS = ("index", "README", "matrix-core", "learn-by-hand")
IMPORT = re.compile(r'^import \{[^}]*\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
FENCE = re.compile(r"(^ *```.*?^ *```)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[.*?\]\(((?!https?:)[^()\s]+\.(?:svg|png))\)")  # its words may hold brackets: Y[1,0]
LISTED = re.compile(r"^(?:-|(\d+)\.) (?:([^\[\n]+?)[:：] ?)?(\[.*)\n", re.MULTILINE)  # with its number, or its group
EQUATION, FIRST = re.compile(r"equations/(\w+)(?:\.zh-CN)?\.md$"), re.compile(r"^(?=## )", re.MULTILINE)
DOOR = {
    "en": "Open it in the explorer, at the first number that it makes in the GPT on paper",
    "zh-CN": "在浏览工具中打开：它在纸上的 GPT 里算出的第一个数",
}
GAP = re.compile(
    r"(?<=[，。、；：（“]) (?=\$`)|(?<=`\$) (?=[，。、；：）”])"
)  # GitHub needs these spaces, readers do not
CHOICE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>byhand</title>
<script src="en/_static/language.js"></script>
<p><a href="en/index.html">English</a> · <a href="zh-CN/index.html" lang="zh-CN">简体中文</a></p></html>
"""


class Site:
    """The pages by language, where each goes, and the source files that they point into."""

    def __init__(self, out: Path, only: tuple[str, ...] = ()) -> None:
        self.out = out
        self.sources: set[Path] = set()
        self.whole = not only
        found = [ROOT / "README.md", ROOT / "README.zh-CN.md", *(ROOT / "docs").rglob("*.md")]
        self.pages = {page: _destination(page) for page in sorted(found) if page.is_file()}
        self.staging = {
            page: target for page, target in self.pages.items() if not only or target.stem in (*only, *DOORS)
        }

    def build(self) -> int:
        """Write the whole site; return 0 if Sphinx has no complaint."""
        shutil.rmtree(self.out, ignore_errors=True)
        staging = self.out.with_name(self.out.name + "-pages")
        shutil.rmtree(staging, ignore_errors=True)
        for page, target in self.staging.items():
            path = staging / target
            path.parent.mkdir(parents=True, exist_ok=True)
            text = self.staged(page)
            path.write_text(text, encoding="utf-8")
            for picture in PICTURE.findall(text):
                (path.parent / picture).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(page.parent / picture, path.parent / picture)
        explorer.write(self.out)
        if self.whole:
            sys.path.insert(0, str(SITE))
            import film

            film.write(self.out, explorer.FOLDER)
        for folder, language in LANGUAGES.items():
            shutil.copytree(SITE / "locale", staging / folder / "locale")
            flags = ["-q", "-W", "--keep-going", "-c", str(SITE), "-D", f"language={language}"]
            if SITE_URL:
                flags += ["-D", f"html_baseurl={SITE_URL}{folder}/"]
            code = sphinx([*flags, str(staging / folder), str(self.out / folder)])
            if code:
                return code
            static = self.out / folder / "_static"
            index = exported(self.answer, "zh" if folder == "zh-CN" else "en")
            data = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
            for script, module in SCRIPTS.items():
                (static / f"{script}.js").write_text(_joined(WEB / module), encoding="utf-8")
            search = "\n".join((SITE / "search" / f"{name}.js").read_text(encoding="utf-8") for name in SEARCH)
            (static / "where.js").write_text(f"const whereIndex = {data};\n{search}", encoding="utf-8")
            shutil.copyfile(CARD.with_suffix(SUFFIX[folder]), static / "card.png")
        for file in sorted(self.sources):
            self.write_source(file)
        (self.out / "index.html").write_text(CHOICE, encoding="utf-8")
        wrong = list(self.wrong_links())
        print("\n".join(wrong) or f"{self.out}: whole, {len(self.staging)} pages, {len(self.sources)} source files")
        return 1 if wrong else 0

    def wrong_links(self) -> Iterator[str]:
        """Yield every address in the site that leads nowhere, or that loads something from elsewhere."""
        anchors: dict[Path, set[str]] = {}
        for page in sorted(self.out.rglob("*.html")):
            text = page.read_text(encoding="utf-8")
            for tag, address in re.findall(r'<(\w+)[^>]*? (?:href|src)="([^"]+)"', text):
                if address.startswith(("http:", "https:", "//")):
                    if tag != "a":
                        yield f"{page}: loads {address}"
                    continue
                path, _, anchor = unquote(address).partition("#")
                file = (page.parent / path.partition("?")[0]).resolve() if path else page
                if file == self.out / explorer.FOLDER / "index.html" and anchor:
                    if not explorer.has(self.out, anchor):
                        yield f"{page}: {address} leads to no number"
                    continue
                if file not in anchors:
                    found = file.is_file() and file.suffix == ".html"
                    anchors[file] = (
                        set(re.findall(r' (?:id|name)="([^"]+)"', file.read_text("utf-8"))) if found else set()
                    )
                if not file.exists() or (anchor and anchor not in anchors[file]):
                    yield f"{page}: {address} leads nowhere"
        for sheet in sorted(self.out.rglob("*.css")):
            for address in re.findall(r"url\([\"']?([^\"'):?#]+)[\"'?#)]", sheet.read_text("utf-8")):  # no data:
                if not (sheet.parent / address).is_file():
                    yield f"{sheet}: {address} leads nowhere"

    def staged(self, page: Path) -> str:
        """Return a page as Sphinx reads it."""
        parts = FENCE.split(as_read(page.read_text(encoding="utf-8")))
        for i, part in enumerate(parts):
            if part.lstrip(" ").startswith("```"):
                parts[i] = re.sub(r"\A( *)```math\n", r"\1```{math}\n", part)
            else:
                part = GAP.sub("", part)
                part = LINK.sub(lambda m: self.link(page, m[1], m[2]), part)
                parts[i] = re.sub(r"(?<!`` )\$`(.*?)`\$", r"{math}`\1`", part, flags=re.DOTALL)
        text = self.live(page, FIRST.sub(self.door(page), "".join(parts), count=1))
        return text + self.contents(page) if page.name.startswith("index.") else text

    def door(self, page: Path) -> str:
        """Return a link from an equation's page to the explorer; "" where the GPT on paper does not use it."""
        name = EQUATION.search(page.as_posix())
        address = explorer.places().get(name[1]) if name else None
        if address is None:
            return ""
        here = self.pages[page]
        link = f"{_relative(Path(explorer.FOLDER, 'index.html'), here)}#/{address}"
        return f'<a class="to-explorer" href="{link}">{DOOR[here.parts[0]]} →</a>\n\n'

    def live(self, page: Path, text: str) -> str:
        """Return a page with the hooks that let it answer back, if it has a lesson, and the scripts that do."""
        answering = hooked(text, "zh" if page.name.endswith(".zh-CN.md") else "en")
        if answering == text:
            return text
        static = _relative(Path(self.pages[page].parts[0], "_static"), self.pages[page])
        palette = _relative(Path(explorer.FOLDER, "web", "palette.css"), self.pages[page])
        sheets = "".join(f'<link rel="stylesheet" href="{sheet}">\n' for sheet in (palette, f"{static}/live.css"))
        loaded = f'{sheets}<script defer src="{static}/live.js"></script>'
        return f"{answering}\n{loaded}\n"

    def link(self, page: Path, shown: str, target: str) -> str:
        """Return a link of a page as it has to read on the site."""
        path, hash_, anchor = target.partition("#")
        if not path or "://" in target:
            return f"[{shown}]({target})"
        file = (page.parent / path).resolve()
        here = self.pages[page]
        if file in self.pages:
            if file not in self.staging:
                return shown
            there = self.pages[file]
            if there.parts[0] == here.parts[0]:
                return f"[{shown}]({_relative(there, here)}{hash_}{anchor})"
            return f'<a href="{_relative(there.with_suffix(".html"), here)}{hash_}{anchor}">{shown}</a>'
        if not file.is_file():
            raise FileNotFoundError(f"{page} links to {target}, which is not there")
        self.sources.add(file)
        there = Path("source", f"{file.relative_to(ROOT).as_posix()}.html")
        line = f"#L-{statement(file, anchor).lineno}" if anchor else ""  # pages name a definition
        return f'<a href="{_relative(there, here)}{line}">{shown}</a>'

    def answer(self, finding: Finding, lang: str) -> str:
        """Return where the site has an answer of `where`, from the folder of its language; "" for nowhere."""
        here = Path("zh-CN" if lang == "zh" else "en", "search.html")
        term = ROOT / "docs" / "guides" / f"glossary{'.zh-CN' * (lang == 'zh')}.md"
        page = term if finding.kind == "term" else ROOT / finding.page_path(lang)
        if page in self.staging:
            return _relative(self.pages[page].with_suffix(".html"), here)
        path, _, line = (finding.forward or "").partition(":")
        file = ROOT / path
        if self.whole and line:
            self.sources.add(file)
        return f"../source/{path}.html#L-{line}" if file in self.sources and line else ""

    def contents(self, index: Path) -> str:
        """Return the tables of contents of the index: its lists of links, one for each heading or group.

        Pages that only one language has speak of the project itself: the index leads there, the navigation does not.
        """
        groups: dict[str, list[str]] = {}
        text = FENCE.sub("", as_read(index.read_text(encoding="utf-8")))
        here = self.pages[index]
        for section in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]:
            caption, _, body = section.partition("\n")
            for number, group, links in LISTED.findall(body):
                for shown, path in LINK.findall(links):
                    file = (index.parent / path).resolve()
                    if file in self.staging and _in_both(file):
                        entry = _relative(self.staging[file], here).removesuffix(".md")
                        titled = f"{number}. {shown} <{entry}>" if number else entry
                        groups.setdefault(group or caption, []).append(titled)
        trees = (["```{toctree}", ":hidden:", f":caption: {said}", "", *own, "```"] for said, own in groups.items())
        return "\n\n" + "\n\n".join(map("\n".join, trees)) + "\n"

    def write_source(self, file: Path) -> None:
        """Write a file of the repository as a page whose lines can be pointed at."""
        name = file.relative_to(ROOT).as_posix()
        try:
            lexer = get_lexer_for_filename(name)
        except ClassNotFound:
            lexer = get_lexer_for_filename("plain.txt")
        formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True)
        light, dark = (HtmlFormatter(style=s).get_style_defs(".highlight") for s in ("friendly", "github-dark"))
        style = (SITE / "source.css").read_text(encoding="utf-8")
        body = highlight(file.read_text(encoding="utf-8"), lexer, formatter)
        path = self.out / "source" / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{name}</title>\n'
            f'<meta name="viewport" content="width=device-width"><style>\n{light}\n'
            f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{style}</style>\n"
            f"<h1>{name}</h1>\n{body}</html>\n",
            encoding="utf-8",
        )


def _destination(page: Path) -> Path:
    """Return where a page goes in the staging folder: its language, then its path without the language's suffix."""
    path = page.relative_to(ROOT / "docs") if page.is_relative_to(ROOT / "docs") else page.relative_to(ROOT)
    language = "zh-CN" if page.name.endswith(".zh-CN.md") else "en"
    return Path(language) / path.with_name(path.name.replace(".zh-CN.md", ".md"))


def _joined(module: Path) -> str:
    """Return a module and those that it imports as one script: browsers load no modules from a disk."""
    found: dict[Path, str] = {}

    def add(file: Path) -> None:
        if file not in found:
            found[file] = ""
            text = file.read_text(encoding="utf-8")
            for name in IMPORT.findall(text):
                add(file.parent.joinpath(name).resolve())
            del found[file]  # it comes behind what it imports
            found[file] = EXPORT.sub("", IMPORT.sub("", text))

    add(module)
    return '"use strict";\n{\n' + "\n".join(found.values()) + "}\n"


def _in_both(page: Path) -> bool:
    """Return whether a page is there in both languages."""
    return page.name.endswith(".zh-CN.md") or page.with_suffix(".zh-CN.md").is_file()


def _relative(there: Path, here: Path) -> str:
    return relpath(there, here.parent).replace("\\", "/")


if __name__ == "__main__":
    destination = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    raise SystemExit(Site(destination, tuple(sys.argv[2:])).build())
