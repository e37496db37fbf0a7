"""A chat session: questions of one or several lines, and commands, which begin with a slash."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from byhand.cli.runs.texts import Continuation, pieces
from byhand.cli.terminal.interrupts import StopRequest
from byhand.cli.terminal.say import say, show, show_names
from byhand.cli.terminal.shown import on_terminal, quoted
from byhand.conversations.messages import Message, Messages, conversation
from byhand.errors import DataError, reason
from byhand.files.writing import create
from byhand.generation import Engine

PIPED = ("/exit", "/reset")  # the commands that a pipe may send
YOU, MORE, BLOCK = "> ", "... ", '"""'
ENDING = "Ctrl-D or /exit ends the conversation, as does another Ctrl-C"
HELP = "/help lists the commands, /exit or Ctrl-D ends, Ctrl-C stops an answer"
COMMANDS = {
    "/help": "list the commands",
    "/reset": "begin anew",
    "/retry": "draw the last answer again, with the next seed",
    "/system TEXT": "replace the system prompt; - removes it; without a text show it",
    "/save FILE": "write the conversation to a new file (talk.jsonl), in the form that train --chat reads",
    "/exit": "end; so does Ctrl-D",
    "// ...": "ask a question that begins with a slash",
    "... \\": "continue on the next line",
    BLOCK: "begin and end a question of several lines",
}
Ask = Callable[[Messages, int, int], tuple[Continuation, list[Message]]]


class Pause(StopRequest):
    """In the `with` block Ctrl-C stops the answer, or says how to end; the second one ends the program."""

    numbers = (signal.SIGINT,)

    def __init__(self) -> None:
        super().__init__()
        self.words = ""

    def taken(self) -> bool:
        """Return whether Ctrl-C came since the last call."""
        came, self.signal = self.signal is not None, None
        return came


class Session:
    """A conversation, and the commands that change it.

    head      the system prompt, if there is one
    messages  the questions and answers
    read      those that the model still reads
    code      the exit code
    """

    def __init__(self, ask: Ask, engine: Engine, system: str, stats: bool, pause: Pause | None = None) -> None:
        self._ask, self.engine, self.stats, self.pause = ask, engine, stats, pause
        self.head = [Message("system", system)] if system else []
        self.messages = self.read = list[Message]()
        self.retries = self.code = 0

    def ask(self, question: str) -> None:
        """Answer a question."""
        (asked,) = conversation([Message("user", question)], "your line")
        self._answer([*self.messages, asked], [*self.read, asked], 0)

    def _answer(self, messages: list[Message], read: list[Message], retries: int) -> None:
        """Answer the last of the messages; `read` are those that the model reads."""
        before = sum(message.role == "assistant" for message in messages)
        text, rest = self._ask([*self.head, *read], before, retries)
        written, answer = on_terminal if sys.stdout.isatty() else str, list[str]()
        for piece in pieces(self.engine, text):
            answer.append(piece)
            sys.stdout.write(written(piece))
            sys.stdout.flush()
            if self.pause and self.pause.taken():
                break
        show("", flush=True)
        if self.stats:
            text.say_stats()
        said = Message("assistant", "".join(answer))
        self.messages, self.read, self.retries = [*messages, said], [*rest[len(self.head) :], said], retries

    def obey(self, name: str, value: str) -> None:
        """Run a command, which began with a slash."""
        match name:
            case "/help":
                show_names(COMMANDS)
            case "/reset":
                self.messages = self.read = []
                say("the conversation starts over")
            case "/retry" if not self.read:
                say("there is no answer yet")
            case "/retry":
                self._answer(self.messages[:-1], self.read[:-1], self.retries + 1)
            case "/system" if value:
                self.head = [] if value == "-" else conversation([Message("system", value)], "/system")
            case "/system":
                show(self.head[0].content if self.head else "there is no system prompt")
            case "/save" if not self.messages:
                say("there is nothing to save yet")
            case "/save":
                self._save(Path(os.path.expanduser(value or "talk.jsonl")))
            case _:
                say(f"there is no command {quoted(name)}: /help lists them. // begins a question with a slash")

    def _save(self, path: Path) -> None:
        line = {"messages": [message.as_json() for message in (*self.head, *self.messages)]}
        try:
            create(path, [json.dumps(line, ensure_ascii=False).encode() + b"\n"])
        except FileExistsError:
            raise DataError(f"{path} exists already. Name another file.") from None
        except (OSError, ValueError) as error:
            raise DataError(f"cannot write {path}: {reason(error)}. Name another file.") from None
        say(f"saved in {path}")


def converse(session: Session, lines: Iterable[str]) -> int:
    """Answer each line, until the last one or /exit."""
    for line in lines:
        name, _, value = line.partition(" ")
        if line == "/exit":
            break
        try:
            slashes = 0 if "\n" in line or not session.pause else len(line) - len(line.lstrip("/"))
            if line in PIPED or slashes == 1:
                session.obey(name, value.strip())
            else:
                session.ask(line[1:] if slashes else line)
        except DataError as error:
            say(f"error: {error}")
            session.code = 0 if session.pause else 2  # a script sees that a line was not answered
    return session.code


def typed(pause: Pause) -> Iterator[str]:
    """Yield each text typed or pasted, unless it is blank."""
    with suppress(ImportError):
        import readline  # gives `input` line editing and a history

        if os.environ.get("TERM") != "dumb":
            readline.parse_and_bind("set enable-bracketed-paste on")  # pasted lines are one text
    while True:
        pause.words = ENDING
        try:
            text = input(YOU).strip()
            while text.endswith("\\"):
                text = f"{text[:-1]}\n{input(MORE).rstrip()}"
            if text.startswith(BLOCK):
                text = text.removeprefix(BLOCK)
                while not text.endswith(BLOCK):
                    text += f"\n{input(MORE).rstrip()}"
                text = text.removesuffix(BLOCK).strip()
                text = f"/{text}" if text.startswith("/") and "\n" not in text else text
        except EOFError:
            show("")
            return
        pause.words = ""
        pause.taken()
        if text:
            yield text
