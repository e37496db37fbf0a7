"""The interface of a runtime: requests, training sessions, decoders, listings of a plan's calls.

Model and optimizer stay ordinary objects: every runtime updates the arrays under the same names, so another one can
take over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from byhand.config import ModelConfig, Recompute, TrainConfig
from byhand.errors import ConfigError
from byhand.formats.names import Weights
from byhand.optim import State
from byhand.runtimes.process_group import ProcessGroup
from byhand.runtimes.streams import Stream

Batch = tuple[Any, Any]  # tokens and targets, each (B, T)
Shape = tuple[int, int]  # (B, T)
ONE_PROCESSOR = "--mesh, --hosts and --recompute are for the xla runtime. Leave them out, or use --runtime xla."


@dataclass(frozen=True)
class Request:
    """The task and its settings: everything that the choice of a runtime depends on.

    runtime     a registered name, or "auto" for the fastest suitable one
    dtype       of arrays and arithmetic; a type that NumPy lacks: of matmul inputs only, the rest is float32
    threads     0: all cores
    blas        implementation of matrix products, for runtimes with a choice: auto, tiles, scipy
    weights     type of the weights in generation and evaluation
    cache       generation uses a KV cache
    streams     texts generated side by side: the decoder's slots
    operations  estimate; auto skips a runtime that takes longer to load than NumPy to compute
    mesh        devices along each axis, such as data=2,tensor=4; "": one device
    recompute   what the backward pass recomputes to save memory: nothing, cheap (all but products), blocks
    hosts       number of processes that compute together, one per host
    moves       nothing else uses the model's arrays: a runtime that repacks weights may free them
    listed      calls must be listed and timed one by one, as for `byhand plan`
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
    mesh: str = ""
    recompute: Recompute = "nothing"
    hosts: int = 1
    moves: bool = False
    listed: bool = False


def to_train(config: TrainConfig) -> Request:
    """Return the request of a training run."""
    return Request(
        "train",
        config.model,
        config.runtime,
        config.dtype,
        config.threads,
        mesh=config.mesh,
        recompute=config.recompute,
    )


class Outcome(Protocol):
    """The result of a step; reading a number may wait for the device."""

    @property
    def loss(self) -> float:
        """The mean loss in nats, before the update."""
        ...

    @property
    def norm(self) -> float:
        """The gradient's global norm before clipping."""
        ...


class TrainingSession(Protocol):
    """Steps and losses of one model and its optimizer.

    Before each computation a session picks up arrays that were replaced in model or optimizer.
    """

    @property
    def description(self) -> str:
        """A short text on how it computes."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Return the runtime's name, threads and libraries, as stored in checkpoints."""
        ...

    def prepare(self, steps: Sequence[Shape], losses: Sequence[Shape]) -> None:
        """Do the one-time work, such as compiling, for a step of these micro-batches and losses of these shapes."""
        ...

    def step(self, batches: Sequence[Batch], max_norm: float) -> Outcome:
        """Make one update from the mean gradient of micro-batches, clipped to max_norm (0: never).

        Micro-batches may differ in rows, length and number of targets (-1: none); every target has the same weight.
        If the loss or norm is not finite, there is no update. Even after an interrupt, optimizer.t has counted the
        step if and only if all parameters were updated.
        """
        ...

    def loss(self, tokens: Any, targets: Any, counted: int | None = None, average: bool = False) -> float:
        """Return the mean loss of a batch in nats, or of the last `counted` targets of its rows.

        average  use the optimizer's averaged parameters, once it has them
        """
        ...

    def row_losses(self, tokens: Any, targets: Any, counted: np.ndarray) -> np.ndarray:
        """Return the summed loss of the targets marked in `counted` (B, T), for each row, in nats (B,)."""
        ...

    def state(self) -> State:
        """Return the current arrays and store them in model and optimizer; all hosts must call it."""
        ...

    def own(self) -> State:
        """Return the arrays that this process saves: all, or its parts of them (`files/parts.py`)."""
        ...

    def rows(self, count: int) -> slice:
        """Return the slice of a batch's `count` rows that this process reads; `step` and `loss` ignore the rest."""
        ...


