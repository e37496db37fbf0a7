"""Generated blocks of the path: needs and outcome of a page, the next page, and the list of all pages."""

from __future__ import annotations

import re
from pathlib import Path

from byhand.book.pages.blocks.markdown import ROOT, block, relative
from byhand.book.pages.path import ARITHMETIC, PATH, STOPS, Stop
from byhand.book.words.language import COLON, COMMA, PAGE, Words

SET_UP, ACTIVATE = "python3 dev.py run", "source .venv/bin/activate"


@block
def path(page: Path, lang: str, name: str) -> str:
    """The prior knowledge that a page of the path needs, its minutes, and the skill that it gives."""
    stop, number = STOPS[name], PATH.index(STOPS[name]) + 1
    needs = COMMA.said(lang).join([stop.needs.said(lang), *(_link(page, STOPS[n], lang) for n in stop.earlier)])
    front = _front(page, lang)
    lines = [
        Words(
            f"**Page {number} of {len(PATH)}** on the [path]({front}#the-path)",
            f"**第 {number} 页，共 {len(PATH)} 页**，见[学习路线]({front}#学习路线)",
        ),
        Words(f"**Needs:** {needs}", f"**需要**：{needs}"),
        _time(stop),
        Words(f"**Afterwards you can** {stop.outcome.en}", f"**读完之后，你能**{stop.outcome.zh}"),
        Words(
            f"**To run the commands:** `{SET_UP}` once, in a copy of the project, and `{ACTIVATE}` in each new "
            f"terminal ([more]({relative(page, ROOT / 'README.md')}#two-commands))",
            f"**若要运行命令**：先在下载的项目文件夹里执行一次 `{SET_UP}`，以后每打开一个终端，执行 `{ACTIVATE}`"
            f"（[详见]({relative(page, ROOT / 'README.zh-CN.md')}#两条命令)）",
        ),
    ]
    if stop.needs is ARITHMETIC:
        lines.append(Words("**Links to code can be skipped**", "**指向代码的链接**都可以跳过"))
    return "\n".join(f"- {line.said(lang)}" for line in lines)


def _time(stop: Stop) -> Words:
    """Return how long a page takes, and how long with every row on paper."""
    if not stop.pencil:
        return Words(f"**Time:** about {stop.minutes} minutes", f"**时间**：约 {stop.minutes} 分钟")
    return Words(
        f"**Time:** about {stop.minutes} minutes with spot checks; with every row by pencil about {stop.pencil}",
        f"**时间**：抽查着读约 {stop.minutes} 分钟；每一行都用笔算，约 {stop.pencil} 分钟",
    )


@block
def onward(page: Path, lang: str, name: str) -> str:
    """The command to try after a page of the path, and the next page."""
    stop, number = STOPS[name], PATH.index(STOPS[name]) + 1
    lines = [f"**{Words('Try it', '动手').said(lang)}**{COLON.said(lang)}`{stop.command_in(lang)}`"]
    if stop.sheet:
        sheet = Words(
            f"**On paper**: `byhand worksheet --topic {stop.sheet} --seed 1` writes exercises to print, new ones for "
            "each seed; `byhand grade` marks your answers.",
            f"**纸上练习**：`byhand worksheet --topic {stop.sheet} --seed 1 --lang zh` 生成可打印的练习，"
            "换一个种子就换一套题；`byhand grade` 批改答案。",
        )
        lines.append(sheet.said(lang))
    if number < len(PATH):
        lines.append(f"**{Words('Next', '下一页').said(lang)}**{COLON.said(lang)}{_link(page, PATH[number], lang)}")
    else:
        front = _front(page, lang)
        end = Words(
            f"The path ends here. The [front page]({front}) lists every equation.",
            f"学习路线到此结束。[首页]({front})列出了全部公式。",
        )
        lines.append(end.said(lang))
    return "\n\n".join(lines)


@block
def path_list(page: Path, lang: str) -> str:
    """Every page of the path in order: prior knowledge, minutes, and the skill that it gives."""
    lines = []
    for n, stop in enumerate(PATH, 1):
        asks = Words(f" ({stop.needs.en}, {stop.minutes} minutes): ", f"（{stop.needs.zh}，{stop.minutes} 分钟）：")
        lines.append(f"{n}. {_link(page, stop, lang)}{asks.said(lang)}{stop.outcome.said(lang)}")
    hours = round(sum(stop.minutes for stop in PATH) / 60)
    together = Words(f"About {hours} hours in total.", f"合计约 {hours} 小时。").said(lang)
    return "\n".join([*lines, "", together])


def _link(page: Path, stop: Stop, lang: str) -> str:
    """Return the title of a page of the path as a link to it."""
    target = ROOT / "docs" / "guides" / f"{stop.name}{PAGE.said(lang)}"
    heading = re.search(r"^# (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
    return f"[{heading[1] if heading else stop.name}]({relative(page, target)})"


def _front(page: Path, lang: str) -> str:
    return relative(page, ROOT / "docs" / f"index{PAGE.said(lang)}")
