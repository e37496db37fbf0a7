"""Generated blocks about equations: an equation's page, the map of all of them, lists of links and formulas."""

from __future__ import annotations

from pathlib import Path

from byhand.book.finding import flow, index, source
from byhand.book.finding.notations import SETTINGS
from byhand.book.pages.blocks.markdown import block, display, inline, link, link_equation, table
from byhand.book.words import chinese
from byhand.engine.equation import Composite, Equation, registry


@block
def title(page: Path, lang: str, stem: str) -> str:
    """The way to the other language, and the heading of an equation's page."""
    other = f"[English]({stem}.md)" if lang == "zh" else f"[简体中文]({stem}.zh-CN.md)"
    return f"{other}\n\n# {chinese.title(registry[stem], lang)}"


@block
def reference(page: Path, lang: str, stem: str) -> str:
    """An equation: formula, derivative, symbols with shapes, settings, places in code, source."""
    equation = registry[stem]
    words = WORDS[lang]
    parts = [
        display(chinese.formula(equation.latex, lang)),
        words["calculus"],
        display(chinese.formula(equation.derivative, lang)),
        _symbols(equation, lang),
        _settings(equation.name, lang),
        _places(page, equation, lang),
    ]
    return "\n\n".join(part for part in parts if part)


def _symbols(equation: Equation | Composite, lang: str) -> str:
    rows = [
        (inline(s.latex), f"`{s.name}`", f"`{chinese.shape(s.shape, lang)}`", chinese.meaning(equation, s, lang))
        for s in (*equation.inputs, equation.result)
    ]
    return table(WORDS[lang]["symbols"], rows)


def _settings(stem: str, lang: str) -> str:
    shown = []
    for setting in index.entries()[stem].settings:
        symbol = SETTINGS.get(setting.partition("=")[0], "")
        shown.append(f"`{setting}`" + (f" ({inline(symbol)})" if symbol else ""))
    return f"{WORDS[lang]['settings']}{WORDS[lang]['comma'].join(shown)}" if shown else ""


def _places(page: Path, equation: Equation | Composite, lang: str) -> str:
    words, entry = WORDS[lang], index.entries()[equation.name]
    file = source.PACKAGE / "equations" / f"{entry.name}.py"
    rows = [
        (words["forward"], link(page, entry.forward)),
        (words["derivative"], link(page, entry.derivative)),
        (words["terms"], link(page, source.definition(file, "terms"))),
        (words["wired"], "<br>".join(link(page, place) for place, _ in entry.uses)),
        (words["test"], link(page, entry.test)),
        (words["worked"], link(page, entry.worked)),
        *((f"{words['kernel']} {runtime}", link(page, place)) for runtime, place in entry.kernels.items()),
        (words["seed"], ", ".join(f"`{name}`" for name in entry.seed_names)),
        (words["source"], entry.source),
    ]
    return table(words["places"], [row for row in rows if row[1]])


@block
def equations(page: Path, lang: str) -> str:
    """Every equation, grouped as data flows: its page, its formula, its forward and its derivative."""
    parts = []
    for group in flow.GROUPS:
        rows = []
        for stem in group.members:
            rows.append(
                (
                    link_equation(page, stem, lang),
                    inline(chinese.formula(registry[stem].latex.split(r", \quad ")[0], lang)),
                    link(page, index.entries()[stem].forward),
                    ", ".join(f"`{name}`" for name in registry[stem].seed_names) or "—",
                )
            )
        parts.append(f"### {group.zh if lang == 'zh' else group.en}\n\n{table(WORDS[lang]['map'], rows)}")
    return "\n\n".join(parts)


@block
def contents(page: Path, lang: str) -> str:
    """Links to every equation's page, one line for each group."""
    lines = []
    for group in flow.GROUPS:
        links = [link_equation(page, stem, lang) for stem in group.members]
        name, colon = (group.zh, "：") if lang == "zh" else (group.en, ": ")
        lines.append(f"- {name}{colon}{' · '.join(links)}")
    return "\n".join(lines)


@block
def formula(page: Path, lang: str, *stems: str) -> str:
    """The formulas of some equations, one below the other."""
    return "\n\n".join(display(chinese.formula(registry[stem].latex, lang)) for stem in stems)


WORDS = {
    "en": {
        "calculus": r"Its derivative, where $`\partial x`$ stands for the derivative of the loss by $`x`$:",
        "symbols": ("Symbol", "In code", "Shape", "Meaning"),
        "settings": "Settings: ",
        "comma": ", ",
        "places": ("", "Where"),
        "forward": "forward",
        "derivative": "derivative",
        "terms": "one element as numbers",
        "wired": "used by the model",
        "test": "test",
        "worked": "worked by hand",
        "kernel": "kernel of runtime",
        "seed": "in the seed program",
        "source": "source",
        "map": ("Equation", "Formula", "Code", "In the seed program"),
    },
    "zh": {
        "calculus": r"它的导数，损失对 $`x`$ 的导数记作 $`\partial x`$ ：",
        "symbols": ("符号", "代码中", "形状", "含义"),
        "settings": "设置：",
        "comma": "、",
        "places": ("", "位置"),
        "forward": "前向",
        "derivative": "导数",
        "terms": "单个元素的算式",
        "wired": "在模型中的使用处",
        "test": "测试",
        "worked": "手算例子",
        "kernel": "运行时内核",
        "seed": "在种子程序中",
        "source": "出处",
        "map": ("公式", "表达式", "代码", "在种子程序中"),
    },
}
