"""What the page asks: the settings and parameters of a model; the papers and books that equations are taken from."""

import re
from collections.abc import Iterator
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

from byhand.book.finding import flow
from byhand.book.lessons.letters import PARAMETERS
from byhand.book.words.language import Words
from byhand.config import ModelConfig
from byhand.model import parameter_shapes
from where.commands import flags
from where.index import findings

SEED = {"wte": "wte_", "wpe": "wpe_", "lm_head.w": "w_lm_", "lm_head.b": "b_lm_"}
LETTERS = {"vocab_size": "V", "seq_len": "T_max", "d_model": "C", "head_width": "C", "ff_width": "F"}


def settings() -> list[tuple[str, Any, Words]]:
    """Return the settings of a model: field, default, and the help of its flag."""
    return [(f.name, f.default, flags()[f"--{f.name.replace('_', '-')}"].help) for f in fields(ModelConfig)]


class Letter(str):
    """A length by its letter, so that shapes can be asked for in letters: 3 * C is 3C."""

    def __rmul__(self, factor: Any) -> "Letter":
        """Return the letter with its factor in front, unless that is 1."""
        return self if factor == 1 else Letter(f"{factor}{self}")


def parameters_in_letters() -> Iterator[tuple[str, str, tuple[Any, ...], tuple[int, ...], str]]:
    """Yield the default model's parameters: name, symbol, shape in letters and in numbers, the original's name."""
    config, shapes = ModelConfig(), parameter_shapes(ModelConfig())
    own = vars(config) | {name: getattr(config, name) for name in ("kv_heads", "gated", "layer_kinds")}
    letters: Any = SimpleNamespace(**own | {name: Letter(letter) for name, letter in LETTERS.items()})
    for name, shape in parameter_shapes(letters).items():
        short = name.removeprefix("blocks.0.")
        yield name, PARAMETERS[short], shape, shapes[name], SEED.get(short, short.rpartition(".")[2])


def works() -> dict[str, list[str]]:
    """Return the papers and books, each with the equations that are taken from it."""
    found: dict[str, list[str]] = {}
    for stem in flow.order():
        work = re.sub(r",? (section|equation) .*", "", findings()[stem].source)
        if re.search(r"\d{4}", work):
            found.setdefault(work, []).append(stem)
    return found
