"""Names of tensors in transformers' files, without prefixes and without the buffers of older files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from byhand.errors import DataError

BUFFERS = (
    r"h\.[0-9]+\.attn\.(masked_)?bias|layers\.[0-9]+\.(self_attn|attention)\.rotary_emb\.inv_freq|"
    r"layers\.[0-9]+\.attention\.(masked_)?bias|rotary_emb\.inv_freq|h\.[0-9]+\.attn\.attention\.(masked_)?bias"
)


def without_prefixes(path: Path, names: Iterable[Any], *prefixes: str) -> dict[str, Any]:
    """Return the names of a file's tensors, except buffers, by their names without prefixes.

    Raises DataError if a tensor has no name, or two have the same one.
    """
    found: dict[str, Any] = {}
    for stored in names:
        name = stored if isinstance(stored, str) else ""
        for prefix in prefixes:
            name = name.removeprefix(prefix)
        if not name or name in found:
            raise DataError(f"{path} has a tensor without a name, or a name twice. Use another copy.")
        found[name] = stored
    return {name: stored for name, stored in found.items() if not re.fullmatch(BUFFERS, name)}
