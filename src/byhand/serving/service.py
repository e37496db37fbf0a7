"""A server's state: the model that it serves now, the threads that work for it, and its counts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from byhand.errors import brief
from byhand.serving.limits import Limits
from byhand.serving.metrics import Metrics
from byhand.serving.protocol import ChatCompletion, Completion
from byhand.serving.served import Served
from byhand.serving.worker import Answers, Lane, ServedChoice, Worker

log = logging.getLogger(__name__)
WATCHED = 2.0  # seconds between two looks for a newer checkpoint


@dataclass(eq=False)
class Service:
    """What the routes share.

    served   the model, for requests that begin now
    explain  the answer of `byhand explain --json` for these settings of a version of the model; None: forget it
    newer    reads the model's newer checkpoint, if there is one; called again and again
    """

    served: Served
    explain: Callable[[str, Mapping[str, Any] | None], Mapping[str, Any]]
    newer: Callable[[Served], Served | None] | None = None
    limits: Limits = field(default_factory=Limits)

    async def __aenter__(self) -> Service:
        self.metrics = Metrics(self._sizes)
        self.texts, self.explaining = Lane("texts", self.limits.lane), Lane("explain", 4, ends=True)
        self.worker = Worker(self.served.engine)
        self._tasks: set[asyncio.Task[Any]] = {asyncio.create_task(self._watch())} if self.newer else set()
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._tasks:
            task.cancel()
        self.texts.close()
        self.explaining.close()
        await self.worker.close()

    def stop(self) -> None:
        """End explanations: an answer that a model gives is waited for, they are not."""
        self.explaining.close()

    def _sizes(self) -> tuple[int, int]:
        engine = self.served.engine
        return len(engine.waiting), len(engine.running)

    async def answers(self, request: Completion | ChatCompletion) -> tuple[Served, Answers, int]:
        """Begin the texts that a request asks for; return whose they are, and how many tokens the prompts have."""
        served, worker = self.served, self.worker
        choices, prompt = await self.texts.run(served.choices, request, self.limits)
        answers = Answers(worker, choices)
        await answers.begin()
        self.metrics.prompt_tokens.inc(prompt)
        return served, answers, prompt

    def count(self, choices: Sequence[ServedChoice]) -> None:
        """Count what was drawn, and how fast."""
        for choice in choices:
            self.metrics.drawn_tokens.inc(choice.drawn)
            times = choice.stream.times
            if len(times) > 1:
                self.metrics.first.observe(times[1][0] - times[0][0])
            if len(times) > 2 and times[-1][1] > times[1][1]:
                self.metrics.between.observe((times[-1][0] - times[1][0]) / (times[-1][1] - times[1][1]))

    async def _watch(self) -> None:
        """Serve the newer checkpoints of a run; the worker before finishes what it has."""
        assert self.newer
        reading = Lane("watch", 1)
        while True:
            await asyncio.sleep(WATCHED)
            try:
                found = await reading.run(self.newer, self.served)
            except Exception as error:  # whatever is wrong with it, the one before is served
                log.warning("the newer checkpoint is not used: %s", brief(error, 300))
                continue
            if found:
                before, self.served, self.worker = self.worker, found, Worker(found.engine)
                self.metrics.reloads.inc()
                log.info("serving %s now", found.version)
                for work in (before.close(), self.explaining.run(self.explain, found.version, None)):
                    task = asyncio.create_task(work)
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
