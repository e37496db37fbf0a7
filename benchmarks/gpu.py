"""GPT-2 on one GPU, or on whatever JAX finds: training, generation and start beside PyTorch, losses beside the CPU.

    python benchmarks/gpu.py                     all parts on the accelerator, as a Markdown table
    python benchmarks/gpu.py --model tiny        the same on a small model, to try the script on a CPU
    python benchmarks/gpu.py --only train losses --json figures.json

Every part runs in a process of its own, since JAX and PyTorch both take the memory; ours and the peer's take turns.
A peer that is not installed is skipped with a note. Operations of a step: 6 N + 12 L C T a token, N without the
position table, the convention of Chowdhery et al. 2022, arXiv:2204.02311, appendix B.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from byhand.config import ModelConfig, OptimConfig
from byhand.generation import Engine, Stream
from byhand.model import TinyGPT, declared, parameter_shapes
from byhand.optim import Optimizer
from byhand.runtimes.protocol import Request
from byhand.runtimes.sampling import Sampling

GPT2 = ModelConfig(
    vocab_size=50304, seq_len=1024, d_model=768, n_layers=12, n_heads=12,
    norm_affine=True, tied_embeddings=True, lm_head_bias=False,
)  # fmt: skip
MODELS = {  # and the rows of a batch
    "tiny": (replace(GPT2, vocab_size=256, seq_len=64, d_model=64, n_layers=2, n_heads=4), 4),
    "gpt2": (GPT2, 32),
    "gpt2-xl": (replace(GPT2, d_model=1600, n_layers=48, n_heads=25), 8),
}
PEAK = 790e12  # bfloat16 operations a second that an H200 reaches in large products
WARM, TIMED = 3, 20  # steps
NEW = 256  # tokens of a generated text


@dataclass(frozen=True)
class Task:
    """One measurement, in a process of its own."""

    part: str
    model: str
    dtype: str = "bfloat16"
    recompute: str = "nothing"
    rows: int = 0
    platform: str = ""

    @property
    def config(self) -> ModelConfig:
        """The model."""
        return MODELS[self.model][0]

    @property
    def batch(self) -> int:
        """Rows of a batch."""
        return self.rows or MODELS[self.model][1]


def batch(task: Task, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random tokens and their successors."""
    shape = (task.batch, task.config.seq_len + 1)
    text = np.random.default_rng(i).integers(0, task.config.vocab_size, shape)
    return text[:, :-1], text[:, 1:]


def train_ours(task: Task) -> dict[str, Any]:
    """Time the first step, from a process that has imported nothing, then further ones; losses of the first few."""
    begun = time.perf_counter()
    from byhand.runtimes.xla.session import XlaSession

    model = TinyGPT(task.config)
    optimizer = Optimizer(OptimConfig(), declared(task.config))
    asked = Request("train", task.config, "xla", task.dtype, recompute=task.recompute)  # pyright: ignore
    session = XlaSession(model, optimizer, asked)
    optimizer.lr = 3e-4
    losses = [session.step([batch(task, 0)], 1.0).loss]
    first = time.perf_counter() - begun
    losses += [session.step([batch(task, i)], 1.0).loss for i in range(1, WARM)]
    ms = timed(lambda i: session.step([batches[i]], 1.0), batches := [batch(task, i) for i in range(TIMED)])
    import jax

    facts = jax.local_devices()[0].memory_stats() or {}
    return {"first_s": first, "losses": losses, "device": session.description} | speed(task, ms) | {
        "peak_gb": facts.get("peak_bytes_in_use", 0) / 1e9
    }  # fmt: skip


def timed(step: Callable[[int], Any], batches: list[Any]) -> float:
    """Return the median ms of a step, whose loss is read before the next one, as a trainer does."""
    seconds = []
    for i in range(len(batches)):
        begun = time.perf_counter()
        float(step(i).loss)
        seconds.append(time.perf_counter() - begun)
    return 1e3 * median(seconds)


def speed(task: Task, ms: float) -> dict[str, Any]:
    """Return tokens/s and the share of the peak."""
    c = task.config
    shapes = parameter_shapes(c)
    weights = sum(int(np.prod(s)) for name, s in shapes.items() if name != "wpe")
    per_token = 6 * weights + 12 * c.n_layers * c.d_model * c.seq_len
    rate = task.batch * c.seq_len / ms * 1e3
    return {"ms": ms, "tokens_per_s": rate, "tflops": rate * per_token / 1e12, "of_peak": rate * per_token / PEAK}


