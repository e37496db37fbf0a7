"""`byhand where QUERY`: where an equation is implemented, by name, words or formula, in English or Chinese.

Also finds settings, guides, lessons, and techniques that the model does not have.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from byhand.book.words.language import COMMA, Language, Words, preferred
from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import say, show, show_json
from byhand.cli.terminal.shown import quoted
from byhand.errors import ByhandError

if TYPE_CHECKING:
    from byhand.book.finding.finding import Finding

WIDTH = 100
LABELS = {
    "settings": Words("settings: ", "设置："),
    "latex": Words("LaTeX", "LaTeX"),
    "derivative": Words("derivative", "导数"),
    "forward": Words("forward", "前向"),
    "code": Words("code", "代码"),
    "wired": Words("wired at", "模型中用到它的地方"),
    "test": Words("test", "测试"),
    "worked": Words("worked example", "手算例子"),
    "page": Words("pages", "页面"),
    "kernel": Words("kernel", "内核"),
    "seed": Words("seed name", "原 C++ 程序中的名称"),
    "source": Words("source", "出处"),
    "none": Words("no answer to {query}. Nearest: {near}.", "没有找到 {query}。相近的有：{near}。"),
    "nothing": Words(
        "no answer to {query}. `byhand where` alone lists everything.",
        "没有找到 {query}。单独运行 `byhand where` 可列出全部条目。",
    ),
    "repository": Words("in the repository", "见代码仓库"),
    "command": Words("command", "命令"),
    "see": Words("see", "参见"),
    "term": Words("term", "术语"),
    "absent": Words("not in this model", "本模型没有"),
    "what": Words("What it is: ", "它是什么："),
    "instead": Words("In its place: ", "本模型的做法："),
}
CHINESE = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Options:
    """Find where an equation is implemented, with its derivative, test, worked example and pages.

    Also finds settings, guides, lessons, and techniques that the model does not have.
    """

    query: Positional[tuple[str, ...]] = ()
    """A name, words in English or Chinese, a symbol, or a piece of a formula; omit it to list everything."""
    lang: Language | None = None
    """Language of the answer; if not given, Chinese for a Chinese question, else from LANG."""
    json: Switch = False
    """Print JSON: a list of entries, best first."""
    limit: int = 3
    """Maximum number of answers: the best is printed in full, the others one line each."""


def main(arguments: list[str]) -> int:
    """Print the answers, best first; exit code 1 if there is none."""
    given = read(Options, arguments, "byhand where")
    options = given.over()
    if not options.query:
        given.refuse(("limit",), "without a query")
    if options.limit < 1:
        raise ByhandError(f"--limit is {options.limit}, but must be at least 1. Leave it out for 3.")
    from byhand.book.finding.search import index, nearest, search

    query = " ".join(options.query).strip()
    lang = options.lang or ("zh" if CHINESE.search(query) else preferred())
    found = [m.finding for m in search(query)][: options.limit] if query else index().findings()
    if options.json:
        show_json([finding.as_json() for finding in found], indent=1)
        return 0 if found else 1
    if not query:
        show(_overview(lang))
        return 0
    if not found:
        near = ", ".join(nearest(query))
        say(LABELS["none" if near else "nothing"].said(lang, query=quoted(query), near=near))
        return 1
    best, *others = found
    show("\n".join([_answer(best, lang), *([""] if others else []), *(_line(finding, lang) for finding in others)]))
    return 0


def _overview(lang: str) -> str:
    """List everything in the order of the data flow: name, title, location."""
    from byhand.book.finding.search import index

    lines: list[str] = []
    known = index()
    for words, members in known.groups:
        lines += ["", words.said(lang)] if lines else [words.said(lang)]
        width = max(22, *map(len, members)) + 1
        for name in members:
            finding = known.finding(known.names[name])
            title = _pad(finding.title.said(lang), 46)
            lines.append(f"  {_pad(name, width)} {title} {_first(finding, lang)}".rstrip())
    return "\n".join(lines)


def _line(finding: Finding, lang: str) -> str:
    """Return an answer's title, name and first pointer."""
    return f"{finding.title.said(lang)}  ({finding.name})  {finding.command or _first(finding, lang)}"


