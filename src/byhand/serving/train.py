"""The routes of a run that trains in front of someone; one at a time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Annotated, Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from byhand.errors import ByhandError, DataError
from byhand.exploring.training import Training
from byhand.exploring.view import View
from byhand.runs.run import Pace, Run
from byhand.serving.errors import as_json
from byhand.serving.explorer import Explorer
from byhand.serving.limits import RequestError
from byhand.serving.worker import Lane
from byhand.tracing.targets import parse_target

log = logging.getLogger(__name__)
Opening = Callable[[Mapping[str, Any], str], AbstractContextManager[tuple[Run, Pace | None]]]
MOST_STEPS, MOST_MINUTES = 100_000, 600
SHORTEST, LONGEST = 256, 1 << 20  # characters of a text
SAMPLE = 80  # tokens


class TrainingRequest(BaseModel):
    """What a request about training is."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TrainAsked(TrainingRequest):
    """A run to begin: a text, and either a number of updates of a shape, or a time, which chooses both."""

    text: Annotated[str, Field(min_length=SHORTEST, max_length=LONGEST)]
    minutes: Annotated[float, Field(gt=0, le=MOST_MINUTES)] | None = None
    steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    preset: Literal["tiny", "nano", "modern"] = "tiny"
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] = 1


class GoAsked(TrainingRequest):
    """Whether it trains on."""

    running: bool


class StepAsked(TrainingRequest):
    """One update more, or the last one back."""

    by: Literal[1, -1]


class WatchAsked(TrainingRequest):
    """The parameter's element whose path is kept."""

    target: Annotated[str, Field(max_length=300)]


class TextAsked(TrainingRequest):
    """A text that the model reads as it is now, and what follows it."""

    prompt: Annotated[str, Field(min_length=1, max_length=1 << 12)]
    next: Annotated[str, Field(max_length=1000)] = ""


