"""Kinds of layers in transformers' config.json: windows of attention, rotary positions or none, rotary bases.

gpt_neo      attention_types: [[["global", "local"], 12]], names and their number of repetitions
gemma3_text  layer_types, else every n-th layer sees all; rope_parameters by kind, else two bases
smollm3      no_rope_layers: 1 for each layer with rotation, else every n-th layer lacks it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byhand.config import ModelConfig
from byhand.errors import DataError
from byhand.interop.families import Family
from byhand.interop.settings import quoted

FULL, SLIDING = "full_attention", "sliding_attention"
LOCAL = "rope_local_base_freq"
DEEPEST = 1024  # layers
KINDS = {  # keys with the kind of each layer
    "gpt_neo": ("attention_types",), "gemma3_text": ("layer_types", "sliding_window_pattern"),
    "smollm3": ("no_rope_layers", "no_rope_layer_interval", "layer_types"),
}  # fmt: skip


def layers_of(found: Mapping[str, Any], family: Family, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return our settings for windows and kinds of layers; DataError if we lack them."""
    depth = settings["n_layers"]
    if not family.layers:
        return {"attention_window": _window(found, family, depth)}
    letters = READERS[family.name](found, depth if type(depth) is int and 0 < depth <= DEEPEST else 1)
    (key, missing) = list(family.window.items())[-1]
    window = found.get(key, missing)
    if "w" in letters and type(window) is not int:
        raise DataError(f"its {key} is {quoted(window)}, but must be a whole number.")
    made: dict[str, Any] = {"attention_window": window if "w" in letters else None, "layer_pattern": ""}
    if len(set(letters)) > 1 or letters[0] == "n" or (letters[0] == "w" and LOCAL in family.keys):
        made["layer_pattern"] = _period(letters)
    if LOCAL in family.keys and "w" not in letters:
        made["rope_window_base"] = None
    return made


def _period(letters: str) -> str:
    """Return the shortest period of the letters."""
    periods = (letters[:n] for n in range(1, len(letters)))
    return next((p for p in periods if (p * len(letters))[: len(letters)] == letters), letters)


def _of_gpt_neo(found: Mapping[str, Any], depth: int) -> str:
    kinds, letters = found.get("attention_types") or [[["global", "local"], 12]], ""
    try:
        for names, count in kinds:
            if type(count) is not int or not 0 <= count * len(names) <= DEEPEST:
                raise ValueError
            letters += count * "".join({"global": "g", "local": "w"}[name] for name in names)
    except (ValueError, TypeError, KeyError):
        letters = ""
    if len(letters) != depth:
        raise DataError(f"its attention_types are {quoted(kinds)}, but must name each of its {depth} layers.")
    named = found.get("attention_layers")  # redundant, but takes precedence
    if named is not None and named != [{"g": "global", "w": "local"}[letter] for letter in letters]:
        raise DataError(f"its attention_layers are {quoted(named)}, but its attention_types differ. Fix one.")
    return letters


def _of_gemma3(found: Mapping[str, Any], depth: int) -> str:
    kinds = _kinds(found, depth)
    if kinds is not None:
        return "".join("g" if kind == FULL else "w" for kind in kinds)
    return _every("sliding_window_pattern", found.get("sliding_window_pattern", 6), depth, "w", "g")


def _of_smollm3(found: Mapping[str, Any], depth: int) -> str:
    """Return the letters; by default a window applies to the layers without rotary positions."""
    turned = found.get("no_rope_layers")
    letters = _every("no_rope_layer_interval", found.get("no_rope_layer_interval", 4), depth, "g", "n")
    if turned is not None:
        if not isinstance(turned, list) or len(turned) < depth or any(type(t) is not int or t >> 1 for t in turned):
            raise DataError(f"its no_rope_layers are {quoted(turned)}, but must be 1 or 0 for its {depth} layers.")
        letters = "".join("ng"[t] for t in turned[:depth])
    kinds = _kinds(found, depth)
    if found.get("use_sliding_window") is not True or found.get("sliding_window") is None:
        _require_full(kinds)
        return letters
    kinds = kinds or [FULL if letter == "g" else SLIDING for letter in letters]
    pairs = list(zip(letters, kinds, strict=True))
    if ("n", SLIDING) in pairs:
        raise DataError("it has layers with a window and without rotary positions, which cannot be computed here.")
    return "".join("w" if kind == SLIDING else letter for letter, kind in pairs)


def _every(key: str, step: Any, depth: int, others: str, last: str) -> str:
    if type(step) is not int or step < 1:
        raise DataError(f"its {key} is {quoted(step)}, but must be a whole number above 0.")
    return "".join(others if (i + 1) % step else last for i in range(depth))


READERS: dict[str, Callable[[Mapping[str, Any], int], str]] = {
    "gpt_neo": _of_gpt_neo, "gemma3_text": _of_gemma3, "smollm3": _of_smollm3,
}  # fmt: skip


