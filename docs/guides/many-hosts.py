"""What the page asks: parts that devices hold, bytes sent, constants of tests."""

import ast
import math
from dataclasses import replace
from typing import Any

from byhand.architectures import GPT2
from byhand.config import ModelConfig
from byhand.layers.parameter import Parameter
from byhand.model import BLOCKS, declared
from byhand.runtimes.xla.placing import held_shape, least_sent, part_shape
from pages.answers.numbers import vjp
from pages.blocks.markdown import located
from pictures.devices import EIGHT, axes_shown
from pictures.devices import SMALL as small
from where import syntax

gpt2_even = replace(GPT2, vocab_size=50304)  # a vocabulary that devices can divide
batch_rows, state_bytes = 8, 12  # a number, its moments: float32


def held(config: ModelConfig) -> tuple[list[tuple[str, ...]], int, int]:
    """Return the parameters on eight devices, and how many numbers there are and a device holds, in all blocks.

    Each parameter outside the blocks or of one block: its name, its shape, a device's part, the axes that divide it.
    """
    rows, whole, own = [], 0, 0
    for full, parameter in declared(config).items():
        part = part_shape(parameter, EIGHT)
        whole, own = whole + math.prod(parameter.shape), own + math.prod(part)
        if not full.startswith(BLOCKS) or full.startswith(f"{BLOCKS}.0."):
            shapes = (_shape(held_shape(parameter), parameter), _shape(part, parameter))
            rows.append((full.replace(f"{BLOCKS}.0.", f"{BLOCKS}.*."), *shapes, axes_shown(parameter, EIGHT)))
    return rows, whole, own


def _shape(shape: tuple[int, ...], parameter: Parameter) -> str:
    if parameter.packed == 1:
        return str(list(shape))
    *outer, packed, last = shape
    return f"[{', '.join([*map(str, outer), f'{packed} × {last}'])}]"


def sent(config: ModelConfig, rows: int) -> dict[tuple[str, str], float]:
    """Return the bytes that each of eight devices sends in a step, by exchange and axis."""
    return least_sent(config, EIGHT, (rows, config.seq_len))


def literal_of(place: str) -> Any:
    """Return the value that is assigned at a place, of the tests too, which are not imported."""
    return ast.literal_eval(syntax.statement(*located(place)).value)
