"""The post-processor of a tokenizer.json: the special tokens added around a text.

Only single texts are encoded here, so a template's part for pairs and its token types are ignored; pairs are written
as the text's template twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from byhand.errors import DataError
from byhand.tokenizers.conventions import MOST

TEXT = "A"  # the template's name of the text
UNREADABLE = "its post_processor is not a template of special tokens around one text"


def around(values: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ids before and after a text. DataError if the post-processor does anything else to its ids."""
    before, after = tuple[int, ...](), tuple[int, ...]()
    for step in _steps(values):
        first, last = _around(step)
        before, after = first + before, after + last
    if not all(type(token) is int for token in before + after):
        raise DataError(UNREADABLE)
    return before, after


def as_post_processor(before: Sequence[int], after: Sequence[int], texts: Mapping[int, str]) -> dict[str, Any] | None:
    """Return the post-processor that adds these tokens; None if there are none."""
    if not before and not after:
        return None

    def template(name: str, kind: int) -> list[dict[str, Any]]:
        first, last = ([{"SpecialToken": {"id": texts[i], "type_id": kind}} for i in ids] for ids in (before, after))
        return [*first, {"Sequence": {"id": name, "type_id": kind}}, *last]

    return {
        "type": "TemplateProcessing",
        "single": template(TEXT, 0),
        "pair": template(TEXT, 0) + template("B", 1),
        "special_tokens": {texts[i]: {"id": texts[i], "ids": [i], "tokens": [texts[i]]} for i in {*before, *after}},
    }


def _steps(values: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the processors in order of application."""
    listed = values.get("processors") if isinstance(values, dict) and values.get("type") == "Sequence" else [values]
    if not isinstance(listed, list) or len(listed) > MOST["before"]:
        raise DataError(UNREADABLE)
    for step in listed:
        if isinstance(step, dict):
            yield step
        elif step is not None:
            raise DataError(UNREADABLE)


def _around(step: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    kind = step.get("type")
    if kind == "ByteLevel":  # moves offsets only
        return (), ()
    try:
        if kind in ("RobertaProcessing", "BertProcessing"):
            return (step["cls"][1],), (step["sep"][1],)
        if kind == "TemplateProcessing":
            known = {name: token["ids"] for name, token in step["special_tokens"].items()}
            parts = [known[p["SpecialToken"]["id"]] if "SpecialToken" in p else None for p in step["single"]]
            named = [p["Sequence"]["id"] for p, ids in zip(step["single"], parts, strict=True) if ids is None]
            if named == [TEXT]:
                first = [i for ids in takewhile(lambda ids: ids is not None, parts) for i in ids or ()]
                added = [i for ids in parts for i in ids or ()]
                return tuple(first), tuple(added[len(first) :])
    except (AttributeError, IndexError, KeyError, TypeError):
        pass
    raise DataError(UNREADABLE if isinstance(kind, str) and kind.endswith("Processing") else _unknown(kind))


def _unknown(kind: Any) -> str:
    return f"its post_processor is of the kind {str(kind)[:40]!r}, which byhand does not know"
