"""The weights of a model's blocks, and the floating-point operations of a training step, from the shape alone."""

from __future__ import annotations

from byhand.config import ModelConfig


def step_flops(model: ModelConfig, sequences: int) -> int:
    r"""Return the operations of a training step on `sequences` windows of T tokens.

    Equation    6 B T (L (4 C^2 + 2 C F) + C V) + 12 L B T^2 C: six for each weight and token (two forward, four
                back), and the attention over all pairs; masked pairs count too, as is usual
    Source      Kaplan et al. 2020, arXiv:2001.08361, section 2.1
    """
    c, t = model.d_model, model.seq_len
    weights = block_weights(model) + c * model.vocab_size
    return 6 * weights * sequences * t + 12 * model.n_layers * sequences * t * t * c


def block_weights(model: ModelConfig) -> int:
    """Return how many weights the matrices of the blocks have: L (4 C^2 + 2 C F)."""
    return model.n_layers * (4 * model.d_model**2 + 2 * model.d_model * model.ff_width)
