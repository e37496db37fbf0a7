"""Scaled angles of rotation in a GGUF: keys for linear and yarn, for llama3 a tensor of factors, one for each pair.

For llama3 a file lacks the settings; they are recovered from the factors.

Source      https://github.com/ggml-org/llama.cpp/blob/master/src/llama-context.cpp
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from byhand.config import ModelConfig
from byhand.equations.rotary import Scaling, frequencies, slowed
from byhand.errors import DataError
from byhand.interop.settings import quoted

FACTORS = "rope_freqs.weight"
TYPE, FACTOR, SCALE = "rope.scaling.type", "rope.scaling.factor", "rope.scale_linear"
LENGTH, SIZE = "rope.scaling.original_context_length", "rope.scaling.attn_factor"
KINDS = {  # by type: keys and our settings; the size of rotated queries and keys is a factor besides yarn's own
    "linear": {FACTOR: "rope_factor"},
    "yarn": {FACTOR: "rope_factor", LENGTH: "rope_original_len", SIZE: "rope_attention"},
}
KEYS = (TYPE, FACTOR, SCALE, LENGTH, SIZE)
ONLY = {  # llama.cpp uses these values whatever a file says, for the families here
    "rope.scaling.yarn_beta_slow": (1.0,), "rope.scaling.yarn_beta_fast": (32.0,),
    "rope.scaling.yarn_ext_factor": (1.0, -1.0), "rope.scaling.yarn_attn_factor": (1.0,),
    "rope.scaling.yarn_log_multiplier": (0.0,),
}  # fmt: skip
FITS = 1e-5  # largest error of a factor recomputed from settings: a file's are float32


def as_keys(config: ModelConfig) -> dict[str, Any]:
    """Return the keys of scaled angles, without the architecture's name."""
    if config.rotary_scaling is None or config.rope_scaling not in KINDS:
        return {}
    found: dict[str, Any] = {TYPE: config.rope_scaling, FACTOR: config.rope_factor}
    if config.rope_scaling == "yarn":
        found |= {LENGTH: config.rope_original_len, SIZE: config.turned_size / _own_size(config.rope_factor)}
    return found


def problems(config: ModelConfig) -> list[tuple[str, str]]:
    """Return why llama.cpp cannot compute scaled angles, and what to change."""
    turns = config.rope_slow, config.fast_turns
    if config.rope_scaling != "yarn" or config.rotary_scaling is None or turns == (1.0, 32.0):
        return []
    said = f"rope_slow is {turns[0]:g} and rope_fast {turns[1]:g}, but llama.cpp's yarn has 1 and 32"
    return [(said, "without --rope-slow and --rope-fast")]


def factors_of(config: ModelConfig, given: np.ndarray | None = None) -> np.ndarray | None:
    """Return each pair's slow-down, float32 (R / 2,), if a tensor stores it, else None.

    given  a file's factors: returned if the settings give the same up to rounding
    """
    scaling = config.rotary_scaling
    if scaling is None or scaling.kind != "llama3":
        return None
    made = np.array([1 / share for share in slowed(config.rope_base, config.rotary_width, scaling)], np.float32)
    same = given is not None and given.shape == made.shape and np.allclose(given, made, rtol=2 * FITS, atol=0)
    return given if same else made


def settings_of(keys: Mapping[str, Any], length: Any) -> dict[str, Any]:
    """Return our settings from a file's keys, without factors; DataError if the type is unknown.

    keys    without the architecture's name
    length  of the context
    """
    kind, size = keys.get(TYPE, "linear"), keys.get(SIZE, 1.0)
    factor = keys.get(FACTOR, keys.get(SCALE, 1.0)) or 1.0  # 0 means 1
    usual = size == 1.0 and kind in ("none", "linear")
    if usual and (kind == "none" or factor == 1.0):
        return {}
    if not (usual or kind == "yarn") or not type(factor) is type(size) is float or factor < 1:
        said = {key: value for key, value in keys.items() if key.startswith("rope.scal")}
        raise DataError(f"its rotation is {quoted(said)}, but only {', '.join(KINDS)} can be computed here.")
    if kind == "linear":
        return {"rope_scaling": kind, "rope_factor": factor}
    size = None if size == 1.0 else float(str(np.float32(size * _own_size(factor))))
    found = {"rope_factor": factor, "rope_original_len": keys.get(LENGTH, length), "rope_attention": size}
    return {"rope_scaling": kind, **found}


def _own_size(factor: float) -> float:
    return 0.1 * math.log(factor) + 1


def settings_of_factors(factors: np.ndarray, base: float) -> dict[str, Any]:
    """Return settings of llama3 that give these factors, one for each pair; DataError if none do.

    Only the ratios of L, slow and fast matter, so slow is 1, or whatever makes L an integer. Between slow and fast
    the share k_p that a pair keeps is linear in its turns: two pairs determine the line. With fewer, choose L so that
    the first pair after the fast ones makes a little more than one turn, or at most one if it is slow.
    """
    factors = factors.astype(np.float64)
    if (factors == 1).all():
        return {}
    factor, width = float(factors.max()), 2 * len(factors)
    if factors.min() >= 1 and factor > 1:
        turns = np.array(frequencies(base, width)) / (2 * math.pi)  # per position
        kept = (1 / factors - 1 / factor) / (1 - 1 / factor)
        with np.errstate(all="ignore"):
            length, fast = map(float, _line(turns, kept))
        if 0 < length < math.inf and 1 < fast < math.inf:
            near, up = round(length), math.ceil(length)
            for settings in ((near, 1.0, round(fast, 3)), (near, 1.0, fast), (up, up / length, fast * up / length)):
                made = settings[1] < settings[2] and slowed(base, width, Scaling("llama3", factor, *settings))
                if made and np.allclose(1 / factors, made, rtol=FITS, atol=0):
                    names = "rope_factor", "rope_original_len", "rope_slow", "rope_fast"
                    return {"rope_scaling": "llama3", **dict(zip(names, (factor, *settings), strict=True))}
    raise DataError(f"its {FACTORS} are not those of Llama 3, which alone can be computed here.")


def _line(turns: np.ndarray, kept: np.ndarray) -> tuple[Any, Any]:
    """Return L and fast from the line through the shares that pairs keep."""
    between, slow = np.flatnonzero((kept > FITS) & (kept < 1 - FITS)), np.flatnonzero(kept <= FITS)[0]
    if len(between) > 1:
        first, last = between[[0, -1]]
        steep = (kept[first] - kept[last]) / (turns[first] - turns[last])
        low = kept[first] - steep * turns[first]
        return -steep / low, 1 - 1 / low
    if len(between):
        length = np.floor(1 / turns[between[0]]) + 1
        return length, 1 + (length * turns[between[0]] - 1) / kept[between[0]]
    length = np.floor(1 / turns[slow])
    return length, length * turns[slow - 1] if slow else 4.0
