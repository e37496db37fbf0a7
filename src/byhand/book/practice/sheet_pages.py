"""A worksheet and its key: as Markdown, which `grade` reads, and as HTML, which browsers print or save as PDF.

CSS rules for print suffice; LaTeX would need a TeX installation with Chinese fonts on the reader's side.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from byhand.book.lessons.lesson import Number, Step
from byhand.book.lessons.letters import called
from byhand.book.lessons.text import GIVEN, GOAL, WHY
from byhand.book.practice.sheets import Sheet
from byhand.book.words.language import Words, say

BLANK = "____"
LINE = '<span class="blank"></span>'
HTML_LANGUAGE = Words("en", "zh-CN")
SAID = {
    "sheet": Words("Worksheet: ", "练习："),
    "key": Words("Answer key: ", "答案："),
    "origin": Words("Topic {topic}, seed {seed}.", "主题 {topic}，种子 {seed}。"),
    "name": Words("Name: ", "姓名："),
    "how": Words(
        "Write each number after its =. Three digits are enough; fractions and roots are welcome: "
        "1/3, sqrt(2)/2. Rows and columns count from 0: "
        "S[0,1] stands in row 0 and column 1, and Q_t is row t of Q. To check: byhand grade FILE",
        "请在每个等号后面写上数字。三位有效数字即可，也可以写分数与根式：1/3、sqrt(2)/2。行与列从 0 数起：S[0,1] 在第 0 行、第 1 列，Q_t 是 Q 的第 t 行。"
        "批改：byhand grade 文件",
    ),
}
STYLE = """
body { font: 11pt/1.5 Georgia, "Noto Serif CJK SC", "Songti SC", SimSun, serif; color: #111; background: #fff;
  max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 1.4rem 0 .3rem; break-after: avoid; }
code, .formula, td { font: .9em "DejaVu Sans Mono", Menlo, Consolas, "Noto Sans Mono CJK SC", monospace; }
.formula { white-space: pre-wrap; background: #f4f4f4; padding: .3rem .6rem; margin: .2rem 0 .6rem; }
td { padding: .1rem .8rem .1rem 0; vertical-align: top; }
ol { list-style: none; margin: 0; padding: 0; columns: 2; column-gap: 2rem; }
.key ol { columns: 1; }
li { break-inside: avoid; padding: .15rem 0; }
.number { color: #666; display: inline-block; min-width: 3rem; }
.blank { display: inline-block; width: 7rem; border-bottom: 1px solid #111; height: 1.2em; vertical-align: bottom; }
.head { display: flex; justify-content: space-between; gap: 2rem; }
.how { color: #444; }
.goal, .why { margin: .2rem 0; }
p, li { orphans: 2; widows: 2; }
@media print {
  body { margin: 0; max-width: none; padding: 0; font-size: 10pt; }
  .formula { background: none; border-left: 2pt solid #999; }
  .formula, tr { break-inside: avoid; }
}
@page {
  margin: 18mm;
  @bottom-left { content: "SHEET"; }
  @bottom-right { content: counter(page) " / " counter(pages); }
}
"""
PAGE = """<!doctype html>
<html lang="{language}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{style}</style></head>
<body class="{kind}">
<h1>{title}</h1>
<div class="head"><span>{origin}</span>{name}</div>
{how}
<h2>{given}</h2>
<table>{rows}</table>
{sections}
</body></html>
"""


def markdown(sheet: Sheet, lang: str = "en", key: bool = False) -> str:
    """Return the sheet, or its key, as Markdown; `grade` finds the sheet by its comment line."""
    lines = [
        f"# {SAID['key' if key else 'sheet'].said(lang)}{sheet.title.said(lang)}",
        "",
        f"<!-- byhand worksheet: topic={sheet.topic} seed={sheet.seed} lang={lang} -->",
        "",
        SAID["origin"].said(lang, topic=f"`{sheet.topic}`", seed=sheet.seed),
    ]
    if not key:
        lines += ["", f"{SAID['name'].said(lang)}{BLANK * 4}", "", SAID["how"].said(lang)]
    lines += ["", f"## {GIVEN.said(lang)}", ""]
    lines += [f"- `{called(name)}` = `{given(value)}`" for name, value in sheet.given]
    for i, step in enumerate(sheet.steps, 1):
        lines += ["", f"## {i}. {step.title.said(lang)}", ""]
        lines += [f"{GOAL.said(lang)}{step.goal.said(lang)}", ""] if step.goal else []
        lines += ["```text", say(step.formula, lang), "```", ""]
        for j, number in enumerate(step.numbers, 1):
            rest = f"`{worked(number, lang)}`" if key else f"`{say(number.label, lang)}` = {BLANK}"
            lines.append(f"- **{i}.{j}** {rest}")
        lines += ["", f"{WHY.said(lang)}{step.why.said(lang)}"] if key and step.why else []
    return "\n".join(lines) + "\n"


def given(value: Any) -> str:
    """Write a given number or nested list, with ln for logarithms."""
    if isinstance(value, list):
        return f"[{', '.join(map(given, value))}]"
    return str(value).replace("log(", "ln(").replace("-", "−")


def worked(number: Number, lang: str) -> str:
    """Return `label = letters = numbers = value`, without equal neighbours."""
    parts = [say(number.label, lang)]
    for text in (number.letters, number.expression, number.shown):
        if (written := say(text, lang)) and written not in parts[-1:]:
            parts.append(written)
    return " = ".join(parts)


def html(sheet: Sheet, lang: str = "en", key: bool = False) -> str:
    """Return the sheet, or its key, as a page."""
    return PAGE.format(
        language=HTML_LANGUAGE.said(lang),
        title=escape(f"{SAID['key' if key else 'sheet'].said(lang)}{sheet.title.said(lang)}"),
        style=STYLE.replace("SHEET", f"{sheet.topic} {sheet.seed}"),
        kind="key" if key else "sheet",
        origin=escape(SAID["origin"].said(lang, topic=sheet.topic, seed=sheet.seed)),
        name="" if key else f"<span>{SAID['name'].said(lang)}{LINE}</span>",
        how="" if key else f'<p class="how">{_html(SAID["how"].said(lang))}</p>',
        given=GIVEN.said(lang),
        rows="".join(f"<tr><td>{_html(called(n))}</td><td>= {escape(given(v))}</td></tr>" for n, v in sheet.given),
        sections="\n".join(_section(i, step, lang, key) for i, step in enumerate(sheet.steps, 1)),
    )


def _html(arithmetic: str) -> str:
    """Return arithmetic with its indices below the line."""
    return re.sub(r"_(\w+)", r"<sub>\1</sub>", escape(arithmetic))


def _section(i: int, step: Step, lang: str, key: bool) -> str:
    items = []
    for j, number in enumerate(step.numbers, 1):
        text = worked(number, lang) if key else f"{say(number.label, lang)} = "
        items.append(f'<li><span class="number">{i}.{j}</span><code>{_html(text)}</code>{"" if key else LINE}</li>')
    formula = f'<div class="formula">{_html(say(step.formula, lang))}</div>'
    heading = f"<h2>{i}. {_html(step.title.said(lang))}</h2>"
    goal = f'<p class="goal">{_html(GOAL.said(lang) + step.goal.said(lang))}</p>' if step.goal else ""
    why = f'<p class="why">{_html(WHY.said(lang) + step.why.said(lang))}</p>' if key and step.why else ""
    return f"<section>{heading}{goal}{formula}<ol>{''.join(items)}</ol>{why}</section>"
