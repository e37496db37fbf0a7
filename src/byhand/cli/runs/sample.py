"""`byhand sample`: continue a prompt, and print each token as it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from byhand.cli.arguments.drawing import as_suggested
from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.runs.prompts import Prompt, content, prompts_given, prompts_of
from byhand.cli.runs.texts import EncodedPrompt, show_lines, show_texts
from byhand.cli.terminal.say import say
from byhand.config_checks import at_least, at_most
from byhand.errors import ConfigError
from byhand.formats.names import Weights
from byhand.generation import Engine
from byhand.interop import exchange
from byhand.memory import require_room
from byhand.runs.contents import Checkpoint
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import offered

MOST_STREAMS = 1024


@dataclass(frozen=True)
class Options:
    """Continue a prompt with the model of a run."""

    run: Positional[Path]
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2."""
    text: Prompt = field(default_factory=Prompt)
    prompts: str = ""
    """Continue each line of this file (-: standard input), JSON such as {"prompt": "To be"}, and print JSON lines. A
    line may have its own max_new_tokens, stop (text or a list), samples and sampling settings."""
    streams: int = 8
    """How many texts to continue in parallel; each is the same as alone."""
    ascii_only: Switch = False
    """Draw only printable ASCII, tab and newline."""
    no_cache: Switch = False
    """Recompute the whole context for each token, without the KV cache."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """numpy, or loops: the same text, faster; auto takes loops if Numba is installed."""
    weights: Weights = "float32"
    """bfloat16 reads half the bytes; q8_0 and q4_0 (blocks of 8 and 4 bits) a quarter and an eighth, at some loss."""
    threads: int = 0
    """Threads of the loops runtime; 0 uses all cores."""
    ignore_eos: Switch = False
    """Continue where the model ends a document, as models trained on several learn to do."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""
    json: Switch = False
    """Print each finished text as a line of JSON, with its token ids, instead of streaming."""
    logprobs: Switch = False
    """With --json or --prompts: also print ln p of each token, as the model predicts it before sampling settings."""
    stats: Switch = False
    """After each text, print the prompt tokens read, the time to the first token, and tokens per second; with --json
    or --prompts as fields of its line."""

    def __post_init__(self) -> None:
        at_least(self, 0, "threads")
        at_most(self)


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand sample")
    options = given.over()
    if options.prompts:
        given.refuse(("prompt", "json"), "with --prompts, which names the texts and prints JSON lines")
    elif not options.json:
        given.refuse(("logprobs",), "without --prompts or --json")
    if not 1 <= options.streams <= MOST_STREAMS:
        raise ConfigError(f"--streams is {options.streams}, but must be between 1 and {MOST_STREAMS}. Use 8.")
    loaded = exchange.model(options.run)
    options = as_suggested(options, given, loaded.tokenizer.conventions, aloud=True)
    prompts = prompts_of(options.prompts, options.text) if options.prompts else prompts_given(options.text)
    count = sum(prompt.samples for prompt in prompts.values())
    if count == 1 and not options.prompts:
        given.refuse(("streams",), "for a single text")
    model = loaded.model(not options.last).merged()
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    loaded.forget()
    tokenizer, allowed = loaded.tokenizer, drawable(options.ascii_only, loaded)
    all_given: list[EncodedPrompt] = []
    for place, prompt in prompts.items():
        text = prompt.prompt[0].encode() if options.prompts else content(prompt)
        all_given.append(encoded(options, loaded, place, prompt, text))
    slots = min(options.streams, count)
    of_model = model.config, options.runtime, str(model.dtype), options.threads
    request = Request("generate", *of_model, weights=options.weights, cache=not options.no_cache, streams=slots)
    require_room("generation", request, "Use fewer --streams, or a smaller model.")
    how: Any = {"runtime": options.runtime, "weights": options.weights, "threads": options.threads}
    engine = Engine(model, slots, **how, cache=request.cache, moves=True)
    if engine.choice.why:
        say(f"runtime {engine.choice.runtime.name}: {engine.choice.why}")
    for each in all_given:
        each.say_what_is_cut(tokenizer, model.config.seq_len)
    texts = (text for each in all_given for text in each.texts(tokenizer, allowed, options.logprobs))
    if options.prompts or options.json:
        show_lines(engine, texts, options.stats)
    else:
        show_texts(engine, texts, count, options.stats)
    return 0


def drawable(ascii_only: bool, loaded: Checkpoint) -> np.ndarray | None:
    """Return which ids may be drawn; None if all may. ConfigError if none is left."""
    vocab_size = loaded.config.model.vocab_size
    allowed = loaded.tokenizer.printable(vocab_size, ascii_only)
    if not allowed.any():
        raise ConfigError(f"--ascii-only leaves nothing of a vocabulary of {vocab_size}. Leave it out.")
    return None if allowed.all() else allowed


def encoded(options: Options, loaded: Checkpoint, place: str, prompt: Prompt, content: bytes) -> EncodedPrompt:
    """Return a prompt with its tokens and the ids that end its texts."""
    ends = frozenset() if options.ignore_eos else loaded.ends
    return EncodedPrompt.of(place, prompt, content, loaded.tokenizer, loaded.config.model.vocab_size, ends)
