"""The loops runtime's description: what it can do, without importing Numba; creates sessions and decoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from byhand.errors import ConfigError, install
from byhand.formats.names import NATIVE
from byhand.formats.registry import FORMATS
from byhand.runtimes import loops
from byhand.runtimes.cores import cores
from byhand.runtimes.protocol import ONE_PROCESSOR, Decoder, Listing, Request, Runtime, Shape

if TYPE_CHECKING:
    from byhand.runtimes.loops.run.training import LoopsSession

LEAST_OPERATIONS = 3e10  # worth loading the runtime: about two seconds of NumPy


class LoopsRuntime(Runtime):
    """The graph, recorded once for a shape and replayed as compiled loops."""

    name = "loops"
    loaded = 150_000_000
    packs = True

    def obstacle(self, request: Request) -> str:
        """Return why it cannot do this; "" if it can, as far as is known without recording the model."""
        if missing := loops.missing():
            if request.dtype not in NATIVE:
                return f"{request.dtype} needs the loops runtime. Use {install('fast')}, or --dtype float32."
            needs = " and ".join(missing)
            if request.listed:
                return f"a plan needs {needs}. Use {install('fast')}."
            return f"the loops runtime needs {needs}. Use {install('fast')}, or --runtime numpy."
        if request.mesh or request.hosts > 1 or request.recompute != "nothing":
            return ONE_PROCESSOR
        if request.use == "generate":
            if not request.model.causal or request.dtype != "float32":
                return "the loops runtime generates with causal float32 models. Use --runtime numpy."
            if not request.cache:
                return "the loops runtime generates with a KV cache. Use --runtime numpy with --no-cache."
            return ""
        if request.use == "evaluate" and request.weights != "float32":
            return f"the loops runtime evaluates with float32 weights, not {request.weights}. Use --runtime numpy."
        if request.dtype in NATIVE and request.dtype != "float32":
            return f"the loops runtime computes in float32, not {request.dtype}. Use --runtime numpy."
        if request.runtime == "auto" and request.operations < LEAST_OPERATIONS:
            return "small job (`--runtime loops` to force)."
        return ""

    def session(self, model: Any, optimizer: Any, request: Request) -> LoopsSession:
        """Return a session by plan."""
        from byhand.runtimes.loops.run.training import LoopsSession

        return LoopsSession(model, optimizer, request.threads or None, request.blas, request.dtype)

    def decoder(self, model: Any, request: Request) -> Decoder:
        """Return a decoder by plan."""
        from byhand.runtimes.loops.run.decoding import LoopsDecoder

        fills = max(1, request.model.seq_len - 1)  # fails early, and allocates for any prompt
        return LoopsDecoder(model, request.streams, request.threads or None, request.weights, fills, request.moves)

    def listing(self, of: str, model: Any, optimizer: Any, request: Request, shape: Shape, steps: int) -> Listing:
        """Return the calls of one thread."""
        from byhand.runtimes.loops.run import profile

        if of != "train":
            return profile.generation(of, model, request, steps)
        return profile.training_step(self.session(model, optimizer, request), shape, steps)

    def working_bytes(self, request: Request, shape: Shape) -> int:
        """Return the plan's workspace, and the gradients of all shares but one."""
        from byhand.runtimes.loops.kernels.formats.contract import products_in
        from byhand.runtimes.loops.lower.training import Lowering
        from byhand.runtimes.loops.machine.blas import one_core_each, takes_tiles
        from byhand.runtimes.loops.program.regions import Regions
        from byhand.runtimes.loops.run.plan import arena_size
        from byhand.runtimes.loops.run.thread_team import team_size
        from byhand.step_graph import outlined

        threads = team_size(request.threads or None)
        tiles = takes_tiles(request.blas) and one_core_each(shape[0], threads)
        model = outlined(request.model)
        trains = request.use == "train"
        regions = Regions(model.parameters(), threads, trains)
        how = Lowering(trains, products_in(FORMATS[request.dtype]), None, tiles)
        size = arena_size(model.loss_of, shape, regions, model.parameters(), how)
        return 4 * (size - (regions.gradients + regions.size if trains else regions.workspace))

    def facts(self) -> Mapping[str, Any]:
        """Return processor features, matrix multiplication, memory bandwidth, and the folder of compiled code."""
        from byhand.runtimes.loops.machine.processor import cpu_features

        features = {"cpu features": list(cpu_features()) or ["unknown without Numba"]}
        if loops.missing():
            return features
        from byhand.runtimes.loops.machine.machine_code import described

        return features | {"blas": _blas(), **_products(), "memory": _of_memory(), "compiled code": described()}


def _of_memory() -> str:
    """Return the read bandwidth of one thread and of all, or why it cannot be measured."""
    from byhand.runtimes.loops.run.bandwidth import read_bandwidth

    try:
        one, *every = read_bandwidth(*sorted({1, cores()}))
    except ConfigError as error:
        return str(error)
    return f"read at {one:.0f} GB/s by one thread" + "".join(f", {all:.0f} by {cores()}" for all in every)


def _blas() -> str:
    """Return the name of the BLAS, or why it cannot be used."""
    from byhand.runtimes.loops.machine.blas import find_blas

    try:
        return find_blas().name
    except ConfigError as error:
        return str(error)


def _products() -> dict[str, str]:
    """Return how numbers narrower than float32 are multiplied, by their format."""
    from byhand.runtimes.loops.kernels.formats.contract import PRODUCTS, products_in

    return {kind.name: products_in(kind).how for kind in PRODUCTS if not kind.native}
