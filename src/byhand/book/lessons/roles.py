"""Goals and reasons of steps whose equation has several roles: one linear layer makes queries, another logits.

Those of a model's pass are in roles.toml; a lesson whose names mean something else has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from byhand.book.words.language import Words
from byhand.book.words.tables import Table, table


@dataclass(frozen=True)
class Role:
    """A result's meaning, the goal of the step that makes it, and the reason for its form."""

    name: Words
    goal: Words
    why: Words | None = None


Roles = Mapping[tuple[str, ...], Role]  # by equation and by the result's place, its name in the pass


def told(module: str, letters: Mapping[str, str] | None = None) -> Roles:
    """Return the roles in the TOML file beside a module.

    letters  the values of `{letter}` in a role, each with its `{whose}`
    """
    data = table(Path(module).with_suffix(".toml"))
    own = {key: parts["why"] for key, parts in data.items() if isinstance(parts.get("why"), list)}
    whys = Table(data.path, own)  # a role may name one of these instead of giving its own
    all_letters = [{"letter": letter, "whose": whose} for letter, whose in (letters or {}).items()]
    found = {}
    for key, parts in data.items():
        names = ("name", "goal", *(["why"] if "why" in parts else []))
        both = {part: Words(*(whys[said] if isinstance(said := parts[part], str) else said)) for part in names}
        for given in all_letters if "{letter}" in key else ({},):
            filled = {part: Words(w.said("en", **given), w.said("zh", **given)) for part, w in both.items()}
            found[tuple(key.format(**given).split("/"))] = Role(**filled)
    return found


MODEL = told(__file__)


def role(roles: Roles, stem: str, name: str, alone: bool = False) -> Role | None:
    """Return the role of an equation's result in its place, also within a scope: `token0.attn.qkv`.

    alone  whether nothing else reads the equation's first input: a block's norm then stands in the stream after a
           sublayer, not beside it before one
    """
    parts = name.split(".")
    names = [".".join(parts[first:]) for first in range(len(parts))]
    keys = [(stem, inner, *asked) for asked in ([("alone",), ()] if alone else [()]) for inner in names]
    return next((roles[key] for key in keys if key in roles), None)
