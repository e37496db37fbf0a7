"""A model with its tokenizer: text in, text out; from a run, or from files of another program."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from byhand.api.settings import documented, named
from byhand.cli.arguments.drawing import as_suggested
from byhand.cli.exchange import export as export_command
from byhand.cli.runs import chat, sample
from byhand.cli.runs.texts import Continuation, pieces
from byhand.config import TrainConfig
from byhand.conversations.messages import EXAMPLE, Message, conversation
from byhand.errors import ConfigError, DataError
from byhand.files import run_folder
from byhand.formats.names import Weights
from byhand.generation import Engine
from byhand.interop import exchange
from byhand.model import TinyGPT
from byhand.quantities import counted
from byhand.runs import metrics
from byhand.runs.contents import Checkpoint
from byhand.tokenizers.tokenizer import Tokenizer, utf8
from byhand.tracing.html import table

AnyPath = str | os.PathLike[str]
OF_SAMPLE = {
    "run",
    "prompt",
    "prompts",
    "samples",
    "streams",
    "last",
    "json",
    "logprobs",
    "stats",
}  # flags of the command only
OF_CHAT = {"run", "system", "last", "stats"}


class Loaded:
    """A model with its tokenizer, accepted wherever a path is, as in `byhand.train(init_from=loaded)`.

    path        the run, or the file or folder of another program
    checkpoint  the settings, arrays and tokenizer that were read
    model       with adapters merged; if its weights change between two texts, each begins with those of its time

    Threads may share it: each gets the same texts as alone.
    """

    def __init__(self, path: Path, checkpoint: Checkpoint, last: bool = False) -> None:
        self.path = path
        self.checkpoint = checkpoint
        self._model: TinyGPT = checkpoint.model(not last).merged()
        self._lent = False  # the caller has the model, and may change its weights
        self._checksum = -1  # of the weights behind the last text since then
        self.tokenizer: Tokenizer = checkpoint.tokenizer
        self._engines: dict[tuple[Any, ...], Engine] = {}
        self._lock = Lock()  # held while a text begins: tokenizers and templates are used by one thread at a time

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        m, count = self._model.config, sum(p.data.size for p in self._model.parameters().values())
        return (
            f"<{self.path}: {count:,} parameters, {counted(m.n_layers, 'layer')}, width {m.d_model}, "
            f"context {m.seq_len}, "
            f"tokens: {self.tokenizer.kind}>"
        )

    def _repr_html_(self) -> str:
        parameters = self._model.parameters().items()
        rows = ((name, " × ".join(map(str, p.data.shape)), f"{p.data.size:,}") for name, p in parameters)
        return table(repr(self), ("parameter", "shape", "numbers"), rows)

    @property
    def model(self) -> TinyGPT:
        """The model; from now on each text first checks whether its weights have changed."""
        self._lent = True
        return self._model

    @property
    def config(self) -> TrainConfig:
        """All settings; `config.model` has the model's."""
        return self.checkpoint.config

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return run_folder.run_of(self.path)

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """The numbers of each update up to this checkpoint, as in metrics.jsonl; [] if it is not a run."""
        rows = metrics.read(self.folder) if self.path.is_dir() else []
        return [row for row in rows if row["step"] <= self.checkpoint.step]

    @property
    def loss(self) -> float | None:
        """The last validation loss up to this checkpoint, in nats per token; None if there was none."""
        return next((row["val/loss"] for row in reversed(self.metrics) if "val/loss" in row), None)

    def generate(self, prompt: str | bytes = "", **settings: Any) -> str:
        """Return the continuation of the prompt, without the prompt.

        The first call prepares the runtime; further ones reuse it.

        Raises ConfigError or DataError for invalid settings or prompts, NonFiniteError if the logits are not finite.
        """
        return "".join(self.stream(prompt, **settings))

    def stream(self, prompt: str | bytes = "", **settings: Any) -> Iterator[str]:
        """Yield the text that `generate` returns, piece by piece as it is drawn."""
        return pieces(*self._begun(prompt, settings))

    def chat(self, messages: str | Iterable[Mapping[str, str]], **settings: Any) -> str:
        """Return the answer to a question, or to the last of the messages, in the model's chat template.

        Messages that continue those of the previous call are not read again, unless the weights have changed.
        The same messages and settings give the same answer; another `seed` gives another one.

        messages  such as {"role": "user", "content": "To be?"}; roles are system, user, assistant; the last is user

        Raises DataError for invalid messages, ConfigError for invalid settings.
        """
        given = named(chat.Options, "chat", settings, OF_CHAT)
        asked = as_suggested(given.over(chat.Options(self.path)), given, self.tokenizer.conventions)
        with self._lock:
            text, _ = chat.Talk(self.checkpoint, asked).ask(_conversation(messages))
            engine = self._engine(asked.runtime, asked.weights, True, asked.threads)
        return "".join(pieces(engine, text))

    def _begun(self, prompt: str | bytes, settings: dict[str, Any]) -> tuple[Engine, Continuation]:
        """Return the engine of these settings, reused for every text, and a text for it."""
        if not isinstance(prompt, str | bytes):
            raise DataError(f"the prompt is {prompt!r:.80}, but must be a text. Give a str, or bytes.")
        options = named(sample.Options, "generate", settings, OF_SAMPLE)
        asked = as_suggested(options.over(sample.Options(self.path)), options, self.tokenizer.conventions)
        content = utf8(prompt) if isinstance(prompt, str) else prompt
        with self._lock:
            given = sample.encoded(asked, self.checkpoint, "the prompt", asked.text, content)
            given.say_what_is_cut(self.tokenizer, self._model.config.seq_len)
            (text,) = given.texts(self.tokenizer, sample.drawable(asked.ascii_only, self.checkpoint), False)
            return self._engine(asked.runtime, asked.weights, not asked.no_cache, asked.threads), text

    def _engine(self, runtime: str, weights: Weights, cache: bool, threads: int) -> Engine:
        """Return the engine of these settings, reused for every text; it rereads weights that have changed."""
        if self._lent:
            checksum = 0
            for p in self._model.parameters().values():
                checksum = zlib.crc32(np.ascontiguousarray(p.data).data, checksum)
            if checksum != self._checksum:
                for engine in self._engines.values():
                    engine.forget()
            self._checksum = checksum
        how = (runtime, weights, cache, threads)
        if how not in self._engines:
            made = Engine(self._model, runtime=runtime, weights=weights, cache=cache, threads=threads)
            self._engines[how] = made
        return self._engines[how]


