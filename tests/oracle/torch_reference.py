"""The model family in PyTorch, written from its definition with torch's own layers where torch has them.

It shares no code with byhand: parameters come as arrays by name, gradients leave the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed, so nothing is compared with it")
F = torch.nn.functional
torch.set_num_threads(1)  # on arrays this small, waking threads takes longer than the sums

Parameters = Mapping[str, Any]
Tensor = Any


def as_parameters(arrays: Mapping[str, np.ndarray]) -> Parameters:
    """Return the arrays as tensors that want gradients."""
    return {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}


def norm(p: Parameters, x: Tensor, name: str, eps: float) -> Tensor:
    """Layer normalisation, with gain and bias where the parameters have them."""
    return F.layer_norm(x, x.shape[-1:], p.get(f"{name}.gain"), p.get(f"{name}.bias"), eps)


def attention(p: Parameters, x: Tensor, block: str, config: Any) -> Tensor:
    """Multi-head attention through torch's scaled dot product."""
    b, t, c = x.shape
    packed = F.linear(x, p[f"{block}.attn.w_qkv"].T, p[f"{block}.attn.b_qkv"])
    q, k, v = (part.view(b, t, config.n_heads, -1).transpose(1, 2) for part in packed.split(c, dim=-1))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=config.causal)
    return F.linear(mixed.transpose(1, 2).reshape(b, t, c), p[f"{block}.attn.w_proj"].T, p[f"{block}.attn.b_proj"])


def mlp(p: Parameters, x: Tensor, block: str, config: Any) -> Tensor:
    """Two linear layers with the activation between them."""
    hidden = F.linear(x, p[f"{block}.mlp.w_fc"].T, p[f"{block}.mlp.b_fc"])
    hidden = F.gelu(hidden, approximate="tanh") if config.activation == "gelu" else F.relu(hidden)
    return F.linear(hidden, p[f"{block}.mlp.w_out"].T, p[f"{block}.mlp.b_out"])


def logits(p: Parameters, tokens: Tensor, config: Any, eps: float = 1e-5) -> Tensor:
    """Return logits (B, T, V)."""
    x = F.embedding(tokens, p["wte"]) + p["wpe"][: tokens.shape[1]]
    for i in range(config.n_layers):
        block = f"blocks.{i}"
        if config.norm_position == "pre":
            x = x + attention(p, norm(p, x, f"{block}.ln_1", eps), block, config)
            x = x + mlp(p, norm(p, x, f"{block}.ln_2", eps), block, config)
        else:
            x = norm(p, x + attention(p, x, block, config), f"{block}.ln_1", eps)
            x = norm(p, x + mlp(p, x, block, config), f"{block}.ln_2", eps)
    if config.norm_position == "pre":
        x = norm(p, x, "ln_f", eps)
    return F.linear(x, p["wte"] if config.tied_embeddings else p["lm_head.w"].T, p.get("lm_head.b"))


def loss(p: Parameters, tokens: np.ndarray, targets: np.ndarray, config: Any) -> Tensor:
    """Return the mean cross-entropy in nats."""
    z = logits(p, torch.from_numpy(tokens), config, config.norm_eps)
    return F.cross_entropy(z.flatten(0, 1), torch.from_numpy(targets).flatten())


def gradients(
    arrays: Mapping[str, np.ndarray], tokens: np.ndarray, targets: np.ndarray, config: Any
) -> tuple[float, dict[str, np.ndarray]]:
    """Return the loss and its gradient for every parameter."""
    p = as_parameters(arrays)
    value = loss(p, tokens, targets, config)
    value.backward()
    return value.item(), {name: t.grad.numpy() for name, t in p.items()}


def loss_curve(
    arrays: Mapping[str, np.ndarray], tokens: np.ndarray, targets: np.ndarray, config: Any, steps: int, **adamw: Any
) -> list[float]:
    """Return the loss before each of `steps` updates by torch's AdamW."""
    p = as_parameters(arrays)
    optimizer = torch.optim.AdamW(p.values(), **adamw)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(p, tokens, targets, config)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses
