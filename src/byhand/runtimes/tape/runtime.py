"""The reference runtime's description."""

from __future__ import annotations

from typing import Any

from byhand.config import ModelConfig
from byhand.runtimes.protocol import ONE_PROCESSOR, Decoder, Request, Runtime, TrainingSession


class TapeRuntime(Runtime):
    """NumPy: the tape, equation by equation."""

    name = "numpy"

    def obstacle(self, request: Request) -> str:
        """Return why it cannot do this; "" if it can."""
        if request.mesh or request.hosts > 1 or request.recompute != "nothing":
            return ONE_PROCESSOR
        if request.dtype == "bfloat16":
            return "the numpy runtime has no bfloat16. Use pip install 'byhand[fast,mkl]', or --dtype float32."
        if request.blas != "auto":
            return f"--blas {request.blas} is not NumPy's to choose. Use --blas auto."
        if request.listed:
            return "the numpy runtime has no plan to list: it computes one equation after the other."
        return ""

    def session(self, model: Any, optimizer: Any, request: Request) -> TrainingSession:
        """Return a session of the tape."""
        from byhand.runtimes.tape.session import TapeSession

        return TapeSession(model, optimizer)

    def decoder(self, model: Any, request: Request) -> Decoder:
        """Return a decoder that evaluates the model's equations."""
        from byhand.runtimes.tape.decoder import TapeDecoder

        return TapeDecoder(model, request)

    def kept(self, config: ModelConfig) -> int:
        """Return the numbers of logits, probabilities and their gradient, and of every result of a block."""
        queries, both = config.n_heads * config.head_width, 2 * config.kv_heads * config.head_width
        inner = (4 if config.gated else 2) * config.ff_width
        return 3 * config.vocab_size + config.n_layers * (4 * config.d_model + 4 * queries + 2 * both + inner)
