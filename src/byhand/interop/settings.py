"""Settings of other programs as facts: their keys, our settings, and the meaning of missing keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.config import ModelConfig
from byhand.errors import DataError
from byhand.interop.families import FOLLOWS, Family

Keys = Mapping[str, str]  # theirs: ours
AS_WRITTEN = "Use the model as its program wrote it."


def family_named(found: Mapping[str, Any], key: str, known: Mapping[str, Family]) -> Family:
    """Return the family named by a key; DataError if it is unknown."""
    name = found.get(key)
    if not isinstance(name, str) or name not in known:
        given = f"its {key} is {quoted(name)}" if key in found else f"it names no {key}"
        raise DataError(f"{given}. Use a model of {', '.join(known)}.")
    return known[name]


def settings_of(found: Mapping[str, Any], keys: Keys, missing: Mapping[str, Any]) -> dict[str, Any]:
    """Return our settings by name.

    missing  the other program's defaults for missing keys

    Raises DataError if a required key is missing or null.
    """
    settings: dict[str, Any] = {}
    for key, ours in keys.items():
        if key not in found and key not in missing:
            raise DataError(f"it lacks {key}. {AS_WRITTEN}")
        settings[ours] = found.get(key, missing.get(key))
        if settings[ours] is None and ours not in FOLLOWS:
            raise DataError(f"its {key} is null. {AS_WRITTEN}")
    return settings


def keys_of(config: ModelConfig, keys: Keys) -> dict[str, Any]:
    """Return the values of their keys for a config."""
    return {key: getattr(config, FOLLOWS.get(ours, ours)) for key, ours in keys.items()}


def require_usual(found: Mapping[str, Any], usual: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise DataError for a key that changes the computation, unless it has a usual value."""
    for key, values in usual.items():
        if key in found and not any(_same(found[key], value) for value in values):
            raise DataError(f"its {key} is {quoted(found[key])}, but only {quoted(values[0])} can be computed here.")


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; booleans equal no number."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def quoted(value: Any) -> str:
    """Return a value from a file as Python writes it, in at most 81 characters."""
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:80]}…"
