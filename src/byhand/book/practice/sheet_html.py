"""A worksheet and its answer key as one file of HTML each, which needs nothing else and prints well."""

from __future__ import annotations

from html import escape

from byhand.book.lessons.lesson import Step
from byhand.book.lessons.text import number_line
from byhand.book.practice.sheet_text import SAID, given
from byhand.book.practice.sheets import Sheet
from byhand.book.words.language import Words, say

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
HTML_LANGUAGE = Words("en", "zh-CN")
BLANK = '<span class="blank"></span>'


def html(sheet: Sheet, lang: str = "en", key: bool = False) -> str:
    """Return the sheet, or its key, as a page."""
    return PAGE.format(
        language=HTML_LANGUAGE.said(lang),
        title=escape(f"{SAID['key' if key else 'sheet'].said(lang)}{sheet.title.said(lang)}"),
        style=STYLE,
        kind="key" if key else "sheet",
        origin=escape(SAID["origin"].said(lang, topic=sheet.topic, seed=sheet.seed)),
        name="" if key else f"<span>{SAID['name'].said(lang)}{BLANK}</span>",
        how="" if key else f'<p class="how">{escape(SAID["how"].said(lang))}</p>',
        given=SAID["given"].said(lang),
        rows="".join(f"<tr><td>{escape(n)}</td><td>= {escape(given(v))}</td></tr>" for n, v in sheet.given),
        sections="\n".join(_section(i, step, lang, key) for i, step in enumerate(sheet.steps, 1)),
    )


def _section(i: int, step: Step, lang: str, key: bool) -> str:
    items = []
    for j, number in enumerate(step.numbers, 1):
        text = number_line(number, lang) if key else f"{say(number.label, lang)} = "
        items.append(f'<li><span class="number">{i}.{j}</span><code>{escape(text)}</code>{"" if key else BLANK}</li>')
    formula = f'<div class="formula">{escape(say(step.formula, lang))}</div>'
    heading = f"<h2>{i}. {escape(step.title.said(lang))}</h2>"
    return f"<section>{heading}{formula}<ol>{''.join(items)}</ol></section>"
