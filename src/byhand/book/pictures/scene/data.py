"""Scenes as plain values, ready for JSON: the declaration with its numbers, without what is as usual."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def as_json(value: Any) -> Any:
    """Return dicts, lists, strings and numbers; an element is a dict whose `kind` is its name."""
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        told = {f.name: getattr(value, f.name) for f in fields(value)}
        usual = {f.name: f.default for f in fields(value)}
        kept = {name: as_json(x) for name, x in told.items() if isinstance(x, np.ndarray) or x is not usual[name]}
        return {"kind": type(value).__name__.lower(), **kept} if type(value).__name__ != "Words" else kept
    if isinstance(value, dict):
        return [[as_json(key), as_json(x)] for key, x in value.items()]
    if isinstance(value, list | tuple | range):
        return [as_json(x) for x in value]
    return None if isinstance(value, float) and value != value else value