def _conversation(messages: Any) -> list[Message]:
    """Return the messages that a caller gives; DataError unless the last one is a question."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if isinstance(messages, bytes) or not isinstance(messages, Iterable):
        raise DataError(f"messages is {messages!r:.80}, but must be a question, or a list of messages: {EXAMPLE}.")
    found = conversation(messages if isinstance(messages, Mapping) else list(messages), "messages")
    if not found or found[-1].role != "user":
        last = f"the last message is from {found[-1].role}" if found else "there is no message"
        raise DataError(f"{last}, so there is nothing to answer. End with a message of the role user.")
    return found


def _path(value: Any, name: str, what: str = "a run or of a model") -> Path:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ConfigError(f"{name} is {value!r:.80}, but must be the path of {what}.")
    return Path(value)


documented(chat.Options(Path()), OF_CHAT)(Loaded.chat)
for method in (Loaded.generate, Loaded.stream):
    documented(sample.Options(Path()), OF_SAMPLE)(method)


def load(path: AnyPath, *, tokenizer: str = "", last: bool = False) -> Loaded:
    """Return the model of a run, or of anything that `byhand import` reads.

    path       a run or one of its checkpoints, a Hugging Face folder, a GGUF, a checkpoint of llm.c, nanoGPT or the
               original program
    tokenizer  for a model that comes without: a tokenizer.json, a folder with one, or bytes
    last       the weights of the last step, even if the run averages them

    Raises CheckpointError, DataError or ConfigError in one line if it cannot be read, or byhand cannot compute it.
    """
    place = _path(path, "path")
    if not run_folder.is_of_byhand(place) and not (place / "config.json").exists() and run_folder.runs_in(place):
        raise run_folder.without_checkpoint(place)
    return Loaded(place, exchange.opened(place, tokenizer), last)


def export(run: Loaded | AnyPath, out: AnyPath, *, to: str = "hf", **settings: Any) -> list[Path]:
    """Write a model and its tokenizer for other programs into a new or empty folder; return the files.

    run  loaded, or its path
    to   hf: a folder for transformers; gguf: a file for llama.cpp and its relatives

    Raises ConfigError if the format cannot store the model, with what to change; DataError for an unusable folder.
    """
    loaded = run if isinstance(run, Loaded) else load(run)
    values = {"run": loaded.path, "out": out if out == "" else _path(out, "out", "a folder"), "to": to, **settings}
    options = named(export_command.Options, "export", values).over()
    return export_command.exported(options, lambda: loaded.checkpoint)
