"""The interface of a runtime: requests, training sessions, decoders, listings.

Model and optimizer stay ordinary objects: every runtime updates the arrays under the same names, so another one can
take over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from byhand.config import ModelConfig, Recompute, TrainConfig, Weights
from byhand.runtimes.hosts import ProcessGroup
from byhand.runtimes.sampling import Sampling

Batch = tuple[Any, Any]  # tokens and targets, each (B, T)
Shape = tuple[int, int]  # (B, T)
ONE_PROCESSOR = "--mesh, --hosts and --recompute are for the xla runtime. Leave them out, or use --runtime xla."


@dataclass(frozen=True)
class Request:
    """The task and its settings: everything that the choice of a runtime depends on.

    runtime     a registered name, or "auto" for the fastest that can do it
    dtype       of arrays and arithmetic; bfloat16: float32, but linear layers multiply bfloat16
    threads     0: all cores
    blas        matrix products, for runtimes that have a choice: auto, tiles, mkl, scipy
    weights     type of the weights in generation
    cache       generation keeps keys and values
    streams     texts that are generated in parallel
    operations  estimate; auto skips a runtime that takes longer to load than to compute them
    mesh        devices along each axis, such as data=2,tensor=4; "": one device
    recompute   what is computed again on the way back instead of kept: nothing, cheap (all but products), blocks
    hosts       processes that compute together, each on its host
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
    mesh: str = ""
    recompute: Recompute = "nothing"
    hosts: int = 1
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
    """The result of a step; a runtime may wait for its device until a number is read."""

    @property
    def loss(self) -> float:
        """The mean loss in nats, before the update."""
        ...

    @property
    def norm(self) -> float:
        """The gradient's global norm before clipping."""
        ...


class KnownOutcome(NamedTuple):
    """An outcome that is complete when the step ends."""

    loss: float
    norm: float


class State(NamedTuple):
    """Arrays by parameter name, read-only; the next step may change their values."""

    parameters: dict[str, np.ndarray]
    m: dict[str, np.ndarray]
    v: dict[str, np.ndarray]
    averages: dict[str, np.ndarray]


def state_of(model: Any, optimizer: Any = None) -> State:
    """Return the arrays that model and optimizer hold."""
    kept = optimizer.state if optimizer is not None else ({}, {}, {})
    arrays = {name: p.data for name, p in model.parameters().items()}
    return State(*({name: _read_only(a) for name, a in part.items()} for part in (arrays, *kept)))


def _read_only(array: Any) -> np.ndarray:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


class TrainingSession(Protocol):
    """Steps and losses of one model and its optimizer.

    Before each computation a session takes over arrays that were replaced in model or optimizer.
    """

    @property
    def description(self) -> str:
        """A short text on how it computes."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Return the runtime's name, threads and libraries, as checkpoints keep them."""
        ...

    def prepare(self, steps: Sequence[Shape], losses: Sequence[Shape]) -> None:
        """Do the one-time work, such as compiling, for a step of these micro-batches and losses of these shapes."""
        ...

    def step(self, batches: Sequence[Batch], max_norm: float) -> Outcome:
        """Make one update from the mean gradient of micro-batches, clipped to max_norm (0: never).

        Micro-batches may differ in rows and length; every token has the same weight. A loss or norm that is not
        finite prevents the update. After any end, an interrupt included, optimizer.t has counted the step if and
        only if all parameters were updated.
        """
        ...

    def loss(self, tokens: Any, targets: Any, counted: int | None = None, average: bool = False) -> float:
        """Return the mean loss of a batch in nats, or of the last `counted` targets of its rows.

        average  with the optimizer's averages, once it has some, in place of the parameters
        """
        ...

    def state(self) -> State:
        """Return the arrays as they are now, and leave them in model and optimizer; all hosts must ask."""
        ...

    def own(self) -> State:
        """Return what this process saves: all arrays, or its parts of them (`files/parts.py`)."""
        ...

    def rows(self, count: int) -> slice:
        """Return which of so many rows of a batch this process reads; `step` and `loss` look at no others."""
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

        Raises NonFiniteError if logits are not finite.
        """
        ...


@dataclass(frozen=True)
class Line:
    """One call, or several of one kind: its cost and, after a timed run, its time.

    ms, gflops, gb_per_s, share (of the step) and peak_share (of one core's measured peak) are None without times.
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
    """The calls of one thread: a line for each call, and one for each kind of call.

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
    """A runtime's description. It imports nothing heavy; sessions and decoders load their modules on first use."""

    @property
    def name(self) -> str:
        """The name that users give."""
        ...

    def obstacle(self, request: Request) -> str:
        """Return in one line why it cannot do this, and what to do; "" if it can, as far as is known."""
        ...

    def suits(self, request: Request) -> bool:
        """Return whether `auto` should think of it on this machine."""
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

    def join(self, hosts: str, run: str, patience: float, ended: Callable[[str], None]) -> ProcessGroup:
        """Join the processes that `hosts` describes; see `ProcessGroup`.

        run       what they train, by a name: hosts of another run are refused
        patience  seconds after which a host that does not answer is given up
        ended     called with a line, by another thread, when another host is gone
        """
        ...

    def facts(self) -> Mapping[str, Any]:
        """Return the lines of `byhand doctor`, by name."""
        ...
