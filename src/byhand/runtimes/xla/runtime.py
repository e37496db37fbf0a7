"""The XLA runtime's description: what it can do, without importing JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from byhand.errors import ConfigError, install
from byhand.formats.names import array_of
from byhand.formats.registry import FORMATS
from byhand.runtimes.process_group import ProcessGroup
from byhand.runtimes.protocol import Decoder, Request, Runtime, Shape, TrainingSession
from byhand.runtimes.xla.mesh import devices_found, mesh_of

NEEDS = f"the xla runtime needs jax. Use {install('xla')}, or leave out --mesh, --hosts and --runtime."


class XlaRuntime(Runtime):
    """The equations, traced by JAX and compiled by XLA."""

    name = "xla"
    loaded = 400_000_000
    replaces = "during"

    def obstacle(self, request: Request) -> str:
        """Return why it cannot do this; "" if it can."""
        if find_spec("jax") is None:
            return NEEDS
        mesh_of(request.mesh)
        if array_of(request.dtype) != "float32":
            return f"the xla runtime does not compute in {request.dtype}. Use --runtime numpy."
        if request.blas != "auto" or request.threads:
            flag = f"--threads {request.threads}" if request.threads else f"--blas {request.blas}"
            return f"{flag} is not for the xla runtime, which uses all cores. Leave it out, or use --runtime loops."
        if request.listed:
            return "the xla runtime has no plan to list: XLA makes its own."
        if FORMATS[request.weights].block > 1:
            return f"the xla runtime does not support {request.weights} weights. Use --runtime auto."
        if request.use == "evaluate" and request.weights != "float32":
            return f"the xla runtime evaluates with float32 weights, not {request.weights}. Use --runtime numpy."
        if request.use == "generate" and not (request.model.causal and request.cache):
            return "the xla runtime generates with causal models and a KV cache. Use --runtime numpy."
        return ""

    def suits(self, request: Request) -> bool:
        """Return whether a mesh, hosts or an accelerator is used; imports JAX only if a plug-in is installed."""
        return bool(request.mesh) or request.hosts > 1 or (bool(_plugins()) and _platform() != "cpu")

    def session(self, model: Any, optimizer: Any, request: Request) -> TrainingSession:
        """Return a session on the devices of the request's mesh."""
        from byhand.runtimes.xla.session import XlaSession

        return XlaSession(model, optimizer, request)

    def decoder(self, model: Any, request: Request) -> Decoder:
        """Return a decoder."""
        from byhand.runtimes.xla.decoder import XlaDecoder

        return XlaDecoder(model, request)

    def working_bytes(self, request: Request, shape: Shape) -> int:
        """Return the bytes kept for the backward pass, plus the peak of the cotangents.

        If it recomputes or shards the step, only the streams between blocks: it keeps at least these.
        """
        from byhand.engine.graph.memory import boundary_bytes, cotangent_bytes, kept_bytes
        from byhand.model import BLOCKS
        from byhand.step_graph import evaluation_bytes, step_graph

        if request.use == "evaluate":
            return evaluation_bytes(request.model, shape)
        graph = step_graph(request.model, shape)
        if request.recompute != "nothing" or request.mesh or request.hosts > 1:
            return boundary_bytes(graph, BLOCKS)
        return kept_bytes(graph) + cotangent_bytes(graph)

    def room(self) -> int | None:
        """Return the memory of an accelerator, if JAX has one and reports it."""
        if not _plugins() or _platform() == "cpu":
            return None
        return sum((device.memory_stats() or {}).get("bytes_limit", 0) for device in devices_found()) or None

    def join(self, hosts: str, run: str, patience: float, ended: Callable[[str], None]) -> ProcessGroup:
        """Join other processes."""
        from byhand.runtimes.xla.joining import join

        return join(hosts, run, patience, ended)

    def facts(self) -> Mapping[str, Any]:
        """Return JAX's devices, if it is installed."""
        if find_spec("jax") is None:
            return {}
        try:
            return {"xla devices": [f"{d.device_kind} {d.id}" for d in devices_found()]}
        except ConfigError as error:
            return {"xla devices": str(error)}


def _plugins() -> list[str]:
    """Return the installed plug-ins of JAX, one for each kind of accelerator."""
    if find_spec("jax") is None:
        return []
    from importlib.metadata import entry_points

    return [point.name for point in entry_points(group="jax_plugins")]


def _platform() -> str:
    """Return the kind of device that JAX finds; "cpu" if it cannot start."""
    try:
        return devices_found()[0].platform
    except ConfigError:
        return "cpu"
