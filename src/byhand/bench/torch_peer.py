"""The peer: the same model in PyTorch as one writes it for speed, with fused attention and fused AdamW."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from byhand.bench.shapes import Shape
from byhand.errors import ConfigError
from byhand.runtimes.cores import cores


def torch_step(shape: Shape, compiled: bool, bfloat16: bool = False) -> Callable[[], float]:
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
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            loss = loss_of(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def _model(torch: Any, shape: Shape) -> Any:
    nn, F = torch.nn, torch.nn.functional
    c, heads = shape.d_model, shape.n_heads

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.proj = nn.Linear(c, 3 * c), nn.Linear(c, c)
            self.fc, self.out = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            q, k, v = (
                y.view(b, t, heads, c // heads).transpose(1, 2) for y in self.qkv(F.layer_norm(x, (c,))).split(c, 2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
            x = x + self.proj(y)
            return x + self.out(F.gelu(self.fc(F.layer_norm(x, (c,))), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(shape.vocab_size, c), nn.Embedding(shape.seq_len, c)
            self.blocks = nn.ModuleList([Block() for _ in range(shape.n_layers)])
            self.head = nn.Linear(c, shape.vocab_size)

        def forward(self, tokens: Any, targets: Any) -> Any:
            x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            logits = self.head(F.layer_norm(x, (c,)))
            return F.cross_entropy(logits.view(-1, shape.vocab_size), targets.view(-1))

    return Model()