def _window(found: Mapping[str, Any], family: Family, n_layers: Any) -> Any:
    """Return the window of all layers, or None; DataError if layers differ.

    Only the family's own keys count: Llama has none, and Qwen's window is used only with `use_sliding_window`.
    """
    given = {key: found.get(key, missing) for key, missing in family.window.items()}
    window, first = given.get("sliding_window"), given.get("max_window_layers", 0)
    for key, value in (("sliding_window", window), ("max_window_layers", first)):
        if type(value) is not int and (key == "max_window_layers" or value is not None):
            raise DataError(f"its {key} is {quoted(value)}, but must be a whole number.")
    kinds = _kinds(found, n_layers)
    if window is None or given.get("use_sliding_window") is False:
        _require_full(kinds if family.window and family.name != "phi3" else None)
        return None
    if kinds is None or family.name == "phi3":  # phi3 does not read the key
        count = n_layers if type(n_layers) is int and n_layers <= 1024 else 0
        kinds = [SLIDING if i >= first else FULL for i in range(count)]
    if all(each == FULL for each in kinds):
        return None
    if all(each == SLIDING for each in kinds):
        return window
    raise DataError("its layers have attention windows of several sizes, but byhand supports only one.")


def _require_full(kinds: list[str] | None) -> None:
    """Raise DataError if layers name a window that is switched off: transformers would fail, or use it."""
    if SLIDING in (kinds or ()):
        raise DataError(
            f"its layer_types name {SLIDING!r}, but its window is not used. Set use_sliding_window and "
            f"sliding_window, or name all layers {FULL!r}."
        )


def _kinds(found: Mapping[str, Any], n_layers: Any) -> list[str] | None:
    """Return the kind of attention of each layer; None if the file does not say it."""
    kinds = found.get("layer_types")
    if kinds is None:
        return None
    if not isinstance(kinds, list) or len(kinds) != n_layers or any(each not in (FULL, SLIDING) for each in kinds):
        raise DataError(
            f"its layer_types are {quoted(kinds)}, but must be {FULL!r} or {SLIDING!r} for each of its "
            f"{quoted(n_layers)} layers."
        )
    return kinds


def keys_of_layers(config: ModelConfig, family: Family) -> dict[str, Any]:
    """Return the keys for windows and kinds of layers in a config.json."""
    letters = config.layer_letters
    window = config.attention_window if family.windowed or "w" in letters else None
    found = {
        "sliding_window": window,
        "use_sliding_window": window is not None,
        "max_window_layers": config.n_layers if window is None else 0,  # the first layer that has it
        "window_size": window or family.window.get("window_size"),
    }
    found = {key: found[key] for key in family.window}
    kinds = [family.layers[letter] for letter in letters] if family.layers else []
    if family.name == "gpt_neo":
        period = len(_period(letters))
        types = [[kinds[:period], len(kinds) // period]] if len(kinds) % period == 0 else [[kinds, 1]]
        found |= {"attention_types": types, "attention_layers": kinds}
    if family.name == "gemma3_text":
        found |= {"sliding_window": window or family.window["sliding_window"], "layer_types": kinds}
        found["query_pre_attn_scalar"] = int(config.score_divisor)
        steps = (n for n in range(2, len(letters) + 2) if letters == _every("", n, len(letters), "w", "g"))
        step = next(steps, None)
        found |= {"sliding_window_pattern": step} if step else {}  # for older transformers
    if family.name == "smollm3":
        found |= {"no_rope_layers": [int(letter != "n") for letter in letters], "layer_types": kinds}
    return found


def without_kinds(found: Mapping[str, Any], family: Family) -> Mapping[str, Any]:
    """Return a config.json with rotation by kind of layer moved to the common keys, that of windows to LOCAL."""
    turns, scaled = found.get("rope_parameters"), found.get("rope_scaling")
    if LOCAL not in family.keys:
        return found
    if isinstance(scaled, dict) and "rope_type" not in scaled and scaled.get("type", "default") != "default":
        raise DataError(
            f"its rope_scaling is {quoted(scaled)}. Name rope_type there too: transformers reads no type."
        )
    if not isinstance(turns, dict):
        return found
    if strange := sorted(turns.keys() - {FULL, SLIDING}):  # transformers would ignore it
        raise DataError(f"its rope_parameters have {strange[0][:80]!r}, but must name only {FULL} and {SLIDING}.")
    of_all, local = turns.get(FULL) or {}, turns.get(SLIDING) or {}
    if not isinstance(local, dict) or local.get("rope_type", "default") != "default":
        raise DataError(f"its rope_parameters are {quoted(turns)}, but layers with a window cannot be scaled here.")
    base = {LOCAL: local["rope_theta"]} if "rope_theta" in local else {}
    return {**found, "rope_parameters": of_all, **base}


def with_kinds(turns: dict[str, Any], config: ModelConfig, family: Family) -> dict[str, Any]:
    """Return the keys of a rotation, by kind of layer for a family with two bases."""
    if LOCAL not in family.keys:
        return turns
    local = {"rope_type": "default", "rope_theta": config.window_base}
    return turns | {"rope_parameters": {FULL: turns["rope_parameters"], SLIDING: local}}