def _first(finding: Finding, lang: str) -> str:
    """Return the pointer shown in a list: the code, or the page in this language."""
    return finding.forward or _in_repository(finding.page(lang), lang)


def _answer(finding: Finding, lang: str) -> str:
    title = finding.title
    other = f"  {title.en}" if title.said(lang) != title.en else ""
    absent = f": {LABELS['absent'].said(lang)}" if finding.kind == "absent" else ""
    lines = [f"{title.said(lang)}  ({finding.name}){other}{absent}"]
    labels = [LABELS[label].said(lang) if finding.kind == "absent" else "" for label in ("what", "instead")]
    lines += [f"    {label}{words.said(lang)}" for label, words in zip(labels, finding.says, strict=False)]
    lines += [f"    {line}" for line in finding.formula.said(lang).splitlines()]
    for row in finding.symbols:
        lines.append(f"      {_pad(row.name, 10)} {_pad(row.shape.said(lang), 18)} {row.meaning.said(lang)}")
    settings = _settings(finding, lang)
    if settings:
        lines.append(f"      {settings}")
    rows = [("command", finding.command), ("forward" if finding.latex else "code", finding.forward or "")]
    if finding.term.en:
        rows.insert(
            0, ("term", "  ".join((finding.term.said(lang), Words(finding.term.zh, finding.term.en).said(lang))))
        )
    rows += _under("see", (_pointed(name, lang) for name in finding.see))
    if finding.derivative:
        rows.append(("derivative", finding.derivative))
        rows += [("", line) for line in finding.derivative_formula.said(lang).splitlines()]
    rows += _under("wired", (f"{use.where}{f'  {use.result}' if use.result else ''}" for use in finding.uses))
    rows += [("kernel", f"{where}  ({runtime})") for runtime, where in finding.kernels.items()]
    rows += [("test", _in_repository(finding.test, lang)), ("worked", finding.worked or "")]
    rows += [("page", "  ".join(_in_repository(p, lang) for p in map(finding.page, ("en", "zh")) if p))]
    rows += [("seed", ", ".join(finding.seed_names)), ("source", finding.source)]
    rows += _under("latex", textwrap.wrap(finding.latex, WIDTH - 20, break_long_words=False))
    said = [(LABELS[label].said(lang) if label else "", value) for label, value in rows if value]
    width = max(cell_len(label) for label, _ in said)
    lines += [f"  {_pad(label, width)}  {value}" for label, value in said]
    return "\n".join(lines)


def _pointed(name: str, lang: str) -> str:
    """Return another answer's title and first pointer."""
    from byhand.book.finding.search import index

    return _line(index().finding(index().names[name]), lang)


def _under(label: str, values: Iterable[str]) -> list[tuple[str, str]]:
    """Return rows; only the first has the label."""
    return [(label if i == 0 else "", value) for i, value in enumerate(values)]


def _settings(finding: Finding, lang: str) -> str:
    """Return the equation's settings, with the symbols that differ from their names."""
    from byhand.book.words.plain_math import plain as written

    shown = [name + (f" ({written(latex)})" if latex else "") for name, latex in finding.settings.items()]
    return LABELS["settings"].said(lang) + COMMA.said(lang).join(shown) if shown else ""


def _in_repository(pointer: str | None, lang: str) -> str:
    """Mark a path that an installed package lacks: it has no line number."""
    return f"{pointer} ({LABELS['repository'].said(lang)})" if pointer and ":" not in pointer else pointer or ""


def _pad(text: str, width: int) -> str:
    """Pad text with spaces to a width in columns; a Chinese character takes two."""
    return text + " " * max(0, width - cell_len(text))
