"""What the page asks: families, settings and their keys, tokens, number types."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from byhand.config import ModelConfig
from byhand.formats.ggml import BY_LIBRARY as library_types
from byhand.formats.registry import called
from byhand.interop.families import GROWING as raised
from byhand.interop.families import Family
from byhand.interop.gguf import conventions as of_gguf
from byhand.interop.gguf import model as gguf
from byhand.interop.gguf import tokens
from byhand.interop.hugging_face import conventions as of_hugging_face
from byhand.interop.hugging_face.families import FAMILIES as families
from byhand.interop.hugging_face.layers import KINDS
from byhand.interop.pairing import column_order
from byhand.interop.tensors import pieces
from byhand.model import declared

FORMATS = {"hf": families, "gguf": gguf.KNOWN}
SIZES = {"vocab_size": 50, "seq_len": 32, "d_model": 8, "n_heads": 2, "d_ff": 40}
gguf_types, pre_tokenizers = called("gguf"), tokens.SPLITS


def in_gguf(name: str) -> bool:
    """Return whether a family of Hugging Face is known in GGUF too."""
    return any(name.startswith((known, known.replace("gpt", "gpt_"))) for known in gguf.KNOWN)


def steps_of(order: dict[Any, Any]) -> Iterator[list[str]]:
    """Yield a setting's values from few parameters to more, those together that do not contain each other."""
    for _, step in groupby(order, lambda value: len(order[value])):
        yield [str(value).lower() if type(value) is bool else value for value in step]


def their_keys() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield our settings, each with its keys in a config.json and in the metadata of a GGUF, of all families."""
    stored = [{ours: [key.replace(name, "*", 1)] for key, ours in f.keys.items()} for name, f in gguf.KNOWN.items()]
    groups = [[_keys(family) for family in families.values()], stored]
    for setting in dict.fromkeys(name for group in groups for keys in group for name in keys):
        own, metadata = ([key for keys in group for key in keys.get(setting, ())] for group in groups)
        yield setting, list(dict.fromkeys(own)), list(dict.fromkeys(metadata))


def _keys(family: Family) -> dict[str, list[str]]:
    """Return the keys of a config.json by our setting."""
    found = {ours: [key] for key, ours in {**family.keys, **family.flags, family.activation: "activation"}.items()}
    if family.window:
        found["attention_window"] = list(family.window)
    if family.layers:
        found["layer_pattern"] = list(KINDS[family.name])
    return found


def paired(pairing: str, width: int) -> tuple[list[str], list[int]]:
    """Return the GGUF families that use a pairing, and the order of a head's columns in it."""
    users = [n for n, family in gguf.KNOWN.items() if family.pairing == pairing and family.may_vary("rope_base")]
    order = range(width) if pairing == "halves" else column_order(width, width, "neighbours")
    return users, [int(i) for i in order]


def tensors_of(goal: str, family: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield a family's tensors: our arrays and their tensor, each with its shape, how one is made, which columns."""
    config, known = _example(families[family]), FORMATS[goal][family]
    for piece in pieces(config, known.tensors):
        shape, columns = declared(config)[piece.ours[0]].shape, ""
        how = "less 1" if piece.less else "transposed" if piece.transposed else "unchanged"
        if isinstance(piece.columns, slice) and piece.columns.stop - piece.columns.start != shape[-1]:
            columns = f"`[:, {piece.columns.start}:{piece.columns.stop}]`"
            how = "permuted" if known.pairing == "neighbours" and "_v" not in piece.theirs else "columns"
        ours = ", ".join(f"`{name}`" for name in piece.ours)
        yield f"{ours} {list(shape)}", f"`{piece.theirs}` {list(piece.shape)}", how, columns


def _example(family: Family) -> ModelConfig:
    """Return a model of a family, small enough that no two widths are equal."""
    settings: dict[str, Any] = {**family.usual(), **SIZES}
    if family.may_vary("n_kv_heads"):
        settings |= {"n_heads": 4, "n_kv_heads": 2}
    if family.may_vary("d_head"):
        settings["d_head"] = 6
    return ModelConfig(**settings)
