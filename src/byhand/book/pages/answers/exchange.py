"""Answers about models in and out: families, settings and their keys, tokens, number types."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from byhand.book.pages.answers.registry import ANSWERS, answer
from byhand.formats.ggml import BY_LIBRARY
from byhand.formats.registry import called
from byhand.interop.families import GROWING, Family
from byhand.interop.gguf import conventions as gguf_conventions
from byhand.interop.gguf import model as gguf
from byhand.interop.gguf import tokens
from byhand.interop.hugging_face import conventions
from byhand.interop.hugging_face.families import FAMILIES
from byhand.interop.hugging_face.layers import KINDS
from byhand.interop.pairing import column_order

ANSWERS |= {
    "families": FAMILIES, "raised": GROWING, "gguf_types": called("gguf"), "library_types": BY_LIBRARY,
    "pre_tokenizers": tokens.SPLITS, "of_hugging_face": conventions, "of_gguf": gguf_conventions,
}  # fmt: skip


@answer
def in_gguf(name: str) -> bool:
    """Return whether a family of Hugging Face is known in GGUF too."""
    return any(name.startswith((known, known.replace("gpt", "gpt_"))) for known in gguf.KNOWN)


@answer
def steps_of(order: dict[Any, Any]) -> Iterator[list[str]]:
    """Yield a setting's values from few parameters to more, those together that do not contain each other."""
    for _, step in groupby(order, lambda value: len(order[value])):
        yield [str(value).lower() if type(value) is bool else value for value in step]


@answer
def their_keys() -> tuple[dict[str, dict[str, str]], dict[tuple[str, ...], dict[str, str]]]:
    """Return keys by our setting: of each family's config.json, and of the metadata of a GGUF by families."""
    groups: dict[tuple[str, ...], dict[str, str]] = {}
    for name, family in gguf.KNOWN.items():
        keys = {ours: f"`{key.replace(name, '*', 1)}`" for key, ours in family.keys.items()}
        same = next((names for names, others in groups.items() if others == keys), ())
        groups.pop(same, None)
        groups[(*same, name)] = keys
    return {name: _keys(family) for name, family in FAMILIES.items()}, groups


def _keys(family: Family) -> dict[str, str]:
    """Return the keys of a config.json by our setting."""
    own = {**family.keys, **family.flags, family.activation: "activation"}
    found = {ours: f"`{key}`" for key, ours in own.items()}
    if family.window:
        found["attention_window"] = ", ".join(f"`{key}`" for key in family.window)
    if family.layers:
        found["layer_pattern"] = ", ".join(f"`{key}`" for key in KINDS[family.name])
    return found


@answer
def settings_of(columns: list[dict[str, str]]) -> list[str]:
    """Return every setting that has a key in some column, in order."""
    return list(dict.fromkeys(name for keys in columns for name in keys))


@answer
def paired(pairing: str, width: int) -> tuple[list[str], list[int]]:
    """Return the GGUF families that use a pairing, and the order of a head's columns in it."""
    users = [n for n, family in gguf.KNOWN.items() if family.pairing == pairing and family.may_vary("rope_base")]
    order = range(width) if pairing == "halves" else column_order(width, width, "neighbours")
    return users, [int(i) for i in order]
