"""`byhand eval`: how well a model predicts a text."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from byhand.cli.arguments.parsing import parse
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import say, show, show_json
from byhand.cli.terminal.shown import shown
from byhand.corpus.documents import Reading
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import open_text
from byhand.evaluate import evaluate
from byhand.runs import checkpoint
from byhand.runtimes.registry import offered


@dataclass(frozen=True)
class Options:
    """Predict every token of a text but the first, once, and report the mean loss.

    Tokens are the bytes of the text, or those of the tokenizer that the run was trained with.
    """

    run: Positional[Path]
    """The run folder, or one of its checkpoints."""
    data: str
    """A file (text, JSON lines, parquet, also compressed), a folder, a pattern like "books/*.txt", - for standard
    input, python-stdlib, or shakespeare."""
    stride: int | None = None
    """Tokens between windows: each token has at least seq_len - stride of context. Half of seq_len if not given."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """numpy, or loops: the same loss, faster; auto takes loops if Numba is installed and the text is long."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""
    json: Switch = False
    """Print one JSON object."""
    reading: Reading = field(default_factory=Reading)


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, "byhand eval")
    loaded = checkpoint.load(options.run, moments=False)
    model = loaded.model(not options.last)
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    text = corpus_of(open_text(options.data, options.reading), loaded.tokenizer)
    result = evaluate(model, text, options.stride, options.runtime)
    if result.why:
        say(f"runtime {result.runtime}: {result.why}")
    if options.json:
        show_json(asdict(result))
    else:
        unit, count = text.unit, f"{result.bytes:,} bytes"
        if unit != "byte":
            count = f"{result.tokens:,} {unit}s, {count}"
        show(
            f"{shown(text.name, 200)}: {result.loss:.4f} nats per {unit} = {result.bpb:.4f} bits per byte "
            f"over {count} (windows of {model.config.seq_len}, stride {result.stride})"
        )
    return 0
