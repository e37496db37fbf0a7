"""`byhand bench train|generate`: the speed of a step or a token, with peers in the same run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from byhand.bench import generating, training
from byhand.bench.shapes import OFFERED, Blas, require_threads, shape_of
from byhand.cli.arguments.parsing import run_subcommand
from byhand.cli.arguments.settings import Switch
from byhand.cli.terminal.say import say, show, show_json
from byhand.errors import ConfigError
from byhand.formats.names import Dtype, Weights
from byhand.quantities import counted
from byhand.runtimes.registry import offered

MOST_STEPS = 10**6
MOST_DRAWN = 1 << 20  # tokens, or streams: the longest context


@dataclass(frozen=True)
class TrainOptions:
    """Time a training step: forward, backward, clipping and AdamW on a fixed random batch."""

    shape: str = "nano"
    """tiny, nano, small, or B,T,C[/F],L,H[/K],V."""
    architecture: Literal[OFFERED] = "plain"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """plain: the model's default settings; or the architecture of a preset."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """Our runtime."""
    threads: int = 0
    """Threads of the loops runtime; 0: all cores."""
    blas: Blas = "auto"
    """Matrix products of the loops runtime: register tiles or a library; auto takes the fastest."""
    steps: int | None = None
    """Timed steps of each; if not given, as many as the slowest makes in ten seconds."""
    dtype: Dtype = "float32"
    """Number format of ours, as in `byhand train`."""
    peer: tuple[str, ...] = ()
    """torch (eager and compile), torch-eager, torch-compile, torch-bf16; or ours with numpy, float32 or scipy."""
    json: Switch = False
    """Print one JSON object."""


@dataclass(frozen=True)
class GenerateOptions:
    """Time generation: greedy, with a KV cache, the context as long as the text."""

    shape: str = "nano"
    """tiny, nano, small, or B,T,C[/F],L,H[/K],V (B and T are not used)."""
    architecture: Literal[OFFERED] = "plain"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """plain: the model's default settings; or the architecture of a preset."""
    tokens: int = 1000
    """Tokens drawn in each stream."""
    prompt_tokens: int = 1
    """Tokens of each prompt, which count like drawn ones: --tokens 1 times the prefill."""
    batch: int = 1
    """Parallel streams."""
    threads: int = 0
    """Threads; 0: all cores."""
    weights: Weights = "float32"
    """Format of our weights: float32, bfloat16, or blocks of 8 or 4 bits (q8_0, q4_0)."""
    peer: tuple[str, ...] = ()
    """hf (transformers), llama.cpp (xllamacpp, with weights of as many bits), numpy."""
    json: Switch = False
    """Print one JSON object."""


def main(arguments: list[str]) -> int:
    """Run the subcommand."""
    return run_subcommand(SUBCOMMANDS, arguments, "byhand bench")


def _train(options: TrainOptions) -> int:
    if options.steps is not None and not 1 <= options.steps <= MOST_STEPS:
        raise ConfigError(f"steps is {options.steps}, but must be from 1 to {MOST_STEPS:,}. Use --steps 50.")
    require_threads(options.threads)
    shape = shape_of(options.shape, options.architecture)
    figures = training.measure(
        shape, options.runtime, options.threads, options.blas, options.steps, options.dtype, options.peer
    )
    line = (
        f"{options.shape}, {figures['runtime']}, {options.dtype}: {figures['ms_median']:.3f} ms a step "
        f"(least {figures['ms_min']:.3f}), {figures['tokens_per_s']:,.0f} tokens/s, {figures['gflops']:.1f} GFLOP/s"
    )
    return _report(
        figures, options.json, line, "{name}: {ms_median:.3f} ms (least {ms_min:.3f}), {ratio:.2f} times ours"
    )


def _generate(options: GenerateOptions) -> int:
    for name, value in (
        ("tokens", options.tokens),
        ("prompt_tokens", options.prompt_tokens),
        ("batch", options.batch),
    ):
        if not 1 <= value <= MOST_DRAWN:
            raise ConfigError(f"{name} is {value}, but must be from 1 to {MOST_DRAWN:,}.")
    require_threads(options.threads)
    figures = generating.measure(
        shape_of(options.shape, options.architecture),
        options.tokens,
        options.batch,
        options.threads,
        options.weights,
        options.peer,
        options.prompt_tokens,
    )
    read = f"{options.prompt_tokens} + " if options.prompt_tokens > 1 else ""
    line = (
        f"{options.shape}, {options.batch} x {read}{options.tokens} tokens: {figures['tokens_per_s']:,.0f} tokens/s "
        f"(best {figures['tokens_per_s_best']:,.0f}), {figures['ms_per_token']:.4f} ms a token; "
        + ", ".join(f"{share:.0%} by {counted(int(n), 'thread')}" for n, share in figures["share_by_threads"].items())
    )
    return _report(
        figures, options.json, line, "{name}: {tokens_per_s:,.0f} tokens/s; ours is {ratio:.1f} times as fast"
    )


def _report(figures: dict[str, Any], as_json: bool, line: str, peer: str) -> int:
    """Print the figures as JSON, or a line and one for each peer; say why ours is not the fastest runtime."""
    if figures["why"]:
        say(f"runtime {figures['runtime']}: {figures['why']}")
    if as_json:
        show_json(figures)
        return 0
    show(line)
    for name, its_figures in figures.get("peers", {}).items():
        show(peer.format(name=name, **its_figures))
    return 0


SUBCOMMANDS = {
    "train": (TrainOptions, _train),
    "generate": (GenerateOptions, _generate),
}
