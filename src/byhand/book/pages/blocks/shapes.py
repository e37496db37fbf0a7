"""A generated table of the parameters of the default model, with their shapes in letters."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from byhand.book.lessons.letters import PARAMETERS
from byhand.book.pages.blocks.markdown import Rows, inline, table_block
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.model import parameter_shapes

SEED = {"wte": "wte_", "wpe": "wpe_", "lm_head.w": "w_lm_", "lm_head.b": "b_lm_"}


class Letter(str):
    """A length by its letter, so that shapes can be asked for in letters: 3 * C is 3C."""

    def __rmul__(self, factor: Any) -> Letter:
        """Return the letter with its factor in front, unless that is 1."""
        return self if factor == 1 else Letter(f"{factor}{self}")


@table_block(
    "Parameter|Symbol|Shape|Default|Numbers|In the original program", "参数|符号|形状|默认值|个数|在原 C++ 程序中"
)
def parameters() -> Rows:
    """Every parameter of the default model: symbol, shape in letters and in numbers, how many numbers it holds."""
    config = ModelConfig()
    sizes = {"vocab_size": "V", "seq_len": "T_max", "d_model": "C", "head_width": "C", "ff_width": "F"}
    others = {
        name: getattr(config, name) for name in ("kv_heads", "gated", "layer_kinds")
    }  # with one head its width is C
    letters: Any = SimpleNamespace(**vars(config) | others | {name: Letter(letter) for name, letter in sizes.items()})
    shapes = parameter_shapes(config)
    for name, shape in parameter_shapes(letters).items():
        short = name.removeprefix("blocks.0.")
        seed = SEED.get(short, short.rpartition(".")[2])
        size, written = math.prod(shapes[name]), f"[{', '.join(map(str, shape))}]"
        yield f"`{name}`", inline(PARAMETERS[short]), written, list(shapes[name]), size, f"`{seed}`"
    yield Words("total", "合计"), "", "", "", sum(map(math.prod, shapes.values())), ""
