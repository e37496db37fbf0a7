"""Generation, timed: one or several greedy streams from a prompt on, with a KV cache on both sides.

The context is as long as the text, so that nothing is computed twice. A token's cost grows with its position; the
figures are means over the whole text.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from byhand.bench import llama_cpp_peer
from byhand.bench.contest import by_turns, require_known
from byhand.bench.shapes import Shape
from byhand.errors import ConfigError
from byhand.formats.names import Weights
from byhand.generation import Engine, Sampling, Stream, generate
from byhand.model import TinyGPT
from byhand.runtimes.cores import cores
from byhand.runtimes.protocol import Decoder
from byhand.runtimes.registry import Choice


def ours(
    shape: Shape, tokens: int, batch: int, threads: int = 0, weights: Weights = "float32", prompt: int = 1
) -> tuple[Decoder, Choice, Callable[[], Any]]:
    """Return the fastest runtime's decoder, its choice, and a function that draws this many tokens per stream."""
    model = TinyGPT(shape.model(tokens + prompt))
    engine = Engine(model, batch, threads=threads, weights=weights, moves=True)  # as `byhand sample` does
    greedy = Sampling(temperature=0)
    return (
        engine.decoder,
        engine.choice,
        lambda: list(engine.finish(Stream([1] * prompt, tokens, greedy) for _ in range(batch))),
    )


def with_numpy(shape: Shape, tokens: int, batch: int, prompt: int = 1) -> Callable[[], Any]:
    """Return a function that draws the streams one after the other with the NumPy runtime."""
    model = TinyGPT(shape.model(tokens + prompt))
    greedy = Sampling(temperature=0)
    return lambda: [list(generate(model, [1] * prompt, tokens, greedy, runtime="numpy")) for _ in range(batch)]


def with_transformers(shape: Shape, tokens: int, batch: int, prompt: int = 1) -> Callable[[], Any]:
    """Return a function that draws them with a GPT-2 of this shape in Hugging Face transformers, cache on."""
    if shape.architecture:
        raise ConfigError("--peer hf is a GPT-2 of the plain shape. Leave --architecture out, or --peer.")
    if shape.n_kv_heads not in (None, shape.n_heads):
        raise ConfigError("--peer hf is a GPT-2, with as many heads of keys as of queries. Leave /K out, or --peer.")
    try:
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        raise ConfigError("--peer hf needs transformers and torch. Use pip install transformers torch.") from None
    torch.set_num_threads(cores())
    config = GPT2Config(
        vocab_size=shape.vocab_size, n_positions=tokens + prompt, n_embd=shape.d_model, n_layer=shape.n_layers,
        n_inner=shape.d_ff, n_head=shape.n_heads, bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model: Any = GPT2LMHeadModel(config).eval()
    given = torch.ones((batch, prompt), dtype=torch.long)

    def run() -> Any:
        with torch.inference_mode():
            return model.generate(
                given, attention_mask=torch.ones_like(given), max_new_tokens=tokens, do_sample=False, use_cache=True
            )

    return run


PEERS = ("hf", "llama.cpp", "numpy")


def measure(
    shape: Shape,
    tokens: int,
    batch: int = 1,
    threads: int = 0,
    weights: Weights = "float32",
    peers: Sequence[str] = (),
    prompt: int = 1,
) -> dict[str, Any]:
    """Return tokens/s over all streams, ms for one token of each, and each peer's with the ratio ours / peer's.

    A prompt token is read like a drawn one and counts as much; the last one drawn is not read.
    share_by_threads gives, by number of threads, the share of our tokens that they drew.
    """
    require_known(peers, PEERS)
    decoder, choice, run = ours(shape, tokens, batch, threads, weights, prompt)
    made = {
        "hf": lambda: with_transformers(shape, tokens, batch, prompt),
        "llama.cpp": lambda: llama_cpp_peer.text_of(shape, tokens, batch, threads, weights, prompt),
        "numpy": lambda: with_numpy(shape, tokens, batch, prompt),
    }
    runs = {"ours": run} | {name: made[name]() for name in peers}
    seconds = by_turns(runs, repeats=1, rounds=3 if peers else 5)
    read = (prompt - 1 + tokens) * batch
    rates = {name: read / statistics.median(times) for name, times in seconds.items()}
    figures: dict[str, Any] = {
        "tokens_per_s": rates["ours"],
        "ms_per_token": 1e3 * batch / rates["ours"],
        "tokens_per_s_best": read / min(seconds["ours"]),
        "runtime": choice.runtime.name,
        "why": choice.why,
        "share_by_threads": {str(n): k / decoder.made_by.total() for n, k in sorted(decoder.made_by.items())},
    }
    if peers:
        figures["peers"] = {p: {"tokens_per_s": rates[p], "ratio": rates["ours"] / rates[p]} for p in peers}
    return figures
