"""The engine's thread, and its handover to the event loop.

One thread has the engine: a step, a submission, a step. Between two steps the loop gets what they have made, all
choices in one batch, so that neither waits long for Python's lock, and requests are served while the engine steps.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

from byhand.errors import UNSOUND_LOGITS
from byhand.generation import Engine, Full, Stream
from byhand.generation.engine import LIVE
from byhand.runtimes.sampling import Candidates
from byhand.serving.limits import RequestError
from byhand.serving.text import GrowingText

log = logging.getLogger(__name__)
Result = TypeVar("Result")
FAILED = "a step of the engine failed; the server's log has more"


class Ended(SystemExit):
    """Work is ended; a thread that it reaches late ends without a word."""


class Lane:
    """One kind of work, in threads, one after the other, and a bound of what waits. It never holds up the process.

    ends  what is asked for by nobody any more is ended, before its next step in Python; else it runs to its end
    """

    def __init__(self, name: str, most: int, ends: bool = False) -> None:
        self._name, self._most, self._ends = f"byhand-{name}", most, ends
        self._waiting, self._turn, self._closed = 0, asyncio.Lock(), False
        self._thread: threading.Thread | None = None

    async def run(self, function: Callable[..., Result], *arguments: object, bounded: bool = True) -> Result:
        """Return what a function returns that a thread calls; if `bounded`, Full where too much waits."""
        if bounded and self._waiting >= self._most:
            raise Full(f"{self._most} requests wait already. Try again later.")
        self._waiting += 1  # what a thread has begun counts until it is done
        try:
            await self._turn.acquire()
        except BaseException:
            self._waiting -= 1
            raise
        loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        def settle(result: Any, error: Exception | None) -> None:
            self._waiting, self._thread = self._waiting - 1, None
            self._turn.release()
            done.set_exception(error) if error else done.set_result(result)
            done.exception()  # whoever asked may be gone

        def work() -> None:
            result, error = None, RequestError("the server is stopping. Ask again later.", 503)
            try:
                if not self._closed:
                    result, error = function(*arguments), None
            except Ended:
                pass
            except Exception as found:
                error = found
            finally:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(settle, result, error)

        self._thread = threading.Thread(target=work, name=self._name, daemon=True)
        self._thread.start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            self._end()
            raise

    def close(self) -> None:
        """Begin nothing more."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        if thread and self._ends:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Ended))


class Token(NamedTuple):
    """A token of an answer.

    logp    ln p; None: it is the first of a prompt
    offset  in characters of the text
    ends    it ended the text, and has none of its own
    """

    id: int
    logp: float | None
    likeliest: Candidates
    offset: int
    ends: bool = False


class Growth(NamedTuple):
    """What a choice has gained. The last one has a reason why it ended, or an error."""

    text: str
    tokens: Sequence[Token]
    finish: Literal["stop", "length"] | None = None
    error: str = ""


@dataclass(eq=False)
class ServedChoice:
    """One text of a request.

    echo   it begins with the prompt
    """

    stream: Stream
    text: GrowingText
    echo: bool = False
    given: int = 0
    dropped: bool = False

    @property
    def drawn(self) -> int:
        """How many tokens the model has drawn, those of a stop text and the one that ended it too."""
        return self.text.count + (self.stream.ended is not None)

    def more(self) -> Growth | None:
        """Return what is new; None if nothing is."""
        stream = self.stream
        if stream.status not in (*LIVE, "finished"):
            return Growth("", (), error=UNSOUND_LOGITS)
        ended = stream.status == "finished"
        if not ended and stream.unscored:
            return None
        text, offsets = self.text.more(ended)
        tokens = [self._token(self.given + i, offset) for i, offset in enumerate(offsets)] if stream.scored else []
        self.given += len(offsets)
        if ended and stream.ended and stream.scored:
            tokens.append(Token(*stream.ended, self.text.length, ends=True))
        if not (text or tokens or ended):
            return None
        stopped = stream.ended is not None or self.text.stopped
        return Growth(text, tokens, ("stop" if stopped else "length") if ended else None)

    def _token(self, i: int, offset: int) -> Token:
        """Return token number i of the text."""
        stream, echoed = self.stream, self.stream.prompt if self.echo else 0
        if i == 0 and self.echo:
            return Token(stream.tokens[0], None, [], offset)
        if i < echoed:
            if not stream.prompt_scored:  # candidates are compared by what was drawn
                return Token(stream.tokens[i], None, [], offset)
            top = stream.prompt_tops[i - 1] if stream.prompt_tops else []
            return Token(stream.tokens[i], stream.prompt_logprobs[i - 1], top, offset)
        drawn = i - echoed
        top = stream.tops[drawn] if stream.tops else []
        return Token(stream.tokens[stream.prompt + drawn], stream.logprobs[drawn], top, offset)


