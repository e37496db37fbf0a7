"""Checks of settings: types and ranges; each error says what to use."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Collection, Iterator
from dataclasses import fields
from functools import cache
from inspect import get_annotations
from types import CodeType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

from byhand.errors import ConfigError

MOST = {  # more than any machine today can use: refused before anything is built
    **dict.fromkeys(
        (
            "vocab_size",
            "seq_len",
            "window",
            "d_ff",
            "d_head",
            "attention_window",
            "batch_size",
            "grad_accum",
            "eval_windows",
            "rope_original_len",
        ),
        1 << 20,
    ),
    "top_k": 1 << 20,
    **dict.fromkeys(("d_model", "n_heads", "n_kv_heads"), 1 << 17),
    **dict.fromkeys(("n_layers", "threads", "lora"), 1024),
    **dict.fromkeys(("keep", "samples"), 10**6),
    **dict.fromkeys(("steps", "warmup_steps", "eval_interval", "save_interval", "max_new_tokens"), 10**12),
    "seed": 2**63 - 1,
}
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text in quotes"}
AUTO, BYTES = "auto", "bytes"  # encodings: detected, or none
LARGE = 1e6  # beyond it, or below its inverse, a setting is meaningless in float32
LATER = {"later": True}  # metadata of a setting that older files lack: not written at its default


def require_encoding(name: str) -> None:
    """Raise ConfigError unless this is an encoding of text that Python knows, `auto` or `bytes`."""
    if name not in (AUTO, BYTES):
        try:
            codecs.getincrementaldecoder(name)
            " ".encode(name)  # also a LookupError for codecs that do not encode text
        except (LookupError, ValueError, TypeError):  # () of --encoding=--, where argparse drops the --
            raise ConfigError(
                f"encoding is {brief(name)}, which Python does not know. Use cp1252, gb18030, or bytes."
            ) from None


def needs(name: str, *values: Any) -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Return metadata of a setting that has no effect unless another one has one of these values."""
    return {"needs": (name, values)}


def is_idle(config: Any, name: str) -> bool:
    """Return whether a setting has no effect given the others of its config."""
    other, values = type(config).__dataclass_fields__[name].metadata.get("needs", ("", ()))
    return bool(other) and (getattr(config, other) not in values or is_idle(config, other))


def without_effect(given: Collection[str], *configs: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield each given setting without effect, with the setting and the value that it needs."""
    settings = {f.name: (f, getattr(config, f.name)) for config in configs for f in fields(config)}
    for name, (f, _) in settings.items():
        if name in given and "needs" in f.metadata:
            other, values = f.metadata["needs"]
            if settings[other][1] not in values:
                yield name, other, values[0]


def check_types(config: Any) -> None:
    """Check every field against its annotation, so that a TOML string never reaches the arithmetic."""
    for name, hint in _hints(type(config)).items():
        value = getattr(config, name)
        hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        kinds = tuple(get_origin(k) or k for k in (get_args(hint) if get_origin(hint) is UnionType else (hint,)))
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                raise ConfigError(f"{name} is {brief(value)}. Use one of {', '.join(get_args(hint))}.")
            continue
        wanted = (*kinds, int) if float in kinds else kinds
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            kind = KINDS.get(kinds[0], kinds[0].__name__)
            raise ConfigError(f"{name} is {brief(value)}, but must be {kind}{_example(config, name)}.")
        if float in kinds and value is not None and not abs(value) <= sys.float_info.max:
            raise ConfigError(f"{name} is {brief(value)}, but must be a finite number{_example(config, name)}.")


@cache
def _annotations(kind: type) -> dict[str, tuple[CodeType | None, Any]]:
    """Return each annotation of a class and its bases: compiled, with its globals, or already evaluated."""
    return {
        name: (compile(text, name, "eval"), vars(sys.modules[base.__module__]))
        if isinstance(text, str)
        else (None, text)
        for base in reversed(kind.__mro__)
        for name, text in get_annotations(base).items()
    }


def _hints(kind: type) -> dict[str, Any]:
    """Like `get_type_hints`, but parse once; evaluate each time, since activations may have been registered."""
    return {name: eval(code, names) if code else names for name, (code, names) in _annotations(kind).items()}


def at_least(config: Any, low: int, *names: str) -> None:
    """Raise ConfigError for the first field that is below its smallest value."""
    for name in names:
        value = getattr(config, name)
        if value < low:
            default = type(config).__dataclass_fields__[name].default
            usual = max(low, 1) if default is None else default
            raise ConfigError(f"{name} is {brief(value)}, but must be at least {low}. Use {usual}.")


def at_most(config: Any) -> None:
    """Raise ConfigError for the first field that is above its largest value."""
    for f in fields(config):
        value, most = getattr(config, f.name), MOST.get(f.name)
        if most is not None and value is not None and value > most:
            raise ConfigError(f"{f.name} is {brief(value)}, but can be at most {most}. Use a smaller one.")


def usual(config: Any, name: str) -> str:
    """Return the advice to use a setting's default."""
    return f" Use {type(config).__dataclass_fields__[name].default:g}."


def _example(config: Any, name: str) -> str:
    default = type(config).__dataclass_fields__[name].default
    return f", such as {default!r}" if type(default) in (int, float, str) else ""


def brief(value: Any) -> str:
    """Return a value as written, or its beginning; Python refuses to print integers over 4,300 digits."""
    if isinstance(value, int) and abs(value) > 10**24:
        return "a number of over 24 digits"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    said = repr(value) if isinstance(value, str) else str(value)
    return said if len(said) <= 80 else f"{said[:80]}…"
