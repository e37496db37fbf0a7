"""Writing a model like a given GGUF: its bytes for unchanged tensors, its types for the others."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from byhand.files.weights import Stored
from byhand.formats.format import Format
from byhand.interop.gguf.file import GGUF
from byhand.interop.tensors import TensorPart

log = logging.getLogger(__name__)
FILE_TYPE = "general.file_type"


def matched(file: GGUF, theirs: Iterable[tuple[TensorPart, np.ndarray]]) -> tuple[dict[str, Format], set[str]]:
    """Return a file's types for a model's tensors, by name, and the names of those that keep their bytes.

    These unpack to the same numbers, bit for bit. A changed tensor keeps its type if it can be packed in it.
    """
    given, kept = dict[str, Format](), set[str]()
    for part, x in theirs:
        if (stored := file.tensors.get(part.theirs)) is None:
            continue
        kind = stored.kind
        if stored.shape == x.shape and np.array_equal(file.read(part.theirs).view(np.uint32), x.view(np.uint32)):
            kept.add(part.theirs)
        elif kind.pack is None or x.shape[-1] % kind.block or np.abs(x).max() > kind.largest:
            continue
        given[part.theirs] = kind
    return given, kept


def summary(file: GGUF, tensors: Mapping[str, Stored], kept: set[str]) -> dict[str, Any]:
    """Log how many tensors keep their bytes; return the file's type key if most tensors have its types."""
    others = sorted({tensor.kind.symbol for name, tensor in tensors.items() if name not in kept})
    rest = f"; the others are written as {', '.join(others)}" if others else ""
    log.info("%d of %d tensors keep their bytes from %s%s", len(kept), len(tensors), file.file.path, rest)
    alike = sum(name in file.tensors and file.tensors[name].kind is tensor.kind for name, tensor in tensors.items())
    said = file.keys.get(FILE_TYPE)
    return {FILE_TYPE: said} if 2 * alike > len(tensors) and type(said) is int and 0 <= said < 1 << 32 else {}
