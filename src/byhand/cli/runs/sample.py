"""`byhand sample`: continue a prompt, and print each token as it is drawn."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from byhand.cli.arguments.parsing import read, text_bytes
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.runs.prompts import Prompt, prompts_of
from byhand.cli.terminal.say import say, show_json
from byhand.cli.terminal.shown import on_terminal, quoted
from byhand.errors import ConfigError, DataError
from byhand.formats.names import Weights
from byhand.generation import START, Engine, Stream, generate
from byhand.model import TinyGPT
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint
from byhand.runtimes.registry import offered
from byhand.tokenizers.bpe import BytePairTokenizer
from byhand.tokenizers.byte import ByteTokenizer
from byhand.tokenizers.tokenizer import Tokenizer

LONGEST = 1 << 24  # bytes of a prompt; the model reads at most its context
MOST_STREAMS = 1024


@dataclass(frozen=True)
class Options:
    """Continue a prompt with the model of a run."""

    run: Positional[Path]
    """The run folder, or one of its checkpoints."""
    text: Prompt = field(default_factory=Prompt)
    prompts: str = ""
    """Continue each line of this file (-: standard input), JSON such as {"prompt": "To be"}, and print JSON lines. A
    line may set max_new_tokens, temperature, top_k, top_p, seed and stop for itself."""
    streams: int = 8
    """With --prompts, how many texts are continued side by side; each is the text that it would be alone."""
    ascii_only: Switch = False
    """Draw only printable ASCII, tab and newline."""
    no_cache: Switch = False
    """Recompute the whole context for each token, without the KV cache."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """numpy, or loops: the same text, faster; auto takes loops if Numba is installed."""
    weights: Weights = "float32"
    """bfloat16 rounds the weights once and reads half as much: faster if they exceed the caches."""
    ignore_eos: Switch = False
    """Go on where the model ends a document, as one learns that was trained on several."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""
    json: Switch = False
    """Print one JSON object at the end instead of streaming."""
    logprobs: Switch = False
    """With --json or --prompts: print ln p of each token too, before temperature, top-k and top-p."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand sample")
    options = given.over()
    if options.prompts:
        given.refuse(("prompt", "json"), "with --prompts, which names the texts and prints JSON lines")
    else:
        given.refuse(("streams",), "without --prompts")
    if not (options.prompts or options.json):
        given.refuse(("logprobs",), "without --prompts or --json")
    if not 1 <= options.streams <= MOST_STREAMS:
        raise ConfigError(f"streams is {options.streams}, but must be between 1 and {MOST_STREAMS}. Use 8.")
    prompts = prompts_of(options.prompts, options.text) if options.prompts else {}
    loaded = checkpoint.load(options.run, moments=False)
    model = loaded.model(not options.last)
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    tokenizer = loaded.tokenizer
    shared = _allowed(tokenizer, model.config.vocab_size, options.ascii_only)
    ends = frozenset() if options.ignore_eos else loaded.ends
    if options.prompts:
        streams = [_stream(tokenizer, *each, shared, ends, options.logprobs) for each in prompts.items()]
        _continue_all(options, model, tokenizer, list(zip(prompts.values(), streams, strict=True)))
        return 0
    text = options.text
    prompt = sys.stdin.buffer.read(LONGEST + 1) if text.prompt == "-" else text_bytes(text.prompt, "--prompt")
    if len(prompt) > LONGEST:
        raise DataError(f"the prompt on standard input has more than {LONGEST:,} bytes. Use its end.")
    tokens = generate(
        model,
        _begun(tokenizer, prompt),
        text.max_new_tokens,
        text.drawing.sampling,
        allowed=shared,
        stop=ends | _stop(tokenizer, text.stop),
        scored=options.logprobs,
        use_cache=not options.no_cache,
        runtime=options.runtime,
        weights=options.weights,
    )
    if tokens.why:
        say(f"runtime {tokens.runtime}: {tokens.why}")
    if options.json:
        said = tokenizer.decode(tokens).decode(errors="replace")
        scores = {"logprobs": tokens.logprobs} if options.logprobs else {}
        show_json({"prompt": prompt.decode(errors="replace"), "text": said, **scores})
        return 0
    written = on_terminal if sys.stdout.isatty() else str
    for part in tokenizer.stream(tokens, prompt):
        sys.stdout.write(written(part))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0


def stream_of(options: Options, loaded: Checkpoint, prompt: bytes) -> Stream:
    """Return the stream that continues a prompt as the options say."""
    text, tokenizer = options.text, loaded.tokenizer
    ends = frozenset() if options.ignore_eos else loaded.ends
    tokens = _begun(tokenizer, prompt) or [START]
    stop = ends | _stop(tokenizer, text.stop)
    allowed = _allowed(tokenizer, loaded.config.model.vocab_size, options.ascii_only)
    return Stream(tokens, text.max_new_tokens, text.drawing.sampling, allowed, stop, options.logprobs)


def _allowed(tokenizer: Tokenizer, vocab_size: int, ascii_only: bool) -> np.ndarray | None:
    """Return which tokens may be drawn; None if all may. ConfigError if none is left."""
    allowed = tokenizer.printable(vocab_size, ascii_only)
    if not allowed.any():
        raise ConfigError(f"--ascii-only leaves nothing of a vocabulary of {vocab_size}. Leave it out.")
    return None if allowed.all() else allowed


def _begun(tokenizer: Tokenizer, given: bytes) -> list[int]:
    """Return a prompt's ids; for an empty one a newline's."""
    prompt = tokenizer.encode(given)
    if not (prompt or isinstance(tokenizer, ByteTokenizer)):  # `generate` knows the newline of bytes alone
        prompt = tokenizer.encode(b"\n")
    return prompt


def _stream(
    tokenizer: Tokenizer, place: str, prompt: Prompt, allowed: Any, ends: frozenset[int], scored: bool
) -> Stream:
    """Return the stream of one line; DataError with its place if its stop token is none."""
    try:
        stop = ends | _stop(tokenizer, prompt.stop)
    except ConfigError as error:
        raise DataError(f"{place}: {error}") from None
    tokens = _begun(tokenizer, prompt.prompt.encode()) or [START]
    return Stream(tokens, prompt.max_new_tokens, prompt.drawing.sampling, allowed, stop, scored)


def _continue_all(options: Options, model: TinyGPT, tokenizer: Tokenizer, given: list[tuple[Prompt, Stream]]) -> None:
    """Print one line of JSON for each prompt, in their order, as soon as it and those before it have ended."""
    engine = Engine(
        model,
        min(options.streams, len(given)),
        runtime=options.runtime,
        weights=options.weights,
        cache=not options.no_cache,
    )
    if engine.choice.why:
        say(f"runtime {engine.choice.runtime.name}: {engine.choice.why}")
    ended = engine.finish(stream for _, stream in given)
    for (prompt, _), stream in zip(given, ended, strict=True):
        text = tokenizer.decode(stream.drawn).decode(errors="replace")
        scores = {"logprobs": stream.logprobs} if options.logprobs else {}
        show_json({"prompt": prompt.prompt, "text": text, "ids": stream.drawn, **scores})
        sys.stdout.flush()


def _stop(tokenizer: Tokenizer, text: str) -> frozenset[int]:
    """Return the id of the special token that ends a text, if one is asked for. ConfigError if it is none."""
    special = tokenizer.special if isinstance(tokenizer, BytePairTokenizer) else {}
    if not text:
        return frozenset()
    if text not in special:
        known = f"Use one of {', '.join(list(special)[:5])}." if special else "Leave it out."
        raise ConfigError(f"stop {quoted(text)} is no special token of this run's tokenizer. {known}")
    return frozenset({special[text]})
