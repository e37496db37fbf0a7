"""Targets: how people name one number of a model, as in `d blocks.0.attn.q[0,0,1,2]`."""

from __future__ import annotations

import re

from byhand.config_checks import brief
from byhand.engine.terms import Index
from byhand.errors import ExplainError
from byhand.files.reading import parse_integer

LONGEST = 300  # characters
TARGET = re.compile(
    r"(?P<d>d\s+|∂loss/∂)?(?P<name>[A-Za-z_][\w.]*)\s*"
    r"(?:\[(?P<index>\s*(?:-?[0-9]+\s*)?(?:,\s*(?:-?[0-9]+\s*)?)*)\])?"  # blanks around a number, none inside
)


def parse_target(target: str) -> tuple[str, Index, bool]:
    """Split `d blocks.0.attn.q[0,0,1,2]` into its name, its index, and whether it asks for a gradient."""
    target = target.strip()
    if not target:
        return "", (), False
    match = TARGET.fullmatch(target) if len(target) <= LONGEST else None
    if match is None:
        raise ExplainError(
            f"{brief(target)} is not an element. Write a name and an index, as in blocks.0.attn.weights[0,0,2,1]."
        )
    places = [place for place in map(str.strip, (match["index"] or "").split(",")) if place]
    return match["name"], tuple(parse_integer(place, "the index") for place in places), bool(match["d"])
