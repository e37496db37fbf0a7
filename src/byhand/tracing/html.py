"""Tables for notebooks, which need no script and no style sheet: of a pass, of an answer, of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LEFT, RIGHT = 'style="text-align:left"', 'style="text-align:right;font-variant-numeric:tabular-nums"'


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], below: str = "") -> str:
    """Return a table whose first columns are text and whose last one is numbers; `below` stands under it."""
    last = len(head) - 1
    names = "".join(
        f'<th scope="col" {RIGHT if k == last else LEFT}>{escape(name)}</th>' for k, name in enumerate(head)
    )
    body = "".join(f"<tr>{''.join(_cell(x, k, last) for k, x in enumerate(row))}</tr>" for row in rows)
    said = f'<caption style="text-align:left"><code>{escape(caption)}</code></caption>'
    foot = f"<p><small>{escape(below)}</small></p>" if below else ""
    return f'<table class="byhand">{said}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{foot}'


def _cell(content: object, column: int, last: int) -> str:
    text = escape(f"{content:.6g}".replace("-", "−") if isinstance(content, float) else str(content))
    if column == 0:
        return f'<th scope="row" {LEFT}><code>{text}</code></th>'
    return f"<td {RIGHT if column == last else LEFT}>{text}</td>"
