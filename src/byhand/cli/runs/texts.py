"""The texts that `byhand sample` continues: each prompt's tokens and streams, and how they are shown."""

from __future__ import annotations

import codecs
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from byhand.cli.arguments.parsing import text_bytes
from byhand.cli.runs.prompts import Prompt
from byhand.cli.terminal.say import say, show, show_json
from byhand.cli.terminal.shown import on_terminal
from byhand.generation import Engine, StopText, Stream
from byhand.generation.engine import LIVE, sound
from byhand.generation.text import beginning
from byhand.quantities import counted
from byhand.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt with its tokens.

    place   what messages call it
    stop    ids that end its texts
    """

    place: str
    prompt: Prompt
    content: bytes
    tokens: list[int]
    stop: frozenset[int]

    @classmethod
    def of(
        cls, place: str, prompt: Prompt, content: bytes, tokenizer: Tokenizer, vocab_size: int, ends: frozenset[int]
    ) -> EncodedPrompt:
        """Encode a prompt with what its tokenizer adds; if that is nothing, a newline. `ends` end every text."""
        tokens = tokenizer.prompt(content) or beginning(tokenizer, vocab_size)
        return cls.of_tokens(place, prompt, tokens, tokenizer, ends, content)

    @classmethod
    def of_tokens(
        cls,
        place: str,
        prompt: Prompt,
        tokens: list[int],
        tokenizer: Tokenizer,
        ends: frozenset[int],
        content: bytes = b"",
    ) -> EncodedPrompt:
        """Return a prompt of these tokens."""
        special = tokenizer.special
        named = {special[text] for text in prompt.stop if text in special}
        return cls(place, prompt, content, tokens, ends | named)

    def say_what_is_cut(self, tokenizer: Tokenizer, context: int) -> None:
        """Say how much of the prompt the model does not read."""
        count = len(self.tokens)
        if count > context:
            cut = counted(count - context, tokenizer.unit)
            say(f"{self.place}: its first {cut} of {count:,} are cut, as the model reads at most {context:,}")

    def texts(
        self, tokenizer: Tokenizer, allowed: Any, scored: bool, stops: Iterable[bytes] = ()
    ) -> Iterator[Continuation]:
        """Yield its continuations, with consecutive seeds; `stops` end them too."""
        prompt, stops = self.prompt, [*stops, *(text_bytes(text, "stop") for text in self.prompt.stop)]
        for i in range(prompt.samples):
            drawing = replace(prompt.drawing, seed=prompt.drawing.seed + i)
            until = StopText(tokenizer.decoder(self.tokens[-1]), stops) if stops else None
            stream = Stream(self.tokens, prompt.max_new_tokens, drawing, allowed, self.stop, scored, until)
            yield Continuation(self, stream, tokenizer)


@dataclass
class Continuation:
    """A continuation of a prompt, and how much of it was shown."""

    given: EncodedPrompt
    stream: Stream
    tokenizer: Tokenizer
    known: int = 0  # tokens, or bytes if it has stop texts
    decoder: Any = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")(errors="replace"))

    def more(self) -> str:
        """Return the text gained since the last call; bytes of an incomplete character wait for the rest."""
        stream, ended = self.stream, self.stream.status not in LIVE
        if isinstance(stream.until, StopText):
            end = len(stream.until.text) if ended else stream.until.settled
            new, self.known = stream.until.text[self.known : end], end
        else:
            begin = stream.prompt + self.known
            new = self.tokenizer.decode(stream.tokens[begin:], stream.tokens[begin - 1])
            self.known = len(stream.tokens) - stream.prompt
        return self.decoder.decode(new, final=ended)

    @property
    def ended_at_once(self) -> bool:
        """Whether the first token drawn was the model's own end."""
        stream = self.stream
        return not stream.drawn and stream.count > 0 and stream.status == "finished" and not self.given.prompt.stop

    def as_json(self, stats: bool = False) -> dict[str, Any]:
        """Return the finished text as `--json` and `--prompts` print it."""
        scores = {"logprobs": self.stream.logprobs} if self.stream.scored else {}
        prompt = self.given.content.decode(errors="replace")
        found = {"prompt": prompt, "text": self.more(), "ids": self.stream.drawn, **scores}
        return found | (self.stats() if stats else {})

    def stats(self) -> dict[str, Any]:
        """Return how many prompt tokens were read and reused, and how fast the text was drawn."""
        times = self.stream.times or [(0.0, 0)]
        (begun, _), (first, few), (last, count) = times[0], times[:2][-1], times[-1]
        return {
            "read": self.stream.read,
            "reused": self.stream.reused,
            "first_token_s": round(first - begun, 6) if few else None,
            "tokens_per_s": round((count - few) / (last - first), 3) if last > first else None,
        }

    def say_stats(self) -> None:
        """Print the stats as one line."""
        found = self.stats()
        first, speed = found["first_token_s"], found["tokens_per_s"]
        say(
            f"read {counted(found['read'], 'token')} of the prompt, reused {found['reused']:,}"
            + (f"; first token after {first:.3g} s" if first is not None else "")
            + (f", then {speed:.1f} tokens/s" if speed else "")
        )


def pieces(engine: Engine, text: Continuation) -> Iterator[str]:
    """Yield a text piece by piece as it is drawn; leaving the loop ends the text."""
    stream = engine.submit(text.stream)
    try:
        while stream.status in LIVE:
            engine.step()
            with engine.lock:
                piece = text.more()
            if piece:
                yield piece
    finally:
        engine.cancel(stream)
    if piece := text.more():  # it ended in the steps of another text
        yield piece
    sound(stream)


def show_lines(engine: Engine, texts: Iterable[Continuation], stats: bool = False) -> None:
    """Print one line of JSON per text, in order, as soon as it and all before it have ended."""
    for text in _followed(engine, texts):
        if text.stream.status not in LIVE:
            sound(text.stream)
            show_json(text.as_json(stats))
            sys.stdout.flush()


def show_texts(engine: Engine, texts: Iterable[Continuation], count: int, stats: bool = False) -> None:
    """Print each text after its prompt, as it is drawn; several one after the other, each below its seed."""
    written = on_terminal if sys.stdout.isatty() else str
    shown, number = None, 0
    for text in _followed(engine, texts):
        if text is not shown:
            shown, number = text, number + 1
            if count > 1:
                show(f"--- {number} of {count}, seed {text.stream.sampling.seed} ---")
            sys.stdout.write(written(text.decoder.decode(text.given.content)))
        sys.stdout.write(written(text.more()))
        if text.stream.status not in LIVE:
            sound(text.stream)
            sys.stdout.write("\n")
            if text.ended_at_once:
                sys.stdout.flush()
                say("the model ended the text at its first token; --ignore-eos lets it go on")
            if stats:
                sys.stdout.flush()
                text.say_stats()
        sys.stdout.flush()


def _followed(engine: Engine, texts: Iterable[Continuation]) -> Iterator[Continuation]:
    """Continue texts; yield the oldest unfinished one after each step, and once more when it ends."""
    waiting = deque[Continuation]()

    def streams() -> Iterator[Stream]:
        for text in texts:
            waiting.append(text)
            yield text.stream

    for stream in engine.follow(streams()):
        yield waiting[0]
        if stream.status not in LIVE:
            waiting.popleft()
