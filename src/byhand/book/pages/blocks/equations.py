"""Generated blocks about equations: an equation's page, the map of all of them, lists of links and formulas."""

from __future__ import annotations

import re
from pathlib import Path

from byhand.book.finding import flow, index, source
from byhand.book.finding.finding import Finding
from byhand.book.pages.blocks.markdown import QUAD, block, display, inline, link, link_equation, table
from byhand.book.words.language import COLON, COMMA, PAGE, Words
from byhand.book.words.plain_math import translated
from byhand.engine.equation import registry

CALCULUS = Words(
    r"Its derivative, where $`\partial x`$ stands for the derivative of the loss with respect to $`x`$ (its "
    "gradient, or *cotangent*):",
    r"导数如下，其中损失对 $`x`$ 的导数记作 $`\partial x`$ ：",
)
MAP = Words("Equation, and its code|Formula|In the original program", "公式及其代码|表达式|在原 C++ 程序中")
BAR = r"\vert "  # a | would end the cell
GPT_2 = "Radford et al. 2019, Language Models are Unsupervised Multitask Learners (GPT-2)"
MODEL = Words("the pre-norm block, the initial values", "前置归一化的块与初始值")


@block
def title(page: Path, lang: str, stem: str) -> str:
    """The link to the other language, and the heading of an equation's page."""
    other = Words(f"[简体中文]({stem}{PAGE.zh})", f"[English]({stem}{PAGE.en})")
    return f"{other.said(lang)}\n\n# {index.findings()[stem].title.said(lang)}"


@block
def reference(page: Path, lang: str, stem: str) -> str:
    """An equation: formula, derivative, symbols with shapes, settings, places in code, source."""
    finding = index.findings()[stem]
    parts = [
        display(translated(finding.latex, lang)),
        CALCULUS.said(lang),
        display(translated(finding.latex_derivative, lang)),
        _symbols(finding, lang),
        _settings(finding, lang),
        _places(page, finding, lang),
    ]
    return "\n\n".join(part for part in parts if part)


def _symbols(finding: Finding, lang: str) -> str:
    rows = [(inline(s.latex), f"`{s.name}`", f"`{s.shape.said(lang)}`", s.meaning) for s in finding.symbols]
    return table(Words("Symbol|In code|Shape|Meaning", "符号|代码中|形状|含义"), rows, lang)


def _settings(finding: Finding, lang: str) -> str:
    shown = [f"`{name}`" + (f" ({inline(latex)})" if latex else "") for name, latex in finding.settings.items()]
    return Words("Settings: ", "设置：").said(lang) + COMMA.said(lang).join(shown) if shown else ""


def _places(page: Path, finding: Finding, lang: str) -> str:
    terms = getattr(registry[finding.name], "terms", None)
    rows = [
        (Words("forward", "前向"), link(page, finding.forward)),
        (Words("derivative", "导数"), link(page, finding.derivative)),
        (
            Words("arithmetic of one element", "单个元素的算式"),
            link(page, source.definition(source.file_of(terms), terms.__name__) if terms else None),
        ),
        (
            Words("used by the model", "模型中用到它的地方"),
            "<br>".join(dict.fromkeys(link(page, use.where) for use in finding.uses)),
        ),
        (Words("test", "测试"), link(page, finding.test)),
        (Words("worked by hand", "手算例子"), link(page, finding.worked)),
        *(
            (Words(f"kernel of the {runtime} runtime", f"{runtime} 运行时的内核"), link(page, place))
            for runtime, place in finding.kernels.items()
        ),
        (Words("in the original program", "在原 C++ 程序中"), ", ".join(f"`{name}`" for name in finding.seed_names)),
        (Words("source", "出处"), finding.source),
    ]
    return table(Words("|Where", "|位置"), [row for row in rows if row[1]], lang)


@block
def equations(page: Path, lang: str) -> str:
    """Every equation, grouped as data flows: its page, its formula, its forward and its derivative."""
    parts = []
    for group, members in flow.groups():
        rows = [
            (
                f"{link_equation(page, stem, lang)} <br> {link(page, index.findings()[stem].forward)}",
                " <br> ".join(map(inline, translated(registry[stem].latex, lang).replace("|", BAR).split(QUAD))),
                ", ".join(f"`{name}`" for name in registry[stem].seed_names) or "—",
            )
            for stem in members
        ]
        parts.append(f"### {group.said(lang)}\n\n{table(MAP, rows, lang)}")
    return "\n\n".join(parts)


@block
def sources(page: Path, lang: str) -> str:
    """The papers and books, each with the equations that are taken from it."""
    found: dict[str, list[str]] = {}
    for _, members in flow.groups():
        for stem in members:
            work = re.sub(r",? (section|equation) .*", "", index.findings()[stem].source or "")
            found.setdefault(work, []).append(link_equation(page, stem, lang))
    rows = [(work, COMMA.said(lang).join(links)) for work, links in found.items() if re.search(r"\d{4}", work)]
    return table(Words("Work|Equations", "文献|公式"), [(GPT_2, MODEL), *rows], lang)


@block
def contents(page: Path, lang: str) -> str:
    """Links to every equation's page, one line for each group."""
    lines = []
    for group, members in flow.groups():
        links = " · ".join(link_equation(page, stem, lang) for stem in members)
        lines.append(f"- {group.said(lang)}{COLON.said(lang)}{links}")
    return "\n".join(lines)


@block
def formula(page: Path, lang: str, *stems: str) -> str:
    """The formulas of some equations, one below the other."""
    return "\n\n".join(display(translated(registry[stem].latex, lang)) for stem in stems)
