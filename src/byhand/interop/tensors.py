"""Tensors of other programs as facts: which of theirs make one of ours, and how.

A fact names one of our arrays, with `*` for the block's number, and theirs in the same way. Several of theirs are
concatenated along our last axis (queries, keys, values), or several of ours make one of theirs (gate and up). Theirs
may be transposed ([out, in], ours is [in, out]), have queries, keys and values head by head, or be smaller by 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from byhand.config import ModelConfig
from byhand.errors import ConfigError, DataError
from byhand.formats.registry import Format
from byhand.memory import physical
from byhand.model import declared, parameter_shapes

COPIES = 3  # of the parameters in float32 while importing a model
Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Fact:
    """One array of ours and the tensors of theirs that make it, or several of ours that make one of theirs."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    transposed: bool = False
    by_head: bool = False
    less: int = 0


@dataclass(frozen=True)
class TensorPart:
    """One tensor of theirs: concatenated columns of our arrays, perhaps transposed.

    columns  in their order
    shape    theirs
    less     subtracted from ours
    """

    ours: tuple[str, ...]
    theirs: str
    columns: slice | np.ndarray
    transposed: bool
    shape: tuple[int, ...]
    less: int = 0


def facts(table: str) -> tuple[Fact, ...]:
    """Return the facts of a table: one per line, `ours = theirs`, followed by ` : T` if theirs are transposed.

    Braces mean several: `attn_{q,k,v}.bias` is `attn_q.bias`, `attn_k.bias`, `attn_v.bias`. ` : H` means queries,
    keys and values head by head, ` : 1` that theirs are smaller by 1.
    """
    found = []
    for line in filter(None, map(str.strip, table.splitlines())):
        ours, _, theirs = line.partition(" = ")
        name, _, signs = theirs.partition(" : ")
        found.append(
            Fact(
                _several(ours), _several(name), transposed="T" in signs, by_head="H" in signs, less=int("1" in signs)
            )
        )
    return tuple(found)


def _several(name: str) -> tuple[str, ...]:
    before, _, rest = name.partition("{")
    inner, _, after = rest.partition("}")
    return tuple(f"{before}{one}{after}" for one in inner.split(","))


def pieces(config: ModelConfig, known: Iterable[Fact]) -> Iterator[TensorPart]:
    """Yield the tensors of theirs that make a model of this config, in the order of our arrays."""
    by_name = {name: fact for fact in known for name in fact.ours}
    shapes = parameter_shapes(config)
    for name, first in shapes.items():
        pattern, block = _pattern(name)
        fact = by_name[pattern]
        if pattern != fact.ours[0]:  # part of another array's tensor
            continue
        ours = tuple(one.replace("*", block) for one in fact.ours)
        widths = [last := sum(shapes[one][-1] for one in ours)]
        if len(fact.theirs) == 3:  # queries, keys, values
            widths = [heads * config.head_width for heads in (config.n_heads, config.kv_heads, config.kv_heads)]
        begin = 0
        for theirs, width in zip(fact.theirs, widths, strict=True):
            shape = (*first[:-1], width)
            columns = slice(begin, begin + width)
            if fact.by_head:
                columns = np.arange(last).reshape(3, config.n_heads, -1).swapaxes(0, 1).reshape(-1)
            yield TensorPart(
                ours, theirs.replace("*", block), columns, fact.transposed,
                shape[::-1] if fact.transposed else shape, fact.less,
            )  # fmt: skip
            begin += width


def _pattern(name: str) -> tuple[str, str]:
    """Return a name with `*` for the number of its block, and the number."""
    room, _, rest = name.partition(".")
    if room != "blocks":
        return name, ""
    block, _, rest = rest.partition(".")
    return f"blocks.*.{rest}", block


def require_tensors(path: Path, found: Shapes, due: Shapes, settings: str) -> None:
    """Raise DataError unless a model has exactly the tensors that its settings require.

    settings  name of the settings' file, for messages: config.json
    """
    for name in sorted(due.keys() - found.keys())[:1]:
        raise DataError(f"{path} lacks the tensor {name}. Use the whole model.")
    for name in sorted(found.keys() - due.keys())[:1]:
        raise DataError(
            f"{path} has the tensor {name[:80]!r}, which a model of its {settings} lacks. Use another model."
        )
    for name, shape in due.items():
        if found[name] != shape:
            raise DataError(f"{path}: {name} has the shape {found[name]}, not the {shape} of its {settings}.")


def to_theirs(arrays: Arrays, parts: Iterable[TensorPart]) -> Iterator[tuple[TensorPart, np.ndarray]]:
    """Yield each of their tensors in float32, contiguous, one at a time."""
    for part in parts:
        whole = arrays[part.ours[0]] if len(part.ours) == 1 else np.concatenate([arrays[n] for n in part.ours], -1)
        array = whole[..., part.columns]
        array = array - np.float32(part.less) if part.less else array
        yield part, np.ascontiguousarray(array.T if part.transposed else array, np.float32)


def require_room(name: str, array: np.ndarray, kind: Format) -> None:
    """Raise ConfigError if an array of ours has a number too large for a format."""
    if np.abs(array).max(initial=0) > kind.largest:
        raise ConfigError(
            f"{name} holds numbers larger than {kind.symbol} can ({kind.largest:,.7g}). Use --dtype float32."
        )


def from_theirs(
    read: Callable[[str], np.ndarray], config: ModelConfig, known: Iterable[Fact]
) -> dict[str, np.ndarray]:
    """Return our arrays, in float32; `read` returns a tensor of theirs by name, in the shape given by `pieces`.

    Raises DataError if this machine lacks the memory to import the model.
    """
    need = COPIES * 4 * sum(math.prod(parameter.shape) for parameter in declared(config).values())
    if (have := physical()) is not None and need > have:
        raise DataError(
            f"reading this model takes {need / 1e9:,.1f} GB, but the machine has {have / 1e9:,.1f} GB of memory. "
            f"Use a larger one."
        )
    found = {name: np.empty(parameter.shape, np.float32) for name, parameter in declared(config).items()}
    for piece in pieces(config, known):
        tensor = read(piece.theirs)
        tensor, begin = tensor.T if piece.transposed else tensor, 0
        if len(piece.ours) == 1:
            found[piece.ours[0]][..., piece.columns] = tensor + np.float32(piece.less) if piece.less else tensor
            continue
        for name in piece.ours:
            width = found[name].shape[-1]
            found[name][...] = tensor[..., begin : begin + width]
            begin += width
    return found
