"""Changes of a model that is looked at: a number of a parameter, a head switched off, the mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from byhand.engine.terms import Index
from byhand.errors import DataError
from byhand.model import TinyGPT
from byhand.tracing.passes import resolved


@dataclass(frozen=True)
class Change:
    """One change: a parameter's element and its new value; or a block and one of its heads; or no causal mask."""

    name: str = ""
    index: Index = ()
    value: float = 0.0
    head: tuple[int, int] | None = None
    mask: bool = True


def changed(model: TinyGPT, changes: Sequence[Change]) -> TinyGPT:
    """Return the model after changes; DataError if it has no such parameter, block or head."""
    config, arrays = model.config, {name: tensor.data for name, tensor in model.parameters().items()}
    written: set[str] = set()

    def own(name: str) -> Any:
        if name not in arrays:
            raise DataError(f"{name!r} is not a parameter. Change one of the model's, such as wte[0,0].")
        if name not in written:
            arrays[name] = arrays[name].copy()
            written.add(name)
        return arrays[name]

    for change in changes:
        if not change.mask:
            config = replace(config, causal=False)
        elif change.head:
            block, head = change.head
            if not (0 <= block < config.n_layers and 0 <= head < config.n_heads):
                raise DataError(
                    f"there is no head {head} in block {block}. Blocks count to {config.n_layers - 1}, "
                    f"heads to {config.n_heads - 1}."
                )
            width = config.head_width  # a head adds nothing if its rows of the output projection are 0
            own(f"blocks.{block}.attn.w_proj")[head * width : (head + 1) * width] = 0
            if config.lora:
                raise DataError("a head of a model with adapters cannot be switched off. Merge them first.")
        else:
            array = own(change.name)
            array[resolved(change.name, change.index, array.shape)] = change.value
    return TinyGPT(config, arrays=arrays)
