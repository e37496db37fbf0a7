"""Rotation in transformers' config.json: its base, the rotated part of a head, and scaled angles.

They are in `rope_parameters` since transformers 5; before, base and part were among the other keys, and scaled angles
in `rope_scaling`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from byhand.config import ModelConfig
from byhand.errors import DataError
from byhand.interop.families import Family
from byhand.interop.hugging_face.alike import PART
from byhand.interop.settings import keys_of, quoted, require_usual, settings_of

PLACES = ("rope_scaling", "rope_parameters")
LENGTH = "original_max_position_embeddings"
LLAMA3 = {
    "factor": "rope_factor", LENGTH: "rope_original_len", "low_freq_factor": "rope_slow",
    "high_freq_factor": "rope_fast",
}  # fmt: skip
YARN = {
    "factor": "rope_factor", LENGTH: "rope_original_len", "beta_slow": "rope_slow", "beta_fast": "rope_fast",
    "attention_factor": "rope_attention",
}  # fmt: skip
KINDS = {"default": {}, "linear": {"factor": "rope_factor"}, "llama3": LLAMA3, "yarn": YARN}  # keys and our settings
NULL = {
    "beta_slow": 1.0,
    "beta_fast": None,
    "attention_factor": None,
}  # defaults of keys that are null or missing
ONLY = {PART: (1.0, None), "truncate": (True, None), "mscale": (None,), "mscale_all_dim": (None,)}
IDLE = ("type", "rope_type", "rope_theta", "finetuned", *LLAMA3, *YARN)


def with_rotation(found: Mapping[str, Any], family: Family) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a config.json with base and part among the other keys, and our settings for scaled angles.

    Raises DataError if the two places differ, or the kind of scaling is unknown.
    """
    top = {key: value for key, value in found.items() if value is not None or key != PART}
    flat, known, scaling = dict(top), {"rope_theta", PART} & family.keys.keys(), dict[str, Any]()
    given = [place for place in PLACES if known and found.get(place) is not None]
    for place in given:
        turns = found[place]
        for key in known & (turns.keys() if isinstance(turns, dict) else set()):
            usual = family.missing.get(key)
            alone = len(given) == 2 and place == given[1] and key not in found[given[0]]  # transformers ignores it
            if turns[key] != flat.get(key, usual) and (alone or flat.get(key, usual) != top.get(key, usual)):
                raise DataError(f"its {' and '.join(PLACES)} differ. Keep one of them.")
            flat[key] = turns[key]
        last, scaling = scaling, _scaling(turns, place, found, family)
        if place != given[0] and scaling != last:
            raise DataError(f"its {' and '.join(PLACES)} differ. Keep one of them.")
    return flat, scaling


def _scaling(turns: Any, place: str, found: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """Return our settings for scaled angles from one place."""
    kind = turns.get("rope_type", turns.get("type", "default")) if isinstance(turns, dict) else None
    if not isinstance(kind, str) or kind not in KINDS or turns.get("type", kind) != kind:
        raise DataError(f"its {place} is {quoted(turns)}, but only {', '.join(KINDS)} can be computed here.")
    require_usual(turns, {key: values for key, values in ONLY.items() if key not in family.keys})
    for key in sorted(turns.keys() - {*family.keys, *ONLY, *IDLE})[:1]:
        raise DataError(f"its {place} has {key[:80]!r}: {quoted(turns[key])}, which byhand does not know.")
    if kind == "default":
        return {}
    said = {key: value for key, value in turns.items() if value is not None or key not in NULL}
    length = found.get(LENGTH, turns.get(LENGTH, found.get("max_position_embeddings")))
    settings = settings_of({**said, LENGTH: length}, KINDS[kind], NULL)
    return {"rope_scaling": kind, **settings}


def as_keys(config: ModelConfig) -> dict[str, Any]:
    """Return the keys of a rotation in a config.json, in both places."""
    plain = {"rope_theta": config.rope_base, PART: _part(config)}
    kind = "default" if config.rope_scaling == "none" else config.rope_scaling
    scaling = {"rope_type": kind, **keys_of(config, KINDS[kind])}
    older = {} if kind == "default" else {"rope_scaling": scaling}
    return plain | older | {"rope_parameters": {**scaling, **plain}}


def _part(config: ModelConfig) -> float:
    """Return the part of a head that is rotated; transformers rounds its product with the head width down."""
    part = config.rotary_width / config.head_width
    return part if int(config.head_width * part) == config.rotary_width else math.nextafter(part, 1.0)
