"""The NumPy runtime's description."""

from __future__ import annotations

import math
from typing import Any

from byhand.errors import install
from byhand.formats.names import NATIVE
from byhand.runtimes.protocol import ONE_PROCESSOR, Decoder, Request, Runtime, Shape, TrainingSession


class NumpyRuntime(Runtime):
    """NumPy, equation by equation."""

    name = "numpy"
    loaded = 90_000_000
    replaces = "after"

    def obstacle(self, request: Request) -> str:
        """Return why it cannot do this; "" if it can."""
        if request.mesh or request.hosts > 1 or request.recompute != "nothing":
            return ONE_PROCESSOR
        if request.dtype not in NATIVE:
            return f"the numpy runtime does not support {request.dtype}. Use {install('fast')}, or --dtype float32."
        if request.blas != "auto":
            return f"--blas {request.blas} is not NumPy's to choose. Use --blas auto."
        if request.listed:
            return "the numpy runtime has no plan to list: it evaluates equation by equation."
        return ""

    def session(self, model: Any, optimizer: Any, request: Request) -> TrainingSession:
        """Return a NumPy session."""
        from byhand.runtimes.numpy.interpreters import with_weights
        from byhand.runtimes.numpy.session import NumpySession

        if request.use == "train":
            return NumpySession(model, optimizer)
        model, how = with_weights(model, request)
        return NumpySession(model, optimizer, how)

    def decoder(self, model: Any, request: Request) -> Decoder:
        """Return a decoder that evaluates the model's equations."""
        from byhand.runtimes.numpy.decoder import NumpyDecoder

        return NumpyDecoder(model, request)

    def working_bytes(self, request: Request, shape: Shape) -> int:
        """Return the bytes that recording keeps, plus the peak of the cotangents."""
        from byhand.engine.graph.memory import cotangent_bytes, kept_bytes
        from byhand.model import parameter_shapes
        from byhand.step_graph import evaluation_bytes, step_graph

        if request.use == "evaluate":
            rounded = request.weights != "float32"  # InBlocks keeps a rounded copy of each
            copies = rounded * sum(4 * math.prod(shape) for shape in parameter_shapes(request.model).values())
            return evaluation_bytes(request.model, shape, request.dtype) + copies
        graph = step_graph(request.model, shape, request.dtype)
        return kept_bytes(graph) + cotangent_bytes(graph)
