"""Arrays of another program: read within bounds, and laid out as ours under the names that it uses.

A folder of .npy files, an .npz or a .safetensors gives names and shapes first; an array is read when it is compared.
Names are ours, or those of one of `tables`: of parameters, their gradients, moments and new values, and of what a
module returns (a hook's name): `h.0.attn.c_attn` is what reads the weight `h.0.attn.c_attn.weight`.
"""

from __future__ import annotations

import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from byhand.book.port import recording
from byhand.book.port.recording import GRAD, Recording
from byhand.book.port.tables import HEAD, KINDS, PREFIXES, TABLES
from byhand.config import ModelConfig
from byhand.errors import DataError, brief, reason, suggestion
from byhand.files import tensor_file
from byhand.files.reading import open_regular
from byhand.files.weights import OpenFile
from byhand.interop.tensors import Fact, pieces
from byhand.model import parameter_shapes

MOST_FILES = 1 << 16
HEADER = 1 << 24  # bytes of a safetensors header
OWN = "byhand"
DAMAGED = (
    ValueError, EOFError, OSError, KeyError, TypeError, SyntaxError, RuntimeError, OverflowError, MemoryError,
    UnicodeDecodeError, struct.error, zlib.error, zipfile.BadZipFile, tokenize.TokenError,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Theirs:
    """One array of theirs: its shape, and a function that reads it."""

    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


@dataclass(frozen=True)
class Counterpart:
    """What an array of theirs is of ours: columns of its last axis, transposed, with `less` subtracted."""

    ours: str
    columns: slice | np.ndarray | None = None
    transposed: bool = False
    less: int = 0

    def part(self, whole: np.ndarray) -> np.ndarray:
        """Return these columns of ours; all of them if none are named."""
        return whole if self.columns is None else whole[..., self.columns]


def opened(path: Path) -> dict[str, Theirs]:
    """Return the arrays of a folder or file by their names; DataError in one line if it cannot be read."""
    if os.path.isdir(path):
        if os.path.lexists(path / recording.INDEX):
            return {a.name: Theirs(a.array.shape, partial(np.asarray, a.array)) for a in recording.read(path).arrays}
        found = {name: _file(file) for name, file in _files(path)}
    elif path.suffix == ".npz":
        found = dict(_npz(path))
    elif path.suffix == ".safetensors":
        found = _safetensors(path)
    elif path.suffix == ".npy":
        found = {path.stem: _file(path)}
    else:
        raise DataError(
            f"{path} is no folder, .npz or .safetensors. Save your arrays with numpy.savez(FILE, **arrays)."
        )
    if not found:
        raise DataError(f"{path} has no arrays. Save each as NAME.npy, or all with numpy.savez(FILE, **arrays).")
    return found


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    files = sorted(folder.rglob("*.npy"))
    if len(files) > MOST_FILES:
        raise DataError(f"{folder} has more than {MOST_FILES:,} files. Name the folder of the arrays.")
    return ((file.relative_to(folder).with_suffix("").as_posix(), file) for file in files)


def _file(path: Path) -> Theirs:
    def at() -> IO[bytes]:
        return os.fdopen(open_regular(path), "rb")

    try:
        with at() as file:
            size = os.fstat(file.fileno()).st_size
        return _array(at, size, str(path))
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}. Check the path and its permissions.") from None


def _npz(path: Path) -> Iterator[tuple[str, Theirs]]:
    try:
        os.close(open_regular(path))
        with zipfile.ZipFile(path) as archive:
            members = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            if len(members) > MOST_FILES:
                raise ValueError(f"more than {MOST_FILES:,} arrays")
    except OSError as error:
        raise DataError(f"cannot read {path}: {reason(error)}. Check the path and its permissions.") from None
    except DAMAGED as error:
        raise _damaged(str(path), error) from None

    def at(entry: zipfile.ZipInfo) -> IO[bytes]:
        with zipfile.ZipFile(path) as archive:
            return archive.open(entry)

    for entry in members:
        name = entry.filename.removesuffix(".npy")
        yield name, _array(partial(at, entry), entry.file_size, f"{name[:80]} in {path}")


def _array(at: Callable[[], IO[bytes]], size: int, where: str) -> Theirs:
    """Return an array in NumPy's format, whose header agrees with its size; nothing is unpickled."""
    try:
        with at() as file:
            version = npy.read_magic(file)
            head = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, by_column, kind = head(file)
            begin = file.tell()
            if kind.hasobject or kind.kind not in "fiub":
                raise ValueError(f"it holds {kind}, not plain numbers")
            if begin + math.prod(shape) * kind.itemsize != size:
                raise ValueError(f"it has {size - begin:,} bytes for {math.prod(shape):,} numbers of {kind}")
    except DAMAGED as error:
        raise _damaged(where, error) from None

    def read() -> np.ndarray:
        try:
            with at() as file:
                file.seek(begin)
                flat = np.frombuffer(file.read(size - begin), kind)
            return flat.reshape(shape, order="F" if by_column else "C")
        except DAMAGED as error:
            raise _damaged(where, error) from None

    return Theirs(tuple(shape), read)


def _safetensors(path: Path) -> dict[str, Theirs]:
    with OpenFile(path) as file:
        try:
            stored = tensor_file.header(file.read, file.size, HEADER)
        except ValueError as error:
            raise _damaged(str(path), error) from None

    def read(name: str) -> np.ndarray:
        kind, place = stored[name].kind, stored[name]
        with OpenFile(path) as file:
            content = file.read(place.begin, place.size)
        if kind.symbol in ("F32", "F64"):
            return content.view("<f4" if kind.symbol == "F32" else "<f8").reshape(place.shape)
        return np.asarray(kind.floats(content), np.float16 if kind.size == 2 else None).reshape(place.shape)

    return {name: Theirs(place.shape, partial(read, name)) for name, place in stored.items()}


