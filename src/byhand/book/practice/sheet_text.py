"""A worksheet and its answer key as Markdown; the sheet is also the form that `grade` reads."""

from __future__ import annotations

from typing import Any

from byhand.book.lessons.text import number_line
from byhand.book.practice.sheets import Sheet
from byhand.book.words.language import Words, say

BLANK = "____"
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
