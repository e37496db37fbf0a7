"""`byhand trace`: every array of a pass, of the way back and of the step behind it, as files for a port to read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from byhand.bench.shapes import OFFERED, shape_of
from byhand.book.port import model as page
from byhand.book.port import recording
from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional
from byhand.cli.learn.explain import read_prompt
from byhand.cli.terminal.say import show
from byhand.cli.terminal.shown import shown
from byhand.errors import ConfigError, DataError, command
from byhand.files.reading import parse_integer
from byhand.interop import exchange
from byhand.model import TinyGPT
from byhand.optim import AdamW
from byhand.tracing.questions import Questions


@dataclass(frozen=True)
class Options:
    """Write every array of a pass, of its gradients and of the step behind it into a folder, for a port to compare.

    Of a run, of a model of docs/guides/port.md, or of one of a shape with random weights.
    """

    run: Positional[Path | None] = None
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2."""
    page: Literal[tuple(page.CONFIGS)] | None = None  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """Instead of a run: a model of docs/guides/port.md, with its weights, tokens and step."""
    shape: str = ""
    """Instead of a run: random weights of this shape, as in `byhand bench train`: tiny, or B,T,C[/F],L,H[/K],V."""
    architecture: Literal[OFFERED] = "plain"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """With --shape: the architecture of a preset."""
    seed: int = 0
    """With --shape: seeds the weights."""
    prompt: str = "To be"
    """The text that a run reads; the targets are its next tokens."""
    tokens: str = ""
    """Instead of --prompt, also with --shape: token ids, such as 3,1,4; the last one is only predicted."""
    dtype: Literal["float64", "float32"] = "float64"
    """Type of the computation and of the files."""
    out: Path = field(kw_only=True)
    """The new or empty folder to write into."""


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand trace")
    options = given.over()
    if (options.run is not None) + (options.page is not None) + bool(options.shape) != 1:
        raise ConfigError("byhand trace needs a run, --page or --shape, and only one of them.")
    if options.page is not None:
        given.refuse(("prompt", "tokens"), "with --page: its tokens are those of the page")
    if not options.shape:
        given.refuse(("seed", "architecture"), "without --shape")
    if options.run is None or options.tokens:
        given.refuse(("prompt",), "with --tokens or without a run")
    asked = _questions(options)
    recording.require_empty(options.out)
    with np.errstate(all="ignore"):
        found = recording.recorded(asked, options.page or "")
    count = recording.write(found, options.out, options.dtype)
    show(f"wrote {shown(options.out)}: {len(found.arrays)} arrays with {count:,} numbers, in {options.dtype}")
    show(f"Compare with: {shown(command('byhand', 'diff', options.out, 'THEIRS'))}")
    return 0


def _questions(options: Options) -> Questions:
    """Return the pass; a run's optimizer stands where training would go on."""
    if options.page is not None:
        return page.questions(options.page, options.dtype)
    if options.run is None:
        shape = shape_of(options.shape, options.architecture)
        network = TinyGPT(shape.model(), options.seed)
        tokens, targets = _tokens(options.tokens) if options.tokens else shape.random_batch()
        optimizer, clip = AdamW(), 0.0
    else:
        loaded = exchange.model(options.run, moments=True, unread=False)
        network, optimizer, clip = loaded.model(False), loaded.optimizer(), loaded.config.optim.grad_clip
        ids = _tokens(options.tokens) if options.tokens else None
        tokens, targets = ids or read_prompt(options.prompt, None, True, loaded.tokenizer)
        for kind, arrays in optimizer.moments.items():
            optimizer.moments[kind] = {name: array.astype(options.dtype) for name, array in arrays.items()}
    arrays = {name: np.asarray(p.data).astype(options.dtype) for name, p in network.parameters().items()}
    return Questions(TinyGPT(network.config, arrays=arrays), tokens, targets, optimizer, clip)


def _tokens(text: str) -> tuple[list[list[int]], list[list[int]]]:
    """Return the token ids of a list, and their targets, each (1, T)."""
    ids = [parse_integer(word.strip(), "--tokens:") for word in text.split(",")]
    if len(ids) < 2:
        raise DataError("--tokens has one token. Give at least two: the last one is only predicted.")
    return [ids[:-1]], [ids[1:]]