class Decoder(Protocol):
    """Slots that each generate one stream; `generation.engine` fills them.

    A runtime that gives logits extends `LogitsDecoder` (`runtimes/streams.py`), which draws one token a step. One
    that draws inside its plan (loops, xla: a step is a run of tokens in one call) gives tokens itself, but those of
    a stream with `Stream.by_hand`: then a step is one token.

    With loops and numpy a stream's tokens and log-probabilities are to the bit those that it has alone, whatever is
    in the other slots. With xla they are to rounding: its products depend on the number of slots and on the padding.

    slots    capacity in streams
    stale    weights are unread or have changed; they are read when a stream begins and all slots are free
    made_by  number of tokens of each stream, by the number of threads that drew them
    reading  slots whose prompts are not read yet, and how many positions are
    filled   positions that were read into caches many at once: what was in a text before a token of it was drawn
    """

    slots: int
    stale: bool
    reading: dict[int, int]
    made_by: Counter[int]
    filled: int

    def admit(self, slot: int, stream: Stream, kept: int = 0) -> None:
        """Begin a stream in a free slot; `read` reads its prompt.

        kept  number of leading tokens already in the slot's cache, fewer than all; the text fits the cache
        """
        ...

    def read(self) -> None:
        """Read a piece of a prompt, those of the streams that were admitted first, and score it (`Stream.score`).

        Prompts that have no more positions together than a piece are read in one call.
        """
        ...

    def step(self, most: int) -> None:
        """Give each stream that is read its next tokens (`Stream.take`): as many as suit the runtime, 1 to `most`.

        Every stream has at least `most` left.
        """
        ...

    def free(self, slot: int) -> int:
        """Release a slot, its stream finished or not; return the number of positions in its cache.

        The cache stays intact until the slot is used again, whatever other slots do.
        """
        ...


@dataclass(frozen=True)
class Line:
    """One call, or the sum of all calls of one kind.

    ms, gflops, gb_per_s, share (of the step), peak_share (of one core's measured peak) and read_share (of a thread's
    measured read bandwidth) are None without times; read_share also in training.
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
    read_share: float | None = None


class Listing(NamedTuple):
    """The calls of one thread: a line for each call, and one for each kind of call.

    ms    sum over all calls, if timed
    peak  GFLOP/s of one core on matrix products
    read  GB/s per thread with all threads reading memory, in generation
    row   ms per token when tokens are generated in a row, for listings of one token
    """

    what: str
    calls: list[Line]
    kinds: list[Line]
    ms: np.ndarray | None
    peak: float | None
    threads: int
    arena_bytes: int
    library: str
    read: float | None = None
    row: float | None = None


class Runtime(ABC):
    """A runtime's description. It imports nothing heavy; sessions and decoders load their modules on first use.

    name      the name that users give
    loaded    bytes of the process with its libraries, before any array
    replaces  when an update holds old and new copies of all parameters and their state: with the step's working set
              still allocated, after it is freed, or never
    packs     whether a decoder stores weights in the requested format, and can read them from their file one by one
    """

    name: str
    loaded: int
    replaces: Literal["during", "after", ""] = ""
    packs: bool = False

    @abstractmethod
    def obstacle(self, request: Request) -> str:
        """Return in one line why it cannot serve the request and what to do; "" if nothing known prevents it."""

    def suits(self, request: Request) -> bool:
        """Return whether `auto` should consider it on this machine."""
        return True

    @abstractmethod
    def session(self, model: Any, optimizer: Any, request: Request) -> TrainingSession:
        """Return a session; without an optimizer (None) it cannot `step`."""

    @abstractmethod
    def decoder(self, model: Any, request: Request) -> Decoder:
        """Return a decoder."""

    def listing(self, of: str, model: Any, optimizer: Any, request: Request, shape: Shape, steps: int) -> Listing:
        """Return the calls of a "train" step, of one token ("decode") or of "prefill", timed over `steps`.

        Raises ConfigError if the runtime cannot serve a `listed` request.
        """
        raise ConfigError(self.obstacle(replace(request, listed=True)))

    @abstractmethod
    def working_bytes(self, request: Request, shape: Shape) -> int:
        """Return a lower bound in bytes for a step or evaluation on tokens of this shape, from the recorded graph.

        Excludes parameters, their gradients and the optimizer's state.
        """

    def room(self) -> int | None:
        """Return the bytes available on its devices; None: arrays live in this machine's memory."""
        return None

    def join(self, hosts: str, run: str, patience: float, ended: Callable[[str], None]) -> ProcessGroup:
        """Join the processes that `hosts` describes; see `ProcessGroup`. ConfigError if it computes in one process.

        run       name of what they train: hosts of another run are refused
        patience  seconds until an unresponsive host counts as lost
        ended     called with a message, from another thread, when another host is lost
        """
        raise ConfigError(ONE_PROCESSOR)

    def facts(self) -> Mapping[str, Any]:
        """Return the lines of `byhand doctor`, by name."""
        return {}
