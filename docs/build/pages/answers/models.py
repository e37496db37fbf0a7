"""Answers about models: settings, sizes of parameters, architectures, and what adapters train and keep."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

from byhand.architectures import ARCHITECTURES, GPT2
from byhand.book.lessons.letters import PARAMETERS
from byhand.book.words.language import Words
from byhand.config import ModelConfig, OptimConfig, TrainConfig
from byhand.errors import ByhandError
from byhand.files.run_folder import MODEL
from byhand.layers.adapter import DOWN, UP
from byhand.model import declared, parameter_shapes
from byhand.runs.contents import BASE, OPTIMIZER, due
from byhand.update_rules import state_size
from pages.answers.registry import ANSWERS, answer
from where.commands import flags

PUBLISHED = replace(GPT2, vocab_size=50_257)
"""GPT-2 with the vocabulary that it was published with: 124 million parameters."""
VOCABULARIES = (256, 50_257, 49_152, 151_936, 256)  # bytes, or that of the published tokenizer
SEED = {"wte": "wte_", "wpe": "wpe_", "lm_head.w": "w_lm_", "lm_head.b": "b_lm_"}
LETTERS = {"vocab_size": "V", "seq_len": "T_max", "d_model": "C", "head_width": "C", "ff_width": "F"}

ANSWERS |= {"OptimConfig": OptimConfig, "default": ModelConfig(), "gpt2": PUBLISHED, "declared": declared}


@answer
def architectures() -> list[ModelConfig]:
    """Return the default model and the architectures, each with its vocabulary."""
    shapes = [ModelConfig(), *ARCHITECTURES.values()]
    return [replace(config, vocab_size=v) for config, v in zip(shapes, VOCABULARIES, strict=True)]


@answer
def count(config: ModelConfig, names: Iterable[str] = ()) -> int:
    """Return how many numbers the parameters of these names hold, or all parameters."""
    shapes = parameter_shapes(config)
    return sum(math.prod(shapes[name]) for name in [*names] or shapes)


@answer
def sizes_of(kinds: Iterable[str], *configs: Any) -> list[list[int]]:
    """Return a row for each kind of parameter and one of totals: how many numbers of this kind each model has.

    kinds  patterns of parameters' names; ByhandError unless each parameter is of one kind
    """
    columns = []
    for config in configs:
        sizes = {name: math.prod(shape) for name, shape in parameter_shapes(config).items()}
        found = [sum(n for name, n in sizes.items() if re.fullmatch(kind, name)) for kind in kinds]
        if sum(found) != sum(sizes.values()):
            raise ByhandError(f"some of these parameters are of no kind, or of two: {', '.join(sizes)}")
        columns.append([*found, sum(found)])
    return [list(row) for row in zip(*columns, strict=True)]


@answer
def settings() -> list[tuple[str, Any, Words]]:
    """Return the settings of a model: field, default, and the help of its flag."""
    return [(f.name, f.default, flags()[f"--{f.name.replace('_', '-')}"].help) for f in fields(ModelConfig)]


@answer
def adapted(model: ModelConfig) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield each matrix of the first block that has an adapter: name, shape, numbers of the adapter."""
    found = declared(model)
    for name in (n for n in found if n.startswith("blocks.0.") and n + DOWN in found):
        thin = sum(math.prod(found[name + end].shape) for end in (DOWN, UP))
        yield name.removeprefix("blocks.0."), found[name].shape, thin


@answer
def kept(model: ModelConfig) -> tuple[int, int, int, int]:
    """Return how many numbers are trained, kept for it, in a checkpoint, and once for all checkpoints."""
    config = TrainConfig(model=model)
    stored = {name: sum(map(math.prod, arrays.values())) for name, arrays in due(config).items()}
    trained = sum(math.prod(p.shape) for p in declared(model).values() if p.trained)
    moments = state_size(OptimConfig(), declared(model))
    return trained, trained + moments, stored[MODEL] + stored[OPTIMIZER], stored.get(BASE, 0)


class Letter(str):
    """A length by its letter, so that shapes can be asked for in letters: 3 * C is 3C."""

    def __rmul__(self, factor: Any) -> Letter:
        """Return the letter with its factor in front, unless that is 1."""
        return self if factor == 1 else Letter(f"{factor}{self}")


@answer
def parameters_in_letters() -> Iterator[tuple[str, str, tuple[Any, ...], tuple[int, ...], str]]:
    """Yield the default model's parameters: name, symbol, shape in letters and in numbers, the original's name."""
    config, shapes = ModelConfig(), parameter_shapes(ModelConfig())
    own = vars(config) | {name: getattr(config, name) for name in ("kv_heads", "gated", "layer_kinds")}
    letters: Any = SimpleNamespace(**own | {name: Letter(letter) for name, letter in LETTERS.items()})
    for name, shape in parameter_shapes(letters).items():
        short = name.removeprefix("blocks.0.")
        yield name, PARAMETERS[short], shape, shapes[name], SEED.get(short, short.rpartition(".")[2])
