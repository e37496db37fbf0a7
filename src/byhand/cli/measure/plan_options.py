"""The flags of `byhand plan`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from byhand.bench.shapes import OFFERED, Blas
from byhand.cli.arguments.settings import Positional, Switch
from byhand.config import Recompute
from byhand.engine.equation import with_role
from byhand.formats.names import Multiplied, Weights


@dataclass(frozen=True)
class Options:
    """Say what a run takes: memory, the time of a training step and of a token. Without a run, show a plan: every
    kernel call of a training step's first share, or of generation's first thread, timed."""

    run: Positional[Path | None] = None
    """A run folder, or one of its checkpoints. An imported model is planned as --init-from tunes it."""
    of: Literal["train", "decode", "prefill"] = "train"
    """train: a training step. decode: one token in the middle of the window. prefill: the cache of a whole window."""
    shape: str = "nano"
    """tiny, nano, small, or B,T,C[/F],L,H[/K],V (generation does not use B)."""
    architecture: Literal[OFFERED] = "plain"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """plain: the model's default settings; or the architecture of a preset."""
    steps: int = 20
    """Timed steps; the least time of each call counts. 0 shows the plan without running it."""
    threads: int = 0
    """Shares of the batch, or threads in generation; 0: all cores."""
    blas: Blas = "auto"
    """Matrix products: register tiles or a library; auto takes the fastest."""
    dtype: Multiplied = "float32"
    """Type of the inputs of linear layers in training."""
    activation: Literal[with_role("activation")] | None = None  # pyright: ignore[reportInvalidTypeForm]  (late)
    """Non-linearity of the MLP; the architecture's if not given."""
    optimizer: Literal[with_role("update")] = "adamw"  # pyright: ignore[reportInvalidTypeForm]  (late)
    """How training updates parameters."""
    streams: int = 1
    """Texts that are generated side by side."""
    weights: Weights = "float32"
    """Type of the weights that generation reads, also of a run."""
    mesh: str = ""
    """What each device of a mesh holds, computes and sends in a training step; such as data=8,fsdp=8,tensor=1."""
    machine: Literal["none", "a100", "h100", "h200"] = "none"
    """With --mesh: its devices, which this machine need not have; none shows no times."""
    per_host: int = 8
    """With --mesh: devices per host."""
    recompute: Recompute = "nothing"
    """With --mesh: what the backward pass recomputes instead of keeping it."""
    every_call: Switch = False
    """One line for each call, in the order in which they run, instead of one for each kind."""
    json: Switch = False
    """Print one JSON object."""
    plot: Path | None = None
    """Draw the times as bars into this PNG or SVG (needs matplotlib)."""