@dataclass(eq=False)
class Answers:
    """The choices of a request while they grow; outside of the `with` block nothing works on them."""

    worker: Worker
    choices: Sequence[ServedChoice]
    pieces: asyncio.Queue[tuple[int, Growth]] = field(default_factory=asyncio.Queue)

    async def begin(self) -> None:
        """Submit the choices, all or none; Full if too many texts wait."""
        try:
            await self.worker.submit(self)
        except BaseException:
            self.cancel()
            raise

    async def follow(self) -> AsyncIterator[tuple[int, Growth]]:
        """Yield each piece with the index of its choice, until all have ended; RequestError at one that fails."""
        live = len(self.choices)
        while live:
            index, piece = await self.pieces.get()
            if piece.error:
                raise RequestError(piece.error, 500)
            yield index, piece
            live -= piece.finish is not None

    def cancel(self) -> None:
        """End what has not ended, before the next token."""
        for choice in self.choices:
            choice.dropped = True
            self.worker.engine.cancel(choice.stream)


class Worker:
    """An engine, the thread that has it, and the task that lets it step while there is work."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._thread = ThreadPoolExecutor(1, "byhand-engine")
        self._live: dict[ServedChoice, tuple[Answers, int]] = {}
        self._work, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._task = asyncio.create_task(self._drive())

    async def submit(self, answers: Answers) -> None:
        """Submit the choices of a request."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._submit, answers)
        self._work.set()

    def _submit(self, answers: Answers) -> None:
        for choice in answers.choices:
            self.engine.submit(choice.stream)
        for i, choice in enumerate(answers.choices):
            self._live[choice] = answers, i

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._work.wait()
            self._work.clear()
            self._idle.clear()
            while self._live:
                for answers, i, piece in await loop.run_in_executor(self._thread, self._advance):
                    answers.pieces.put_nowait((i, piece))
            self._idle.set()

    def _advance(self) -> list[tuple[Answers, int, Growth]]:
        """Step, and return what each choice has gained."""
        try:
            self.engine.step()
            found = {choice: self._more(choice) for choice in self._live if not choice.dropped}
        except Exception as error:  # a defect, or no memory: it must not end the server
            found = dict.fromkeys(self._live, self._failed(error, *self._live))
        batch = [(*self._live[choice], piece) for choice, piece in found.items() if piece is not None]
        for choice in list(self._live):
            piece = found.get(choice)
            if choice.dropped or (piece is not None and (piece.finish or piece.error)):
                del self._live[choice]
        return batch

    def _more(self, choice: ServedChoice) -> Growth | None:
        """Return what a choice has gained; a defect there ends it and no other."""
        try:
            return choice.more()
        except Exception as error:
            return self._failed(error, choice)

    def _failed(self, error: Exception, *choices: ServedChoice) -> Growth:
        log.error("a step failed: %s: %s", type(error).__name__, error)
        for choice in choices:
            self.engine.cancel(choice.stream)
        return Growth("", (), error=FAILED)

    async def close(self) -> None:
        """Finish what was submitted, and end."""
        await self._idle.wait()
        self._task.cancel()
        self._thread.shutdown(wait=False)