class Trainings:
    """The run that trains now, behind an explorer's routes, on a thread of its own.

    opening  begins a run with these settings on this text
    """

    def __init__(self, explorer: Explorer, opening: Opening) -> None:
        self.explorer, self._opening = explorer, opening
        self._lane = Lane("train", explorer.limits.lane)
        self._training: Training | None = None
        self._changing = asyncio.Lock()  # runs begin and end one after another
        self._going: asyncio.Task[None] | None = None
        self._news, self._told = asyncio.Event(), 0
        self._failed = ""
        self._stopping = False
        explorer.routes.append(self.add_to)
        explorer.stops.append(self.stop)
        explorer.endings.append(self.close)

    @property
    def training(self) -> Training:
        """The run; RequestError if there is none."""
        if self._training is None:
            raise RequestError("nothing trains here. Begin a run.", 404, "not_found")
        return self._training

    def state(self) -> dict[str, Any]:
        """Return what a page shows of it."""
        found = self.training
        running = self._going is not None and not self._going.done()
        return {**found.state(), "running": running, "failed": self._failed, "seen": found.seen, "told": self._told}

    async def begin(self, asked: TrainAsked) -> None:
        """Begin a run, paused; the one before ends, saved."""
        values = asked.model_dump(exclude={"text"}, exclude_none=True)
        if asked.minutes is not None:
            if asked.steps is not None:
                raise RequestError("give minutes or steps, not both.")
            values.pop("preset")
        async with self._changing:
            await self._end()
            self._failed = ""
            self._training = await self._run(lambda: Training(self._opening(values, asked.text)))
            self._tell()

    def go(self, running: bool) -> None:
        """Train on, or pause after the update that is being made."""
        training = self.training
        if self._going:
            self._going.cancel()
        self._going = asyncio.create_task(self._train(training)) if running else None
        self._tell()

    async def step(self, by: int) -> None:
        """Make one update, or take one back; it pauses."""
        self.go(False)
        training = self.training
        await self._run(training.forward if by > 0 else training.back)
        self._tell()

    async def view(self, question: Callable[[Training], View]) -> dict[str, Any]:
        """Keep a pass of the run's model among the explorer's, and return its summary."""
        training = self.training
        return await self._run(lambda: self.explorer.kept(question(training)).summary())

    async def ask(self, question: Callable[[Training], Any]) -> Any:
        """Return the answer of the run."""
        training = self.training
        return await self._run(lambda: question(training))

    async def end(self) -> None:
        """Save the run and let go of its folder."""
        async with self._changing:
            await self._end()

    async def _end(self) -> None:
        if self._training:
            self.go(False)
            training = self._training
            await self._lane.run(training.save, bounded=False)  # if that fails, the run stays
            self._training = None
            self._tell()
            await self._lane.run(training.close, bounded=False)

    def stop(self) -> None:
        """Let those who follow go: the server stops."""
        self._stopping = True
        self._tell()

    async def close(self) -> None:
        """Save the run, and let the thread end."""
        try:
            await self.end()
        except ByhandError as error:
            log.error("the run that trained here is not saved: %s", error)
            with suppress(ByhandError):
                await self._lane.run(self.training.close, bounded=False)
        self._lane.close()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the state after each change, as server-sent events."""
        sent = -1
        while self._training and not self._stopping:
            state = self.state()
            state["seen"] = (
                [each for each in state["seen"] if each["step"] > sent] if sent <= state["step"] else state["seen"]
            )
            sent = state["step"]
            news = self._news
            yield b"data: " + as_json(json.loads(json.dumps(state, default=float))) + b"\n\n"
            await news.wait()

    async def _train(self, training: Training) -> None:
        try:
            while not training.complete:
                await self._lane.run(training.forward, bounded=False)
                self._tell()
        except ByhandError as error:
            self._failed = str(error)
        except Exception as error:  # a defect, or no memory
            log.error("training failed: %s: %s", type(error).__name__, error)
            self._failed = "this is a defect of the server; its log has more"
        finally:
            self._tell()

    async def _run(self, function: Callable[..., Any]) -> Any:
        return await self._lane.run(function)

    def _tell(self) -> None:
        news, self._news, self._told = self._news, asyncio.Event(), self._told + 1
        news.set()

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""

        def state() -> Response:
            return Response(
                as_json(json.loads(json.dumps(self.state(), default=float))), media_type="application/json"
            )

        @app.post("/explore/train")
        async def _(request: TrainAsked) -> Response:
            """Begin a run on a text."""
            await self.begin(request)
            return state()

        @app.get("/explore/train")
        async def _() -> Response:
            """Return the run's state."""
            return state()

        @app.post("/explore/train/go")
        async def _(request: GoAsked) -> Response:
            """Train on, or pause."""
            self.go(request.running)
            return state()

        @app.post("/explore/train/step")
        async def _(request: StepAsked) -> Response:
            """Make one update, or take one back."""
            await self.step(request.by)
            return state()

        @app.post("/explore/train/watch")
        async def _(request: WatchAsked) -> Response:
            """Keep the path of a parameter's element."""
            name, index, gradient = parse_target(request.target)
            if gradient:
                raise DataError("a gradient has no path. Watch a parameter's element.")
            await self.ask(lambda training: training.watch(name, index))
            return state()

        @app.post("/explore/train/end")
        async def _() -> Response:
            """Save the run, and let go of its folder."""
            folder = str(self.training.run.folder)
            await self.end()
            return Response(as_json({"folder": folder}), media_type="application/json")

        @app.get("/explore/train/events")
        async def _() -> Response:
            """Return the state after each update."""
            self.training  # noqa: B018  (it must be there)
            return StreamingResponse(
                self.events(), headers={"cache-control": "no-store"}, media_type="text/event-stream"
            )

        @app.post("/explore/train/sample")
        async def _(request: TextAsked) -> Response:
            """Return a text as the model continues it now."""
            text = await self.ask(lambda training: training.sample(request.prompt, SAMPLE))
            return Response(as_json({"text": text}), media_type="application/json")

        @app.post("/explore/train/pass")
        async def _(request: TextAsked) -> Response:
            """Compute a pass of the model as it is now."""

            def view(training: Training) -> View:
                subject = training.subject()
                return self.explorer.view(subject, request.prompt, request.next)

            return Response(as_json(await self.view(view)), media_type="application/json")

        @app.post("/explore/train/why")
        async def _() -> Response:
            """Compute the pass over the batch of the last update, whose numbers explain it."""
            return Response(as_json(await self.view(Training.why)), media_type="application/json")
