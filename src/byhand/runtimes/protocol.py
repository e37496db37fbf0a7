"""The seam: what is asked of a runtime, and what a runtime answers.

A runtime makes training sessions and decoders. Model and optimizer stay ordinary objects: whichever runtime has
changed their arrays, they go by the same names, and another runtime can take over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from byhand.config import ModelConfig, TrainConfig, Weights
from byhand.runtimes.sampling import Sampling

Batch = tuple[Any, Any]  # tokens and targets, each (B, T)
Shape = tuple[int, int]  # (B, T)


@dataclass(frozen=True)
class Request:
    """What is to be computed and how: all that the choice of a runtime depends on, and all of its settings.

    runtime     a registered name, or "auto" for the fastest that can do it
    dtype       of arrays and arithmetic; bfloat16: float32, but linear layers multiply bfloat16
    threads     0: all cores
    blas        what multiplies, for runtimes that have a choice: auto, tiles, mkl, scipy
    weights     what generation reads
    cache       generation keeps keys and values
    streams     texts that are generated side by side
    operations  about how many; auto takes no runtime that takes longer to load than to compute them
    listed      the calls must be listed and timed one by one, as `byhand plan` does
    """

    use: Literal["train", "evaluate", "generate"]
    model: ModelConfig
    runtime: str = "auto"
    dtype: str = "float32"
    threads: int = 0
    blas: str = "auto"
    weights: Weights = "float32"
    cache: bool = True
    streams: int = 1
    operations: float = float("inf")
    listed: bool = False


def to_train(config: TrainConfig) -> Request:
    """Return what a training run asks for."""
    return Request("train", config.model, config.runtime, config.dtype, config.threads)


class Outcome(Protocol):
    """What a step computed; a runtime may wait for its device only when a number is read."""

    @property
    def loss(self) -> float:
        """The mean loss in nats, before the update."""
        ...

    @property
    def norm(self) -> float:
        """The gradient's global norm before clipping."""
        ...


class KnownOutcome(NamedTuple):
    """An outcome that is known when the step ends."""

    loss: float
    norm: float


class State(NamedTuple):
    """Arrays by parameter name, read-only; the next step may change what they show."""

    parameters: dict[str, np.ndarray]
    m: dict[str, np.ndarray]
    v: dict[str, np.ndarray]


def state_of(model: Any, optimizer: Any = None) -> State:
    """Return the arrays that model and optimizer hold."""
    moments = (optimizer.m, optimizer.v) if optimizer is not None else ({}, {})
    arrays = {name: p.data for name, p in model.parameters().items()}
    return State(*({name: _read_only(a) for name, a in part.items()} for part in (arrays, *moments)))


def _read_only(array: Any) -> np.ndarray:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


class TrainingSession(Protocol):
    """Steps and losses of one model and its optimizer.

    Before it computes, a session takes over arrays that were exchanged in model or optimizer since the last time.
    """

    @property
    def description(self) -> str:
        """How it computes, in some words."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Return what computes: the runtime's name, threads, libraries. Checkpoints keep it."""
        ...

    def prepare(self, steps: Sequence[Shape], losses: Sequence[Shape]) -> None:
        """Do what is done once for micro-batches and for losses of these shapes, such as compiling."""
        ...

    def step(self, batches: Sequence[Batch], max_norm: float) -> Outcome:
        """Make one update from the mean gradient of micro-batches, clipped to max_norm (0: never).

        Micro-batches may differ in rows and length: every token of the step counts the same. If loss or norm is not
        finite nothing is updated. However it ends, also by an interrupt, optimizer.t counts the step exactly if all
        parameters were updated.
        """
        ...

    def loss(self, tokens: Any, targets: Any, counted: int | None = None) -> float:
        """Return the mean loss of a batch in nats, or of the last `counted` targets of its rows."""
        ...

    def state(self) -> State:
        """Return the arrays as they are now."""
        ...


class Decoder(Protocol):
    """Continues streams of tokens; reads the model's weights anew when a text begins.

    made_by  how many tokens of each stream were drawn by how many threads
    """

    made_by: Counter[int]

    def generate(
        self, prompts: Sequence[Sequence[int]], count: int, sampling: Sampling, allowed: np.ndarray | None = None
    ) -> Iterator[np.ndarray]:
        """Yield ids (n, streams), as many at once as the runtime likes, until `count` of each stream are drawn.

        prompts  one of at least one id for each stream, all of one length
        allowed  booleans (V,): which ids may be drawn; None allows all

        Raises NonFiniteError where the logits are not finite.
        """
        ...


@dataclass(frozen=True)
class Line:
    """One call, or several of one kind: what it is, what it costs, and, after a timed run, how long it takes.

    ms, gflops, gb_per_s, share (of the step) and peak_share (of one core's measured peak) are None before.
    """

    kernel: str
    equation: str
    name: str
    shapes: str
    calls: int
    flops: int
    bytes: int
    ms: float | None = None
    gflops: float | None = None
    gb_per_s: float | None = None
    share: float | None = None
    peak_share: float | None = None


class Listing(NamedTuple):
    """What one thread runs: a line for each call, one for each kind of call, and where.

    ms    of all calls, if they were timed
    peak  GFLOP/s that one core reaches on products
    """

    what: str
    calls: list[Line]
    kinds: list[Line]
    ms: np.ndarray | None
    peak: float | None
    threads: int
    arena_bytes: int
    library: str


class Runtime(Protocol):
    """A way to compute. Its description imports nothing heavy: what computes is imported when it is used."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    def obstacle(self, request: Request) -> str:
        """Return in one line why it cannot do this, and what to do; "" if nothing is known to be in the way."""
        ...

    def session(self, model: Any, optimizer: Any, request: Request) -> TrainingSession:
        """Return a session; without an optimizer (None) it has no `step`."""
        ...

    def decoder(self, model: Any, request: Request) -> Decoder:
        """Return a decoder."""
        ...

    def listing(self, of: str, model: Any, optimizer: Any, request: Request, shape: Shape, steps: int) -> Listing:
        """Return the calls of a "train" step, of one token ("decode") or of "prefill", timed over so many steps.

        Only asked of a runtime that has no obstacle to a request with `listed`.
        """
        ...

    def kept(self, config: ModelConfig) -> int:
        """Return how many numbers a step keeps for the backward pass for each token, at the least."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """Return what `byhand doctor` says of it, by name."""
        ...
