"""The peer: the same model in PyTorch, written for speed, with fused attention and fused AdamW."""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from byhand.bench.shapes import Shape
from byhand.errors import ConfigError
from byhand.runtimes.cores import cores


def torch_step(shape: Shape, compiled: bool, dtype: str = "float32") -> Callable[[], float]:
    """Return a function that makes one training step on a fixed random batch and returns the loss."""
    try:
        import torch
    except ImportError:
        raise ConfigError("--peer torch needs PyTorch. Use pip install torch, or leave --peer out.") from None
    torch.set_num_threads(cores())
    torch.manual_seed(0)
    model = _model(torch, shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    tokens, targets = (torch.randint(0, shape.vocab_size, (shape.batch, shape.seq_len)) for _ in range(2))
    loss_of = torch.compile(model) if compiled else model

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=getattr(torch, dtype), enabled=dtype != "float32"):
            loss = loss_of(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def _model(torch: Any, shape: Shape) -> Any:
    nn, F, config = torch.nn, torch.nn.functional, shape.model()
    activations = {
        "gelu": partial(F.gelu, approximate="tanh"), "relu": F.relu, "relu_squared": lambda x: F.relu(x).square(),
        "swiglu": lambda x: math.prod((F.silu(x.chunk(2, -1)[0]), x.chunk(2, -1)[1])),
    }  # fmt: skip
    c, heads, kv_heads, d, f = config.d_model, config.n_heads, config.kv_heads, config.head_width, config.ff_width
    r = config.rotary_width
    angles = torch.arange(config.seq_len)[:, None] * config.rope_base ** (-torch.arange(0, r, 2) / r)
    cos, sin = angles.cos(), angles.sin()

    def norm(width: int) -> Any:
        kind = nn.RMSNorm if config.norm == "rms" else nn.LayerNorm
        return kind(width, config.norm_eps, config.norm_affine)

    def turned(x: Any) -> Any:
        left, right, rest = x.split((r // 2, r // 2, d - r), -1)
        return torch.cat((left * cos - right * sin, right * cos + left * sin, rest), -1).to(x.dtype)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(c, (heads + 2 * kv_heads) * d, config.attention_bias in ("all", "qkv"))
            self.proj = nn.Linear(heads * d, c, config.attention_bias in ("all", "out"))
            self.up = nn.Linear(c, f * (2 if config.gated else 1), config.mlp_bias)
            self.out = nn.Linear(f, c, config.mlp_bias)
            self.norms = nn.ModuleList((norm(c), norm(c)))
            self.of_heads = nn.ModuleList((norm(d), norm(d))) if config.qk_norm else (lambda x: x, lambda x: x)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            parts = self.qkv(self.norms[0](x)).view(b, t, -1, d).transpose(1, 2).split((heads, kv_heads, kv_heads), 1)
            q, k, v = self.of_heads[0](parts[0]), self.of_heads[1](parts[1]), parts[2]
            if config.positions == "rotary":
                q, k = turned(q), turned(k)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=kv_heads != heads)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, heads * d))
            return x + self.out(activations[config.activation](self.up(self.norms[1](x))))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte = nn.Embedding(config.vocab_size, c)
            self.wpe = nn.Embedding(config.seq_len, c) if config.positions == "learned" else None
            self.blocks = nn.ModuleList(Block() for _ in range(config.n_layers))
            self.first = norm(c) if config.embedding_norm else nn.Identity()
            self.norm = norm(c) if config.final_norm else nn.Identity()
            self.head = nn.Linear(c, config.vocab_size, config.lm_head_bias)
            if config.tied_embeddings:
                self.head.weight = self.wte.weight

        def forward(self, tokens: Any, targets: Any) -> Any:
            x = self.wte(tokens)
            if self.wpe is not None:
                x = x + self.wpe.weight
            x = self.first(x)
            for block in self.blocks:
                x = block(x)
            return F.cross_entropy(self.head(self.norm(x)).view(-1, config.vocab_size), targets.view(-1))

    return Model()
