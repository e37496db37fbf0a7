"""Steps: the one seam between training and the runtime that computes it.

A runtime makes an update from micro-batches and measures a loss; model and optimizer stay ordinary objects, whose
arrays go by the same names whichever runtime has changed them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from byhand.config import TrainConfig
from byhand.engine import no_grad
from byhand.errors import ConfigError, DataError
from byhand.host import token_array
from byhand.model import TinyGPT
from byhand.optim import AdamW, clip_gradients, gradient_norm
from byhand.runtimes import loops

Batch = tuple[Any, Any]  # tokens and targets, each (B, T)
Shape = tuple[int, int]  # (B, T)


class Steps(Protocol):
    """A way to compute a training run."""

    def step(self, batches: Sequence[Batch], max_norm: float) -> tuple[float, float]:
        """Make one update from the mean gradient of micro-batches, clipped to max_norm (0: never).

        Micro-batches may differ in rows and length: every token of the step counts the same. Returns the mean loss
        in nats and the gradient's norm before clipping. If one of them is not finite nothing was updated.
        """
        ...

    def loss(self, tokens: Any, targets: Any) -> float:
        """Return the mean loss of a batch in nats."""
        ...

    def prepare(self, steps: Sequence[Shape], losses: Sequence[Shape]) -> None:
        """Do what is done once for micro-batches and for losses of these shapes, such as compiling loops."""
        ...


class TapeSteps:
    """The reference: record the graph with NumPy, walk back, apply AdamW."""

    def __init__(self, model: TinyGPT, optimizer: AdamW) -> None:
        self.model = model
        self.optimizer = optimizer

    def step(self, batches: Sequence[Batch], max_norm: float) -> tuple[float, float]:
        """Make one update; see `Steps`."""
        parameters, vocab = self.model.parameters(), self.model.config.vocab_size
        checked = [
            (token_array(tokens, vocab), token_array(targets, vocab, "targets")) for tokens, targets in batches
        ]
        if not checked:
            raise DataError("a step needs data, but there is no micro-batch. Pass at least one.")
        total = sum(tokens.size for tokens, _ in checked)
        self.model.zero_grad()
        losses = []
        for tokens, targets in checked:
            loss, weight = self.model.loss(tokens, targets), tokens.size / total
            losses.append(loss.item() * weight)
            if not math.isfinite(losses[-1]):
                return losses[-1], math.nan
            loss.backward(weight)
        norm = gradient_norm(parameters)
        if math.isfinite(norm):
            clip_gradients(parameters, norm, max_norm)
            self.optimizer.step(parameters)
        return math.fsum(losses), norm

    def loss(self, tokens: Any, targets: Any) -> float:
        """Return the mean loss of a batch without recording."""
        with no_grad():
            return self.model.loss(tokens, targets).item()

    def prepare(self, steps: Sequence[Shape], losses: Sequence[Shape]) -> None:
        """Nothing: NumPy computes any shape at once."""


def resolved(config: TrainConfig) -> TrainConfig:
    """Return the config with the runtime and threads that it will have on this machine.

    ConfigError if it asks for a runtime that cannot run here.
    """
    missing = loops.missing()
    if config.runtime == "loops" and missing:
        raise ConfigError(
            f"the loops runtime needs {' and '.join(missing)}. Use pip install 'byhand[fast]', or --runtime numpy."
        )
    if config.dtype == "bfloat16" and (missing or config.runtime == "numpy"):
        raise ConfigError(
            "bfloat16 needs the loops runtime and MKL. Use pip install 'byhand[fast,mkl]', or --dtype float32."
        )
    if config.dtype == "bfloat16":
        from byhand.runtimes.loops.machine.blas import find_blas, lacks_bfloat16

        if lack := lacks_bfloat16(find_blas()):
            raise ConfigError(lack)
    if config.runtime == "loops" and config.dtype == "float64":
        raise ConfigError("the loops runtime computes in float32, not float64. Use --runtime numpy.")
    fast = config.runtime != "numpy" and not missing and config.dtype != "float64"
    if not fast:
        return replace(config, runtime="numpy")
    return replace(config, runtime="loops", threads=config.threads or loops.cores())


def resumed(config: TrainConfig, used: Any) -> TrainConfig:
    """Return the config with which a run goes on that was computed with `used` (see `provenance`) so far.

    Where the number of threads was left open it stays what it was, if there are cores for it: then a resumed run has
    the same bits. Checkpoints without `used` hold what was used in the place of what was asked.
    """
    if not isinstance(used, dict):
        return replace(config, runtime="auto") if config.runtime == "loops" and loops.missing() else config
    threads = used.get("threads")
    if type(threads) is int and 1 <= threads <= loops.cores() and not config.threads:
        return replace(config, threads=threads)
    return config


def provenance(config: TrainConfig, steps: Steps) -> dict[str, Any]:
    """Return what computes a resolved config here, to be kept with its results."""
    if config.runtime != "loops":
        return {"runtime": config.runtime}
    blas: Any = getattr(steps, "blas", None)
    return {"runtime": config.runtime, "threads": config.threads, "blas": blas.name}


def difference(before: Any, now: dict[str, Any]) -> str:
    """Say in a line that a run goes on otherwise than it was computed so far; "" if it does not or nobody knows."""
    if not isinstance(before, dict) or before == now:
        return ""
    return (
        f"so far {_words(before)} computed this run, now {_words(now)} goes on: "
        "from here on losses may differ in their last digits from an uninterrupted run"
    )


def _words(used: dict[str, Any]) -> str:
    runtime, threads, blas = (str(used.get(key, ""))[:60] for key in ("runtime", "threads", "blas"))
    return f"{runtime} on {threads} threads ({blas})" if threads else f"{runtime or 'another runtime'}"


def make_steps(config: TrainConfig, model: TinyGPT, optimizer: AdamW, blas: str = "auto") -> Steps:
    """Return the steps of a resolved config; blas is "mkl", "scipy" or, for the faster of those there are, "auto"."""
    if config.runtime != "loops":
        return TapeSteps(model, optimizer)
    from byhand.runtimes.loops.run.training import LoopsRuntime

    return LoopsRuntime(model, optimizer, config.threads, blas, config.dtype)
