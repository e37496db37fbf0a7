"""`byhand chat`: a conversation with a model, in a terminal or line by line through a pipe."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from byhand.cli.arguments.drawing import Drawing
from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional, Repeated, Switch
from byhand.cli.runs.prompts import Prompt
from byhand.cli.runs.sample import drawable
from byhand.cli.runs.texts import Continuation, EncodedPrompt, pieces
from byhand.cli.terminal.interrupts import StopRequest
from byhand.cli.terminal.say import say, show
from byhand.cli.terminal.shown import on_terminal
from byhand.conversations.formats import Chat
from byhand.conversations.messages import Message, Messages, conversation, shortened
from byhand.errors import DataError
from byhand.formats.names import Weights
from byhand.generation import Engine
from byhand.memory import require_room
from byhand.runs import checkpoint
from byhand.runs.contents import Checkpoint
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import offered

YOU = "> "
ENDING = "Ctrl-D or /exit ends the conversation, as does another Ctrl-C"
HELP = "/reset begins anew, /exit or Ctrl-D ends, Ctrl-C stops an answer"


@dataclass(frozen=True)
class Options:
    """Talk with the model of a run: it answers each line, and remembers those before as far as it can read.

    /reset forgets them, /exit or Ctrl-D ends, Ctrl-C stops an answer. Through a pipe each line gets an answer too.
    """

    run: Positional[Path]
    """The run folder, or one of its checkpoints."""
    system: str = ""
    """A text that stands before the conversation, and says how to answer."""
    max_new_tokens: int = 300
    """How many tokens an answer has at most: bytes, unless the run has another tokenizer."""
    stop: Repeated[str] = ()
    """End an answer before this text too, or at this special token. Repeat it for several."""
    drawing: Drawing = field(default_factory=Drawing)
    ascii_only: Switch = False
    """Draw only printable ASCII, tab and newline."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """numpy, or loops: the same text, faster; auto takes loops if Numba is installed."""
    weights: Weights = "float32"
    """bfloat16 reads half as much; q8_0 and q4_0 (blocks of 8 and 4 bits) a quarter and an eighth, at some loss."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""

    def __post_init__(self) -> None:
        assert self.answer  # checked now, so that errors name flags

    @property
    def answer(self) -> Prompt:
        """How an answer is drawn."""
        return Prompt((), self.max_new_tokens, self.stop, 1, self.drawing)


class Pause(StopRequest):
    """In the `with` block Ctrl-C stops the answer, or says how to end; the second one ends the program."""

    numbers = (signal.SIGINT,)

    def __init__(self) -> None:
        super().__init__()
        self.words = ""

    def taken(self) -> bool:
        """Return whether Ctrl-C came since it was asked last."""
        came, self.signal = self.signal is not None, None
        return came


class Talk:
    """A model's answers, and the conversation that they belong to.

    chat     how it is asked
    context  the tokens that the model reads at most
    """

    def __init__(self, loaded: Checkpoint, options: Options) -> None:
        self.tokenizer, self.context = loaded.tokenizer, loaded.config.model.seq_len
        self.chat = Chat(loaded.tokenizer)
        self._ends = loaded.ends | self.chat.ends
        self._allowed, self._answer = drawable(options.ascii_only, loaded), options.answer
        self._said = False

    def ask(self, messages: Messages) -> tuple[Continuation, list[Message]]:
        """Return the text that answers the last message, and what it reads: as much as leaves room for an answer."""
        free = min(self._answer.max_new_tokens, self.context // 4)  # a longer answer moves the window
        rest, whole = shortened(messages, lambda some: len(self.chat.prompt(some)), self.context - free)
        if not (whole or self._said):
            say(
                f"the model reads {self.context:,} tokens, of which {free:,} are kept for an answer: "
                "the oldest questions and answers are left out now"
            )
            self._said = True
        ids = self.chat.prompt(rest)
        given = EncodedPrompt.of_tokens("the conversation", self._answer, ids, self.tokenizer, self._ends)
        given.say_what_is_cut(self.tokenizer, self.context)
        (text,) = given.texts(self.tokenizer, self._allowed, False, self.chat.stops)
        text.stream.keeps = True  # the next question follows it
        return text, rest


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = read(Options, arguments, "byhand chat").over()
    before = [Message("system", options.system)] if options.system else []
    conversation(before, "--system")
    loaded = checkpoint.load(options.run, moments=False, unread=True)
    model = loaded.model(not options.last)
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    loaded.forget()
    talk = Talk(loaded, options)
    request = Request("generate", model.config, options.runtime, str(model.dtype), weights=options.weights)
    require_room("the conversation", request, "Use a smaller model.")
    engine = Engine(model, runtime=options.runtime, weights=options.weights, moves=True)
    if engine.choice.why:
        say(f"runtime {engine.choice.runtime.name}: {engine.choice.why}")
    if "chat" not in loaded.state and not loaded.tokenizer.conventions.templates:
        say(f"{options.run} was not trained on conversations: it is asked in byhand's {talk.chat.name} format")
    if sys.stdin.isatty():
        say(HELP)
        with Pause() as pause:
            return _talk(talk, engine, before, pause)
    return _talk(talk, engine, before, None)


def _talk(talk: Talk, engine: Engine, before: list[Message], pause: Pause | None) -> int:
    """Answer each line, until the last one or /exit."""
    messages, written = list(before), on_terminal if sys.stdout.isatty() else str
    code = 0
    for line in _lines(pause):
        if line == "/exit":
            break
        if line == "/reset":
            messages = list(before)
            say("the conversation begins anew")
            continue
        try:
            (question,) = conversation([Message("user", line)], "your line")
            text, messages = talk.ask([*messages, question])
        except DataError as error:
            say(f"error: {error}")
            code = 0 if pause else 2  # a script sees that a line was not answered
            continue
        answer = list[str]()
        for piece in pieces(engine, text):
            answer.append(piece)
            sys.stdout.write(written(piece))
            sys.stdout.flush()
            if pause and pause.taken():
                break
        show("", flush=True)
        messages.append(Message("assistant", "".join(answer)))
    return code


def _lines(pause: Pause | None) -> Iterator[str]:
    """Yield the lines that are not blank."""
    if pause is None:
        for line in sys.stdin:
            if line := line.strip():
                yield line
        return
    with suppress(ImportError):
        import readline  # noqa: F401  (input then edits the line, and knows those before)
    while True:
        pause.words = ENDING
        try:
            line = input(YOU).strip()
        except EOFError:
            show("")
            return
        pause.words = ""
        pause.taken()
        if line:
            yield line