def _damaged(where: str, error: BaseException) -> DataError:
    what = brief(error, 100) if isinstance(error, Exception) and str(error) else "it is cut off"
    return DataError(f"{where} cannot be used: {what}. Save it again.")


def matched(theirs: Mapping[str, Theirs], ours: Recording) -> tuple[str, list[tuple[str, Theirs, Counterpart]]]:
    """Return the table whose names and shapes fit best, and by these names what each array of theirs is of ours.

    Raises DataError if no name is known.
    """
    found = {OWN: _found(theirs, ours, {})}
    for name, known in TABLES.items():
        found[name] = _found(theirs, ours, counterparts(ours, known))
    name = max(found, key=lambda table: (sum(fits for *_, fits, _ in found[table]), len(found[table])))
    best = [(theirs_name, array, counterpart) for theirs_name, array, _, counterpart in found[name]]
    if not best:
        first = next(iter(theirs))
        raise DataError(
            f"none of their {len(theirs)} names is known, such as {first[:80]!r}. Use the names of the trace's index, "
            f"or those of {', '.join(list(TABLES)[:3])} or transformers. {suggestion(first[:80], ours.by_name)}"
        )
    return name, best


def counterparts(ours: Recording, known: tuple[Fact, ...]) -> dict[str, Counterpart]:
    """Return what each name of a table is of ours: parameters, and what the modules that hold them return."""
    config = ours.config
    if config.kv_heads != config.n_heads and any(fact.by_head for fact in known):
        return {}
    named = {name for fact in (*known, *HEAD) for name in fact.ours}
    own = [Fact((name,), (name,)) for name in map(_pattern, parameter_shapes(config)) if name not in named]
    found = dict[str, Counterpart]()
    for piece in pieces(config, (*own, *HEAD, *known)):
        weight, *others = piece.ours
        if others:  # gate and up in one
            continue
        name = piece.theirs.replace(" ", ".")
        found[name] = Counterpart(weight, piece.columns, piece.transposed, piece.less)
        module = name.removesuffix(".weight")
        if module != name and module not in ours.by_name and weight != "wpe" and (made := _reader(ours, weight)):
            found[module] = Counterpart(made, None if weight == "wte" else piece.columns)
    if config.tied_embeddings:
        found.setdefault("lm_head.weight", Counterpart("wte"))
    return found


def _pattern(name: str) -> str:
    room, _, rest = name.partition(".")
    return f"blocks.*.{rest.partition('.')[2]}" if room == "blocks" else name


def _reader(ours: Recording, weight: str) -> str:
    return next((a.name for a in ours.arrays if weight in a.inputs and not a.name.startswith(GRAD)), "")


def _found(
    theirs: Mapping[str, Theirs], ours: Recording, known: Mapping[str, Counterpart]
) -> list[tuple[str, Theirs, bool, Counterpart]]:
    """Return their arrays whose names are known, whether the shape fits, and what they are of ours."""
    rows = []
    for name, array in _single(theirs, ours.config, known):
        kind, base = _kind(name)
        counterpart = Counterpart(name) if name in ours.by_name else known.get(base)
        if counterpart is None:
            continue
        if name not in ours.by_name and kind:
            less = counterpart.less if kind == "new" else 0
            counterpart = Counterpart(f"{kind}/{counterpart.ours}", counterpart.columns, counterpart.transposed, less)
        if counterpart.ours in ours.by_name:
            due = counterpart.part(ours.by_name[counterpart.ours].array).shape
            rows.append((name, array, array.shape == (due[::-1] if counterpart.transposed else due), counterpart))
    return rows


def _single(
    theirs: Mapping[str, Theirs], config: ModelConfig, known: Mapping[str, Counterpart]
) -> Iterator[tuple[str, Theirs]]:
    """Yield their arrays, those of all blocks in one, as llm.c has them, block by block."""
    for name, array in theirs.items():
        kind, base = _kind(name)
        if base in known or f"{base}.0" not in known or tuple(array.shape[:1]) != (config.n_layers,):
            yield name, array
            continue
        for i in range(config.n_layers):
            yield f"{kind}/{base}.{i}".lstrip("/"), Theirs(tuple(array.shape[1:]), partial(_block, array, i))


def _block(array: Theirs, i: int) -> np.ndarray:
    return array.read()[i]


def _kind(name: str) -> tuple[str, str]:
    """Return what kind of array a name says it is, "" for a value, and the name without it and without prefixes."""
    before, slash, rest = name.partition("/")
    kind, base = (KINDS.get(before, ""), rest) if slash and before in KINDS else ("", name)
    ending = base.rpartition(".")[2]
    if not kind and ending in ("grad", "exp_avg", "exp_avg_sq"):
        kind, base = KINDS[ending], base.removesuffix(f".{ending}")
    for prefix in PREFIXES:
        base = base.removeprefix(prefix)
    return kind, base


def as_ours(array: Theirs, counterpart: Counterpart, due: tuple[int, ...]) -> np.ndarray:
    """Return an array of theirs in our layout; its leading axes may be one, or all its axes."""
    found = array.read()
    if counterpart.transposed and found.ndim == 2:
        found = found.T
    rows = math.prod(due[:-1])
    if found.shape in ((math.prod(due),), (rows, *due[-1:])):
        found = found.reshape(due)
    return found + counterpart.less if counterpart.less else found
