"""What the page asks: the parameters of a model."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from byhand.book.lessons.letters import PARAMETERS
from byhand.config import ModelConfig
from byhand.model import parameter_shapes

LETTERS = {"vocab_size": "V", "seq_len": "T_max", "d_model": "C", "head_width": "C", "ff_width": "F"}


class Letter(str):
    """A length by its letter, so that shapes can be asked for in letters: 3 * C is 3C."""

    def __rmul__(self, factor: Any) -> "Letter":
        """Return the letter with its factor in front, unless that is 1."""
        return self if factor == 1 else Letter(f"{factor}{self}")


def parameters_in_letters() -> Iterator[tuple[str, str, tuple[Any, ...], tuple[int, ...]]]:
    """Yield the default model's parameters: name, symbol, shape in letters and in numbers."""
    config, shapes = ModelConfig(), parameter_shapes(ModelConfig())
    own = vars(config) | {name: getattr(config, name) for name in ("kv_heads", "gated", "layer_kinds")}
    letters: Any = SimpleNamespace(**own | {name: Letter(letter) for name, letter in LETTERS.items()})
    for name, shape in parameter_shapes(letters).items():
        yield name, PARAMETERS[name.removeprefix("blocks.0.")], shape, shapes[name]
