"""Kinds of layers in a GGUF.

gemma3   every sixth layer sees all positions, or every n-th by a key; another key has the others' base
smollm3  every fourth layer lacks rotation, whatever a file says
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.config import ModelConfig
from byhand.errors import DataError
from byhand.interop.families import Family
from byhand.interop.settings import quoted

LOCAL, STEP = "rope.freq_base_swa", "attention.sliding_window_pattern"
STEPS = {"gemma3": 6, "smollm3": 4}  # defaults of STEP
OF_27B = 62  # layers of the gemma3 model with another divisor
DEEPEST = 1024  # layers


def every(step: int, others: str, last: str, depth: int) -> str:
    """Return the letters of `depth` layers: every `step`-th is `last`."""
    return "".join(others if (i + 1) % step else last for i in range(depth))


def settings_of(keys: Mapping[str, Any], family: Family, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return our settings for the kinds of layers; DataError if we lack them."""
    name = family.name
    if name not in STEPS:
        return {}
    if name == "smollm3":
        return {"layer_pattern": every(STEPS[name], "g", "n", STEPS[name])}
    step, window = keys.get(f"{name}.{STEP}", STEPS[name]), settings["attention_window"]
    if type(step) is not int or not 0 < step <= DEEPEST:
        raise DataError(f"its {name}.{STEP} is {quoted(step)}, but must be a whole number above 0.")
    if type(window) is not int:
        raise DataError(f"its {name}.attention.sliding_window is {quoted(window)}, but must be a whole number.")
    width, heads = settings["d_model"], settings["n_heads"]
    sized = settings["n_layers"] == OF_27B and {type(width), type(heads)} == {int} and heads > 0
    if sized and width // heads != (settings["d_head"] or width // heads):
        raise DataError(f"llama.cpp divides scores by the root of {width // heads} in a gemma3 of {OF_27B} layers.")
    if step == 1:
        return {"layer_pattern": "", "attention_window": None, "rope_window_base": None}
    return {"layer_pattern": every(step, "w", "g", step)}


def as_keys(config: ModelConfig, family: Family) -> dict[str, Any]:
    """Return the keys for the kinds of layers, without the architecture's name."""
    return {STEP: _step(config)} if family.name == "gemma3" else {}


def _step(config: ModelConfig) -> int | None:
    letters = config.layer_letters
    return next((n for n in range(1, len(letters) + 2) if letters == every(n, "w", "g", len(letters))), None)


def of_gemma3(config: ModelConfig) -> list[tuple[str, str]]:
    """Return why llama.cpp cannot compute a Gemma 3."""
    found = []
    if _step(config) is None:
        said = (
            f"the layers are {config.layer_letters[:80]}, but in gemma3 every n-th sees all, and the others a window"
        )
        found.append((said, "with --layer-pattern wwwwwg"))
    due = config.d_model // config.n_heads if config.n_layers == OF_27B else config.head_width
    if due != config.head_width:
        found.append((f"llama.cpp divides scores by the root of {due} at {OF_27B} layers", "with another --n-layers"))
    if config.score_divisor != config.head_width:
        found.append(("llama.cpp divides the scores of gemma3 by the root of D", "without --attention-divisor"))
    return found


def of_smollm3(config: ModelConfig) -> list[tuple[str, str]]:
    """Return why llama.cpp cannot compute a SmolLM3."""
    letters = config.layer_letters
    if letters == every(STEPS["smollm3"], "g", "n", len(letters)):
        return []
    said = f"the layers are {letters[:80]}, but in llama.cpp's smollm3 every fourth lacks rotary positions"
    return [(said, "with --layer-pattern gggn")]
