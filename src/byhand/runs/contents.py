"""The contents of a checkpoint, and its files: their names and bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from byhand.config import TrainConfig, from_dict, to_dict
from byhand.errors import ByhandError, CheckpointError, brief
from byhand.files.parts import place_of, shape_of
from byhand.files.reading import SMALL, parse_json
from byhand.files.run_folder import MANIFEST, MODEL
from byhand.files.sealed import Content, as_json
from byhand.files.tensor_file import blocks
from byhand.layers.adapter import merged
from byhand.layers.parameter import flat
from byhand.model import TinyGPT, declared
from byhand.optim import Optimizer
from byhand.schedule import learning_rate
from byhand.tokenizers.byte import BYTES, ByteTokenizer
from byhand.tokenizers.registry import stored
from byhand.tokenizers.tokenizer import Tokenizer
from byhand.update_rules import state_shapes

CONFIG, OPTIMIZER, STATE = "config.json", "optimizer.safetensors", "trainer_state.json"
AVERAGE = "average.safetensors"  # of the weights, in runs with --ema
BASE = "base.safetensors"  # the frozen weights, in runs with --lora: one file for all checkpoints, by hard links
TOKENIZER, DIGEST = "tokenizer.json", "tokenizer"  # the file, and the state's key for its SHA-256
FILES = (MODEL, CONFIG, OPTIMIZER, STATE)  # of a checkpoint that one process wrote, without averages
PARTS = re.compile(r"(model|optimizer|average|base)-([0-9]{5})-of-([0-9]{5})\.safetensors")  # where several did
PARTS_OF_BASE = re.compile(r"base(-[0-9]{5}-of-[0-9]{5})?\.safetensors")
OURS = re.compile("|".join([*map(re.escape, (MANIFEST, *FILES, AVERAGE, BASE, TOKENIZER)), PARTS.pattern]))


@dataclass
class Checkpoint:
    """What a run needs to go on: settings, parameters, moments, the trainer's state, the text's tokenizer.

    moments   the arrays of the optimizer's state, by kind and parameter
    averages  moving averages of the parameters, of a run with --ema after its first step
    finite    whether all numbers of the arrays are known to be finite
    """

    config: TrainConfig
    parameters: Mapping[str, np.ndarray]
    moments: Mapping[str, Mapping[str, np.ndarray]]
    state: dict[str, Any]
    path: Path | None = None
    tokenizer: Tokenizer = BYTES
    averages: Mapping[str, np.ndarray] = field(default_factory=dict)
    finite: bool = False

    @property
    def step(self) -> int:
        """The number of updates made."""
        return self.state["step"]

    @property
    def best(self) -> tuple[int, float] | None:
        """The step with the lowest validation loss so far, and the loss, of a run with --keep-best."""
        found = self.state.get("best")
        step, loss = (found.get("step"), found.get("val/loss")) if isinstance(found, dict) else (None, None)
        return (step, loss) if type(step) is int and isinstance(loss, float) else None

    @property
    def of_average(self) -> str:
        """How its weights are averaged; "" if they are not."""
        return f"weights averaged with decay {self.config.optim.ema:g}" if self.averages else ""

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a text: the tokenizer's, and the end of a document if the run learnt it."""
        learnt = {self.tokenizer.end} if "training_documents" in self.state.get("text", {}) else set[int]()
        return frozenset(self.tokenizer.conventions.ends) | learnt

    def model(self, average: bool = True) -> TinyGPT:
        """Return the model; CheckpointError if the arrays do not have the shapes that the config says.

        average  with the averaged weights if there are any, instead of those of the last step
        """
        try:
            return TinyGPT(self.config.model, arrays=(average and self.averages) or self.parameters)
        except ByhandError as error:
            raise CheckpointError(f"{self.path or 'the checkpoint'}: {error}") from None

    def optimizer(self) -> Optimizer:
        """Return the run's optimizer as it stands before the next step."""
        settings = self.config.optim
        made = Optimizer(settings, declared(self.config.model))
        made.lr = learning_rate(settings, self.step, self.config.steps)
        made.t = self.step
        made.restore(self.moments, {})
        return made

    def merged(self) -> Checkpoint:
        """Return it with its adapters merged into the weights; as it is if it has none."""
        if not self.config.model.lora:
            return self
        model, arrays = merged(self.config.model, self.parameters)
        return replace(self, config=replace(self.config, model=model), parameters=arrays, moments={})

    def first_non_finite(self) -> str | None:
        """Return the first array with NaN or infinity, in words; None if there is none."""
        moments = {f"moment {kind} of ": arrays for kind, arrays in self.moments.items()}
        for what, arrays in {"": self.parameters, **moments, "the average of ": self.averages}.items():
            for name, array in arrays.items():
                if not np.isfinite(array).all():
                    return f"{what}{name}"
        self.finite = True
        return None

    def forget(self) -> None:
        """Drop the arrays, so that a model taken from here holds the only ones, and may move them."""
        self.parameters, self.moments, self.averages = {}, {}, {}


