"""A worksheet and its answer key: as Markdown, which `grade` reads, and as HTML, which prints well."""

from __future__ import annotations

from html import escape
from typing import Any

from byhand.book.lessons.lesson import Step
from byhand.book.lessons.text import number_line
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
        "Write each number after its =. Three digits are enough; fractions and roots are welcome: 1/3, "
        "sqrt(2)/2. Indices count from 0. To check: byhand grade FILE",
        "请在每个等号后面写上数字。三位有效数字即可，也可以写分数与根式：1/3、sqrt(2)/2。"
        "下标从 0 数起。批改：byhand grade 文件",
    ),
    "given": Words("Given", "已知"),
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
@media print { body { margin: 0; max-width: none; padding: 0; } }
@page { margin: 18mm; }
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
    """Return the sheet, or its key, as Markdown; the comment lets `grade` find the sheet again."""
    lines = [
        f"# {SAID['key' if key else 'sheet'].said(lang)}{sheet.title.said(lang)}",
        "",
        f"<!-- byhand worksheet: topic={sheet.topic} seed={sheet.seed} lang={lang} -->",
        "",
        SAID["origin"].said(lang, topic=f"`{sheet.topic}`", seed=sheet.seed),
    ]
    if not key:
        lines += ["", f"{SAID['name'].said(lang)}{BLANK * 4}", "", SAID["how"].said(lang)]
    lines += ["", f"## {SAID['given'].said(lang)}", ""]
    lines += [f"- `{say(name, lang)}` = `{given(value)}`" for name, value in sheet.given]
    for i, step in enumerate(sheet.steps, 1):
        lines += ["", f"## {i}. {step.title.said(lang)}", "", "```text", say(step.formula, lang), "```", ""]
        for j, number in enumerate(step.numbers, 1):
            rest = f"`{number_line(number, lang)}`" if key else f"`{say(number.label, lang)}` = {BLANK}"
            lines.append(f"- **{i}.{j}** {rest}")
    return "\n".join(lines) + "\n"


def given(value: Any) -> str:
    """Write what is given: nested lists, logarithms as ln."""
    if isinstance(value, list):
        return f"[{', '.join(map(given, value))}]"
    return str(value).replace("log(", "ln(").replace("-", "−")


def html(sheet: Sheet, lang: str = "en", key: bool = False) -> str:
    """Return the sheet, or its key, as a page."""
    return PAGE.format(
        language=HTML_LANGUAGE.said(lang),
        title=escape(f"{SAID['key' if key else 'sheet'].said(lang)}{sheet.title.said(lang)}"),
        style=STYLE,
        kind="key" if key else "sheet",
        origin=escape(SAID["origin"].said(lang, topic=sheet.topic, seed=sheet.seed)),
        name="" if key else f"<span>{SAID['name'].said(lang)}{LINE}</span>",
        how="" if key else f'<p class="how">{escape(SAID["how"].said(lang))}</p>',
        given=SAID["given"].said(lang),
        rows="".join(f"<tr><td>{escape(n)}</td><td>= {escape(given(v))}</td></tr>" for n, v in sheet.given),
        sections="\n".join(_section(i, step, lang, key) for i, step in enumerate(sheet.steps, 1)),
    )


def _section(i: int, step: Step, lang: str, key: bool) -> str:
    items = []
    for j, number in enumerate(step.numbers, 1):
        text = number_line(number, lang) if key else f"{say(number.label, lang)} = "
        items.append(f'<li><span class="number">{i}.{j}</span><code>{escape(text)}</code>{"" if key else LINE}</li>')
    formula = f'<div class="formula">{escape(say(step.formula, lang))}</div>'
    heading = f"<h2>{i}. {escape(step.title.said(lang))}</h2>"
    return f"<section>{heading}{formula}<ol>{''.join(items)}</ol></section>"