def train_torch(task: Task) -> dict[str, Any]:
    """Time the same model in PyTorch: torch.compile, flash attention, fused AdamW, autocast."""
    begun = time.perf_counter()
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch_gpt(torch, task.config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    compiled = torch.compile(model)
    kind = {"bfloat16": torch.bfloat16}.get(task.dtype)

    @dataclass
    class Made:
        loss: Any

    def step(i: int) -> Made:
        tokens, targets = (torch.from_numpy(a).to(device, non_blocking=True) for a in batches[i])
        with torch.autocast(device, dtype=kind or torch.bfloat16, enabled=kind is not None):
            loss = compiled(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return Made(loss)

    batches = [batch(task, i) for i in range(TIMED)]
    losses = [float(step(0).loss)]
    first = time.perf_counter() - begun
    losses += [float(step(i).loss) for i in range(1, WARM)]
    ms = timed(step, batches)
    peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0.0
    return {"first_s": first, "losses": losses, "device": f"torch {torch.__version__}"} | speed(task, ms) | {
        "peak_gb": peak
    }  # fmt: skip


def torch_gpt(torch: Any, config: ModelConfig) -> Any:
    """Return GPT-2 written for speed: scaled_dot_product_attention, tied embeddings, loss inside."""
    nn, F, c, heads = torch.nn, torch.nn.functional, config.d_model, config.n_heads

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(c), nn.LayerNorm(c)
            self.qkv, self.proj = nn.Linear(c, 3 * c), nn.Linear(c, c)
            self.fc, self.out = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            parts = self.qkv(self.before(x)).split(c, dim=2)
            q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.out(F.gelu(self.fc(self.between(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(config.vocab_size, c), nn.Embedding(config.seq_len, c)
            self.blocks = nn.ModuleList([Block() for _ in range(config.n_layers)])
            self.norm, self.head = nn.LayerNorm(c), nn.Linear(c, config.vocab_size, bias=False)
            for weight in (p for p in self.parameters() if p.ndim > 1):
                nn.init.normal_(weight, std=0.02)
            self.head.weight = self.tokens.weight

        def forward(self, tokens: Any, targets: Any) -> Any:
            x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return F.cross_entropy(self.head(self.norm(x)).view(-1, config.vocab_size), targets.reshape(-1))

    return Model()


def losses_ours(task: Task) -> dict[str, Any]:
    """Return the losses of five updates in float32 on a few rows, here and by NumPy on the host."""
    found = {}
    for name in ("xla", "numpy"):
        if name == "xla":
            from byhand.runtimes.xla.session import XlaSession as Session
        else:
            from byhand.runtimes.tape.session import TapeSession as Session
        model, optimizer = TinyGPT(task.config), Optimizer(OptimConfig(), declared(task.config))
        request = Request("train", task.config, name)
        session = Session(model, optimizer, request) if name == "xla" else Session(model, optimizer)  # pyright: ignore
        optimizer.lr = 3e-4
        found[name] = [session.step([batch(task, i)], 1.0).loss for i in range(5)]
    worst = max(abs(a - b) / b for a, b in zip(found["xla"], found["numpy"], strict=True))
    return found | {"worst": worst}


def generate_ours(task: Task) -> dict[str, Any]:
    """Time a text of one stream, and of eight, greedy: the second of two, so that nothing compiles."""
    weights: Any = "bfloat16" if task.dtype == "bfloat16" else "float32"
    model, found = TinyGPT(task.config), {}
    new = min(NEW, task.config.seq_len // 2)
    for streams in (1, 8):
        engine = Engine(model, streams, runtime="xla", weights=weights)
        for _ in range(2):
            begun = time.perf_counter()
            texts = [Stream([1, 2, 3, 4], new, Sampling(0.0)) for _ in range(streams)]
            made = sum(len(text.drawn) for text in engine.finish(texts))
            found[f"tokens_per_s_{streams}"] = made / (time.perf_counter() - begun)
    return found


def generate_transformers(task: Task) -> dict[str, Any]:
    """Time the same texts by the GPT-2 of transformers with its own cache."""
    import torch
    import transformers

    c = task.config
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = transformers.GPT2Config(
        vocab_size=c.vocab_size, n_positions=c.seq_len, n_embd=c.d_model, n_layer=c.n_layers, n_head=c.n_heads
    )
    kind = torch.bfloat16 if task.dtype == "bfloat16" else torch.float32
    model, found = transformers.GPT2LMHeadModel(config).to(device, kind).eval(), {}
    new = min(NEW, c.seq_len // 2)
    for streams in (1, 8):
        prompt = torch.tensor([[1, 2, 3, 4]] * streams, device=device)
        for _ in range(2):
            begun = time.perf_counter()
            with torch.no_grad():
                made = model.generate(
                    prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=new, min_new_tokens=new,
                    do_sample=False, pad_token_id=0,
                )  # fmt: skip
            found[f"tokens_per_s_{streams}"] = streams * (made.shape[1] - 4) / (time.perf_counter() - begun)
    return found


PARTS: dict[str, Callable[[Task], dict[str, Any]]] = {
    "train ours": train_ours,
    "train torch": train_torch,
    "losses ours": losses_ours,
    "generate ours": generate_ours,
    "generate transformers": generate_transformers,
}


def tasks(model: str, only: list[str]) -> list[Task]:
    """Return what to measure, ours and the peers by turns; the second start finds what the first one compiled."""
    small = 1 if model == "gpt2" else 2
    everything = [
        *(Task(part, model) for _ in range(2) for part in ("train ours", "train torch")),
        *(Task(part, model, "float32", rows=8 if model == "gpt2" else 0) for part in ("train ours", "train torch")),
        Task("losses ours", model, "float32", rows=small),
        *(
            Task(f"generate {who}", model, dtype)
            for dtype in ("float32", "bfloat16")
            for who in ("ours", "transformers")
        ),
    ]
    if model == "gpt2":
        everything.append(Task("train ours", "gpt2-xl", recompute="blocks"))
    return [task for task in everything if not only or task.part.split()[0] in only]


def measured(task: Task, cache: str, limit: float) -> dict[str, Any]:
    """Run a task in a process; return its figures, or why it has none."""
    command = [sys.executable, __file__, "--task", json.dumps(task.__dict__)]
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": cache, "HF_HUB_OFFLINE": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done in {limit:.0f} s"}
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or ["no word"]
    return json.loads(lines[-1]) if done.returncode == 0 else {"failed": lines[-1][:200]}


def row(task: Task, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    if "failed" in found:
        said = found["failed"]
    elif "worst" in found:
        said = f"largest difference from NumPy {found['worst']:.1e}: " + " ".join(f"{x:.6f}" for x in found["xla"])
    elif "ms" in found:
        said = (
            f"{found['ms']:.1f} ms, {found['tokens_per_s']:,.0f} tokens/s, {found['tflops']:.1f} TFLOP/s "
            f"({found['of_peak']:.1%}), first step {found['first_s']:.1f} s, {found['peak_gb']:.1f} GB"
        )
    else:
        said = ", ".join(f"{n} streams {found[f'tokens_per_s_{n}']:,.0f} tokens/s" for n in (1, 8))
    return f"| {task.part} | {task.model} | {task.dtype} | {task.batch} | {said} |"


def main() -> None:
    """Measure what the flags say and print a table as it grows."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--model", choices=[name for name in MODELS if name != "gpt2-xl"], default="gpt2")
    flags.add_argument("--only", nargs="*", default=[], choices=["train", "losses", "generate"])
    flags.add_argument("--limit", type=float, default=240, help="seconds for each process")
    flags.add_argument("--json", type=Path, help="write every figure into this file")
    flags.add_argument("--task", help=argparse.SUPPRESS)
    given = flags.parse_args()
    if given.task:
        task = Task(**json.loads(given.task))
        print(json.dumps(PARTS[task.part](task)))
        return
    print("| part | model | type | rows | measured |\n|---|---|---|---|---|", flush=True)
    figures = []
    with tempfile.TemporaryDirectory() as cache:
        for task in tasks(given.model, given.only):
            found = measured(task, cache, given.limit)
            figures.append(task.__dict__ | found)
            print(row(task, found), flush=True)
            if given.json:
                given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
