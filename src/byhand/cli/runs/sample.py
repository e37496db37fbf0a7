"""`byhand sample`: continue a prompt, and print each token as it is drawn."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

from byhand.cli.arguments.parsing import parse, text_bytes
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import say, show_json
from byhand.cli.terminal.shown import on_terminal, quoted
from byhand.errors import ConfigError, DataError
from byhand.formats.names import Weights
from byhand.generation import Sampling, generate
from byhand.runs import checkpoint
from byhand.runtimes.registry import offered
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import ByteTokenizer
from byhand.tokenizers.tokenizer import Tokenizer

LONGEST = 1 << 24  # bytes of a prompt; the model reads at most its context


@dataclass(frozen=True)
class Options:
    """Continue a prompt with the model of a run."""

    run: Positional[Path]
    """The run folder, or one of its checkpoints."""
    prompt: str = ""
    """Text to continue; - reads it from standard input."""
    max_new_tokens: int = 300
    """How many tokens to write: bytes, unless the run has another tokenizer."""
    temperature: float = 0.8
    """Above 1 flatter, below 1 sharper, 0 always the likeliest."""
    top_k: int | None = None
    """Draw from the k likeliest only; of equally likely ones the smaller id comes first."""
    top_p: float | None = None
    """Draw from the fewest tokens whose probabilities sum to p or more."""
    seed: int = 1
    """Same seed, same text."""
    ascii_only: Switch = False
    """Draw only printable ASCII, tab and newline."""
    no_cache: Switch = False
    """Recompute the whole context for each token, without the KV cache."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """numpy, or loops: the same text, faster; auto takes loops if Numba is installed."""
    weights: Weights = "float32"
    """bfloat16 rounds the weights once and reads half as much: faster if they exceed the caches."""
    stop: str = ""
    """End the text at this special token of the run's tokenizer, such as <|endoftext|>."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""
    json: Switch = False
    """Print one JSON object at the end instead of streaming."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand sample")
    sampling = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    loaded = checkpoint.load(options.run, moments=False)
    model = loaded.model(not options.last)
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    given = sys.stdin.buffer.read(LONGEST + 1) if options.prompt == "-" else text_bytes(options.prompt, "--prompt")
    if len(given) > LONGEST:
        raise DataError(f"the prompt on standard input has more than {LONGEST:,} bytes. Use its end.")
    tokenizer = loaded.tokenizer
    prompt = tokenizer.encode(given)
    if not (prompt or isinstance(tokenizer, ByteTokenizer)):  # `generate` knows the newline of bytes alone
        prompt = tokenizer.encode(b"\n")
    vocab_size = model.config.vocab_size
    allowed = tokenizer.printable(vocab_size, options.ascii_only)
    if not allowed.any():
        raise ConfigError(f"--ascii-only leaves nothing of a vocabulary of {vocab_size}. Leave it out.")
    stop = _stop(tokenizer, options.stop)
    tokens = generate(
        model,
        prompt,
        options.max_new_tokens,
        sampling,
        allowed=None if allowed.all() else allowed,
        use_cache=not options.no_cache,
        runtime=options.runtime,
        weights=options.weights,
    )
    if tokens.why:
        say(f"runtime {tokens.runtime}: {tokens.why}")
    written_tokens = takewhile(lambda token: token != stop, tokens)
    if options.json:
        text = tokenizer.decode(written_tokens).decode(errors="replace")
        show_json({"prompt": given.decode(errors="replace"), "text": text})
        return 0
    written = on_terminal if sys.stdout.isatty() else str
    for part in tokenizer.stream(written_tokens, given):
        sys.stdout.write(written(part))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0


def _stop(tokenizer: Tokenizer, text: str) -> int | None:
    """Return the id of the special token that ends a text, None if none is asked for. ConfigError if it is none."""
    special = tokenizer.special if isinstance(tokenizer, BytePairTokenizer) else {}
    if text and text not in special:
        known = f"Use one of {', '.join(list(special)[:5])}." if special else "Leave out --stop."
        raise ConfigError(f"{quoted(text)} is no special token of this run's tokenizer. {known}")
    return special.get(text)
