"""`byhand chat`: a conversation with a model, in a terminal or line by line through a pipe."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from byhand.cli.arguments.drawing import Drawing, as_suggested
from byhand.cli.arguments.parsing import read
from byhand.cli.arguments.settings import Positional, Repeated, Switch
from byhand.cli.runs.prompts import Prompt
from byhand.cli.runs.sample import drawable
from byhand.cli.runs.session import HELP, Pause, Session, converse, typed
from byhand.cli.runs.texts import Continuation, EncodedPrompt
from byhand.cli.terminal.say import say
from byhand.config_checks import at_least, at_most
from byhand.conversations.formats import Chat
from byhand.conversations.messages import Message, Messages, conversation, shortened
from byhand.errors import DataError
from byhand.formats.names import Weights
from byhand.generation import Engine
from byhand.interop import exchange
from byhand.memory import require_room
from byhand.runs.contents import Checkpoint
from byhand.runtimes.protocol import Request
from byhand.runtimes.registry import offered


@dataclass(frozen=True)
class Options:
    """Chat with the model of a run.

    /help lists the commands, /exit or Ctrl-D ends, Ctrl-C stops an answer. Through a pipe every line is a question,
    except /reset and /exit.
    """

    run: Positional[Path]
    """The run folder, or one of its checkpoints; or a Hugging Face folder, a GGUF, or smollm2."""
    system: str = ""
    """System prompt."""
    max_new_tokens: int = 300
    """Longest answer in tokens: bytes, unless the run has another tokenizer."""
    stop: Repeated[str] = ()
    """Also end an answer before this text, or at this special token. Repeat it for several."""
    drawing: Drawing = field(default_factory=Drawing)
    ascii_only: Switch = False
    """Draw only printable ASCII, tab and newline."""
    runtime: Literal[offered()] = "auto"  # pyright: ignore[reportInvalidTypeForm]  (evaluated late)
    """numpy, or loops: the same text, faster; auto takes loops if Numba is installed."""
    weights: Weights = "float32"
    """bfloat16 reads half the bytes; q8_0 and q4_0 (blocks of 8 and 4 bits) a quarter and an eighth, at some loss."""
    threads: int = 0
    """Threads of the loops runtime; 0 uses all cores."""
    last: Switch = False
    """Use the weights of the last step, even if the run averages them."""
    stats: Switch = False
    """After each answer, print the tokens read, the time to the first token, and tokens per second."""

    def __post_init__(self) -> None:
        at_least(self, 0, "threads")
        at_most(self)
        assert self.answer  # checked now, so that errors name flags

    @property
    def answer(self) -> Prompt:
        """The settings of an answer."""
        return Prompt((), self.max_new_tokens, self.stop, 1, self.drawing)


class Talk:
    """Asks a model for the answers of a conversation.

    chat     the format of its prompts
    context  the most tokens that the model reads
    """

    def __init__(self, loaded: Checkpoint, options: Options) -> None:
        self.tokenizer, self.context = loaded.tokenizer, loaded.config.model.seq_len
        self.chat = Chat(loaded.tokenizer)
        self._ends = loaded.ends | self.chat.ends
        self._allowed, self.answer = drawable(options.ascii_only, loaded), options.answer
        self._said = False

    def ask(self, messages: Messages, before: int = 0, retries: int = 0) -> tuple[Continuation, list[Message]]:
        """Return the answer to the last message, to be drawn, and the messages it reads: those that leave it room.

        DataError if the last message alone leaves no room.

        before   earlier answers of the conversation: their random numbers would draw much of them again
        retries  answers already drawn for this message
        """
        free = min(self.answer.max_new_tokens, self.context // 4)  # a longer answer moves the window
        most, half = self.context - free, self.context // 2
        rest, _ = shortened(messages, lambda some: len(self.chat.prompt(some)), most, half)
        ids = self.chat.prompt(rest)
        if (size := len(ids)) + min(1, free) > self.context:
            system = " or the system prompt" * (rest[0].role == "system")
            raise DataError(
                f"the last message needs {size:,} tokens in the chat format, but the context is {self.context:,} "
                f"tokens and must hold an answer too. Shorten the message{system}."
            )
        if len(rest) < len(messages) and not self._said:
            say(
                f"the context of {self.context:,} tokens is full, {free:,} of them kept for an answer: "
                "the oldest questions and answers are left out now, down to half of it"
            )
            self._said = True
        drawing = self.answer.drawing
        if retries and drawing.greedy:
            raise DataError("at temperature 0 every answer is the same. Use a --temperature above 0.")
        answer = replace(self.answer, drawing=replace(drawing, seed=drawing.seed + before + retries))
        given = EncodedPrompt.of_tokens("the conversation", answer, ids, self.tokenizer, self._ends)
        (text,) = given.texts(self.tokenizer, self._allowed, False, self.chat.stops)
        text.stream.keeps = True  # the next question follows it
        return text, rest


def main(arguments: list[str]) -> int:
    """Run the command."""
    given = read(Options, arguments, "byhand chat")
    options = given.over()
    conversation([Message("system", options.system)], "--system")
    loaded = exchange.model(options.run)
    options = as_suggested(options, given, loaded.tokenizer.conventions, aloud=True)
    model = loaded.model(not options.last)
    if loaded.of_average and not options.last:
        say(loaded.of_average)
    loaded.forget()
    talk = Talk(loaded, options)
    how: Any = {"runtime": options.runtime, "weights": options.weights, "threads": options.threads}
    request = Request("generate", model.config, dtype=str(model.dtype), **how)
    require_room("the conversation", request, "Use a smaller model.")
    engine = Engine(model, **how, moves=True)
    if engine.choice.why:
        say(f"runtime {engine.choice.runtime.name}: {engine.choice.why}")
    if "chat" not in loaded.state and not loaded.tokenizer.conventions.templates:
        say(f"{options.run} was not trained on conversations: prompts use byhand's {talk.chat.name} chat format")
    session = talk.ask, engine, options.system, options.stats
    if sys.stdin.isatty():
        say(HELP)
        with Pause() as pause:
            return converse(Session(*session, pause), typed(pause))
    return converse(Session(*session), filter(None, map(str.strip, sys.stdin)))
