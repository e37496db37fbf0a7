"""`byhand where QUERY`: where is that equation implemented? In English or Chinese, by name, words or formula."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from byhand.cli.arguments.parsing import parse
from byhand.cli.terminal.say import say
from byhand.cli.terminal.shown import quoted
from byhand.errors import ByhandError

if TYPE_CHECKING:
    from byhand.book.finding.index import Entry

WIDTH = 100
OPTION = re.compile(r"-h|--[A-Za-z][\w-]*(=.*)?", re.DOTALL)
TAKES_A_VALUE = ("--lang", "--limit")
LABELS = {
    "en": {
        "settings": "settings: ",
        "latex": "LaTeX",
        "derivative": "derivative",
        "forward": "forward",
        "code": "code",
        "wired": "wired at",
        "test": "test",
        "worked": "worked example",
        "page": "pages",
        "kernel": "kernel",
        "seed": "seed name",
        "source": "source",
        "none": "no answer to {query}. Nearest: {near}.",
        "nothing": "no answer to {query}. `byhand where` alone lists everything.",
        "repository": "in the repository",
        "places": "Wiring, recording, training, storing",
    },
    "zh": {
        "settings": "设置：",
        "latex": "LaTeX",
        "derivative": "导数",
        "forward": "前向",
        "code": "代码",
        "wired": "在模型中的使用处",
        "test": "测试",
        "worked": "手算例子",
        "page": "页面",
        "kernel": "内核",
        "seed": "种子程序中的名称",
        "source": "出处",
        "none": "没有找到 {query}。相近的有：{near}。",
        "nothing": "没有找到 {query}。单独运行 `byhand where` 可列出全部条目。",
        "repository": "见代码仓库",
        "places": "接线、记录、训练与存储",
    },
}


@dataclass(frozen=True)
class Options:
    """Find where an equation is implemented, with its derivative, test, worked example and pages."""

    query: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """A name, words in English or Chinese, a symbol, or a piece of a formula; nothing lists everything."""
    lang: Literal["en", "zh"] = "en"
    """Language of the answer."""
    json: bool = False
    """Print JSON: a list of entries, best first."""
    limit: int = 5
    """Most entries to print."""


def main(arguments: list[str]) -> int:
    """Print the answers, best first; exit code 1 if there is none."""
    words, rest = split_query(arguments)
    options = parse(Options, rest, "byhand where")
    if options.limit < 1:
        raise ByhandError(f"--limit is {options.limit}, but must be at least 1. Leave it out for 5.")
    from byhand.book.finding.index import entries
    from byhand.book.finding.search import nearest, search

    query = " ".join(words).strip()
    found = [m.entry for m in search(query)][: options.limit] if query else list(entries().values())
    if options.json:
        print(json.dumps([entry.as_json() for entry in found], ensure_ascii=False, indent=1))
        return 0 if found else 1
    label = LABELS[options.lang]
    if not query:
        print(_overview(options.lang))
        return 0
    if not found:
        near = ", ".join(nearest(query))
        say((label["none"] if near else label["nothing"]).format(query=quoted(query), near=near))
        return 1
    print("\n\n".join(_answer(entry, options.lang) for entry in found))
    return 0


def split_query(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the query's words and the options, so that `-log p_y` is asked for and not taken for a flag."""
    query: list[str] = []
    options: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return [*query, *rest], options
        if OPTION.fullmatch(argument):
            options.append(argument)
            if argument in TAKES_A_VALUE and rest:
                options.append(rest.pop(0))
        else:
            query.append(argument)
    return query, options


def _overview(lang: str) -> str:
    """List everything as data flows, one line each: name, title, where."""
    from byhand.book.finding.flow import GROUPS
    from byhand.book.finding.index import entries
    from byhand.book.finding.landmarks import PLACES

    known = entries()
    groups = [(group.zh if lang == "zh" else group.en, group.members) for group in GROUPS]
    groups.append((LABELS[lang]["places"], tuple(place.name for place in PLACES)))
    lines: list[str] = []
    for title, members in groups:
        lines += ["", title] if lines else [title]
        for name in members:
            entry = known[name]
            words = entry.title_zh if lang == "zh" else entry.title
            lines.append(f"  {_pad(name, 23)} {_pad(words, 46)} {entry.forward or ''}")
    return "\n".join(lines)


def _answer(entry: Entry, lang: str) -> str:
    label = LABELS[lang]
    other = f"  {entry.title}" if lang == "zh" and entry.title != entry.title_zh else ""
    lines = [f"{entry.title_zh if lang == 'zh' else entry.title}  ({entry.name}){other}"]
    from byhand.book.words.chinese import shape

    lines += [f"    {line}" for line in _shown(entry.plain, entry.latex, lang)]
    for symbol in entry.symbols:
        words = symbol["meaning_zh" if lang == "zh" else "meaning"]
        lines.append(f"      {_pad(symbol['name'], 10)} {_pad(shape(symbol['shape'], lang), 18)} {words}")
    settings = _settings(entry, lang)
    if settings:
        lines.append(f"      {settings}")
    rows: list[tuple[str, str]] = [(label["forward" if entry.latex else "code"], entry.forward or "")]
    if entry.derivative:
        rows.append((label["derivative"], entry.derivative))
        rows += [("", line) for line in _shown(entry.plain_derivative, entry.latex_derivative, lang)]
    rows += [
        (label["wired"] if i == 0 else "", f"{where}{f'  {name}' if name else ''}")
        for i, (where, name) in enumerate(entry.uses)
    ]
    rows += [(label["kernel"], f"{where}  ({runtime})") for runtime, where in entry.kernels.items()]
    rows += [(label["test"], _in_repository(entry.test, lang)), (label["worked"], entry.worked or "")]
    rows += [(label["page"], "  ".join(_in_repository(p, lang) for p in (entry.page_en, entry.page_zh) if p))]
    rows += [(label["seed"], ", ".join(entry.seed_names)), (label["source"], entry.source)]
    rows += [
        (label["latex"] if i == 0 else "", line)
        for i, line in enumerate(textwrap.wrap(entry.latex, WIDTH - 20, break_long_words=False))
    ]
    width = max(_width(name) for name, value in rows if value)
    lines += [f"  {_pad(name, width)}  {value}" for name, value in rows if value]
    return "\n".join(lines)


def _shown(plain: str, latex: str, lang: str) -> list[str]:
    """Return a formula as a terminal shows it: the docstring's, or for Chinese one without English words."""
    from byhand.book.words.plain_math import plain as written

    return (written(latex, lang) if lang == "zh" and latex else plain).splitlines()


def _settings(entry: Entry, lang: str) -> str:
    """Return the equation's settings, each with its symbol where that is another."""
    from byhand.book.finding.notations import SETTINGS
    from byhand.book.words.plain_math import plain as written

    shown = []
    for setting in entry.settings:
        symbol = SETTINGS.get(setting.partition("=")[0], "")
        shown.append(setting + (f" ({written(symbol)})" if symbol else ""))
    return LABELS[lang]["settings"] + ("、" if lang == "zh" else ", ").join(shown) if shown else ""


def _in_repository(pointer: str | None, lang: str) -> str:
    """Mark a path that an installed package does not hold: it has no line."""
    return f"{pointer} ({LABELS[lang]['repository']})" if pointer and ":" not in pointer else pointer or ""


def _width(text: str) -> int:
    """Return the columns that a terminal gives the text: two for a Chinese character."""
    return sum(2 if "\u2e80" <= c <= "\u9fff" or "\uff00" <= c <= "\uff60" else 1 for c in text)


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - _width(text))