def part_name(whole: str, index: int, count: int) -> str:
    """Return the name of the file with one process's part."""
    return whole.replace(".", f"-{index + 1:05d}-of-{count:05d}.") if count > 1 else whole


def part_files(names: list[str], whole: str) -> list[str]:
    """Return the files of all arrays of a kind: one, or the parts that each process wrote; [] if any is missing."""
    files = sorted(n for n in names if (m := PARTS.fullmatch(n)) and m[1] == whole.removesuffix(".safetensors"))
    if whole in names:
        return [] if files else [whole]
    return files if files == [part_name(whole, i, len(files)) for i in range(len(files))] else []


def due(config: TrainConfig) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the shapes of each file's arrays, by name: saving writes exactly these, and loading requires them."""
    parameters = declared(config.model)
    shapes = {name: parameter.shape for name, parameter in parameters.items() if parameter.trained}
    frozen = {name: parameter.shape for name, parameter in parameters.items() if not parameter.trained}
    found = {MODEL: shapes, OPTIMIZER: state_shapes(config.optim, parameters)}
    return found | ({AVERAGE: shapes} if config.optim.ema else {}) | ({BASE: frozen} if frozen else {})


def may_be_empty(whole: str, step: int) -> bool:
    """Return whether a file may hold no array: before the first update there are no moments and averages."""
    return step == 0 and whole not in (MODEL, BASE)


def _require_due(
    whole: str, arrays: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], made: Checkpoint, parts: bool
) -> None:
    """Raise CheckpointError for an array that loading would miss or refuse.

    parts  the arrays are one process's parts
    """
    if not arrays and (parts or may_be_empty(whole, made.step)):
        return
    try:
        for key, array in arrays.items():
            shape = shape_of(place_of(key, shapes)[1])
            if (tuple(array.shape), str(array.dtype)) != (shape, made.config.array_dtype):
                raise ValueError(f"{key} is {array.shape} {array.dtype}, not {shape} {made.config.array_dtype}")
        for missing in () if parts else shapes.keys() - arrays.keys():
            raise ValueError(f"it lacks {missing}")
    except ValueError as error:
        raise CheckpointError(f"{whole} could not be read again: {brief(error, 200)}; it was not saved.") from None


def contents(checkpoint: Checkpoint, index: int = 0, count: int = 1) -> dict[str, Content]:
    """Return the files that one of `count` processes writes, except the manifest.

    Raises CheckpointError for what loading would refuse.
    """
    if not checkpoint.finite and (name := checkpoint.first_non_finite()):
        raise CheckpointError(f"{name} holds NaN or infinity; it was not saved.")
    shapes_of = due(checkpoint.config)
    frozen = {n: a for n, a in checkpoint.parameters.items() if n.partition("[")[0] in shapes_of.get(BASE, ())}
    kinds = {
        MODEL: {n: a for n, a in checkpoint.parameters.items() if n not in frozen},
        BASE: frozen,
        OPTIMIZER: flat(checkpoint.moments),
        AVERAGE: checkpoint.averages,
    }
    found: dict[str, Content] = {}
    for whole, shapes in shapes_of.items():
        _require_due(whole, kinds[whole], shapes, checkpoint, parts=count > 1)
        found[part_name(whole, index, count)] = list(blocks(kinds[whole]))
    checkpoint.tokenizer.require_vocabulary(checkpoint.config.model.vocab_size)
    if index == 0:
        small = {CONFIG: _config(checkpoint.config), STATE: _state(checkpoint)}
        if not isinstance(checkpoint.tokenizer, ByteTokenizer):
            small[TOKENIZER] = stored(checkpoint.tokenizer)
        found |= {name: [content] for name, content in small.items()}
    return found


def _config(config: TrainConfig) -> bytes:
    """Return the settings as they are stored; CheckpointError if they could not be read again."""
    try:
        written = as_json(to_dict(config))
        from_dict(TrainConfig, parse_json(written), CONFIG)
    except (TypeError, ValueError, ByhandError) as error:
        raise CheckpointError(f"the settings cannot be stored as JSON: {brief(error, 200)}.") from None
    return written


def _state(checkpoint: Checkpoint) -> bytes:
    """Return the state as it is stored; CheckpointError if it could not be read again."""
    state = {key: value for key, value in checkpoint.state.items() if key != DIGEST}
    if not isinstance(checkpoint.tokenizer, ByteTokenizer):
        state[DIGEST] = checkpoint.tokenizer.digest
    try:
        written = as_json(state)
        parse_json(written)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"the trainer's state cannot be stored as JSON: {brief(error, 200)}.") from None
    if len(written) > SMALL:
        raise CheckpointError(f"the trainer's state has {len(written):,} bytes, more than the {SMALL:,} it may have.")
    return written
