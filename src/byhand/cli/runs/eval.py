"""`byhand eval`: how well a model predicts a text."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from byhand.choices import Chooser, MultipleChoice, choose, interval
from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional, Switch
from byhand.cli.terminal.say import say, show, show_json
from byhand.cli.terminal.shown import shown
from byhand.corpus.chats import ChatCorpus, chats_of, open_chats
from byhand.corpus.documents import Reading
from byhand.corpus.encoding import corpus_of
from byhand.corpus.texts import open_text
from byhand.errors import ConfigError
from byhand.evaluate import evaluate, evaluate_chats, window_of
from byhand.formats.names import Weights
from byhand.interop import exchange
from byhand.model import TinyGPT
from byhand.quantities import counted
from byhand.runtimes.registry import offered


@dataclass(frozen=True)
class Options:
    """Predict each token of a text but the first once, and report the mean loss; or answer questions.

    Tokens are bytes, or those of the run's tokenizer. If it puts a token before each text (BOS), each document begins
    with it, and the first token of the text is predicted too.
    """

    run: Positional[Path]
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2."""
    data: str = ""
    """A file (text, JSON lines, parquet, also compressed), a folder, a pattern like "books/*.txt", - for standard
    input, python-stdlib, or shakespeare."""
    chat: str = ""
    """Instead of --data: conversations in JSON lines, as `byhand train --chat` takes them. Report the loss on their
    answers."""
    choices: Path | None = None
    """Instead of --data: JSON lines such as {"ctx": "To be, or", "endings": ["not to be", "to bee"], "label": 0}, or
    as ARC has them. Report how often the right ending is the likeliest."""
    separator: str = " "
    """With --choices: text between context and ending unless one has white space there; '' for Chinese."""
    window: int | None = None
    """Tokens read at once, and the longest conversation; if not given, the model's context, at most 1024."""
    stride: int | None = None
    """Tokens between windows: each token has at least window - stride of context. Half a window if not given."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """numpy, or loops: the same loss, faster; auto takes loops if Numba is installed and the text is long."""
    weights: Weights = "float32"
    """As in `byhand sample`; shows what bfloat16, q8_0 or q4_0 costs in loss, computed with NumPy."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""
    json: Switch = False
    """Print one JSON object."""
    reading: Reading = field(default_factory=Reading)


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand eval")
    options = given.over()
    asked = [f"--{name}" for name in ("data", "chat", "choices") if getattr(options, name)]
    if len(asked) > 1:
        raise ConfigError(f"{' and '.join(asked)} ask for different figures. Give one of them.")
    if not asked:
        raise ConfigError(
            "byhand eval needs --data with a text, --chat with conversations, or --choices with questions. Give one "
            "of them."
        )
    if options.chat:
        given.refuse(("stride", "text_field", "encoding", "separator"), "with --chat")
    elif options.choices:
        given.refuse(("window", "stride", "text_field", "encoding", "exclude", "strict"), "with --choices")
    else:
        given.refuse(("separator",), "without --choices")
    loaded = exchange.model(options.run, unread=False)
    model = loaded.model(not options.last).merged()
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    loaded.forget()
    if options.choices:
        chooser = Chooser(model, loaded.tokenizer, loaded.ends, options.separator)
        _show_choices(options, choose(model, chooser, options.choices, options.runtime, options.weights))
        return 0
    if options.chat:
        window, chats = window_of(model, options.window), open_chats((options.chat,), reading=options.reading)
        _show_chats(options, model, chats_of(chats, loaded.tokenizer, window))
        return 0
    text = corpus_of(open_text(options.data, options.reading), loaded.tokenizer)
    result = evaluate(model, text, options.stride, options.runtime, True, options.weights, options.window)
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
            f"over {count} (windows of {result.window}, stride {result.stride})"
        )
    return 0


def _show_chats(options: Options, model: TinyGPT, chats: ChatCorpus) -> None:
    """Print the loss on the answers."""
    chats.require_vocabulary(model.config.vocab_size)
    result = evaluate_chats(model, chats, options.runtime, moves=True, weights=options.weights)
    if result.why:
        say(f"runtime {result.runtime}: {result.why}")
    if options.json:
        show_json(asdict(result))
        return
    show(
        f"{shown(chats.name, 200)}: {result.loss:.4f} nats per {chats.unit} = {result.bpb:.4f} bits per byte over "
        f"{counted(result.tokens, chats.unit)} of answers in {counted(chats.count, 'conversation')}"
    )


def _show_choices(options: Options, found: MultipleChoice) -> None:
    """Print accuracies with their intervals."""
    if found.why:
        say(f"runtime {found.runtime}: {found.why}")
    if options.json:
        show_json(asdict(found))
        return
    cut = f"; {counted(found.cut, 'context')} cut" if found.cut else ""
    show(
        f"{shown(options.choices, 200)}: {counted(found.questions, 'question')}, by chance {found.chance:.1%}{cut}; "
        "95% intervals in parentheses"
    )
    for how, share in (("likeliest", found.acc), ("per token", found.acc_tokens), ("per byte", found.acc_bytes)):
        low, high = interval(share, found.questions)
        show(f"  {how:<10} {share:6.1%} ({100 * low:.0f}–{high:.0%})")
