"""The explorer's routes: one pass of the model over a text, and every number in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from byhand.book.port.theirs import Theirs
from byhand.errors import ExplainError
from byhand.exploring import ports
from byhand.exploring.changes import Change
from byhand.exploring.regions import regions
from byhand.exploring.view import NO_TARGET, POINTS, Subject, View
from byhand.serving.errors import as_json
from byhand.serving.limits import Limits, RequestError
from byhand.serving.worker import Lane
from byhand.tracing.answers import finite
from byhand.tracing.targets import parse_target

KEPT, KEPT_BYTES = 6, 1 << 28  # passes, and the memory that they may take; the last one and its base always stay
LANES = ("quick", "back", "later")
MOST_CHANGES = 32
THEIRS = "theirs"  # what a port's arrays are called where a pass is compared
MOST_TERMS = 4096
Result = TypeVar("Result")
Place = Annotated[int, Field(ge=0, lt=1 << 31)]
Head = tuple[Place, Place]
Target = Annotated[str, Query(max_length=300)]
WINDOW = r"^[0-9]{1,9}-[0-9]{1,9}$"


class ChangeAsked(BaseModel):
    """A change of the model: a parameter's element and its value; a block and a head of it; or no mask."""

    model_config = ConfigDict(strict=False, extra="forbid")

    target: Annotated[str, Field(max_length=300)] | None = None
    value: Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30, strict=True)] = 0.0
    head: Head | None = None
    mask: Annotated[bool, Field(strict=True)] = True

    def read(self) -> Change:
        """Return it; ExplainError if it is none."""
        if (self.target is not None) + (self.head is not None) + (not self.mask) != 1:
            raise ExplainError("a change has a target and its value, or a head, or mask: false.")
        name, index, gradient = parse_target(self.target) if self.target is not None else ("", (), False)
        if gradient:
            raise ExplainError("a gradient cannot be changed. Change a parameter.")
        return Change(name, index, self.value, self.head, self.mask)


class PassAsked(BaseModel):
    """A pass: a text, what follows it, and changes of the model."""

    model_config = ConfigDict(extra="forbid")

    prompt: Annotated[str, Field(max_length=1 << 16)] | None = None
    next: Annotated[str, Field(max_length=1000)] = ""
    changes: Annotated[list[ChangeAsked], Field(max_length=MOST_CHANGES)] = []


class TextsAsked(BaseModel):
    """Tokens whose texts are asked for."""

    ids: Annotated[list[Place], Field(max_length=1 << 16)]


class Explorer:
    """A model, and the passes over it that were asked for last.

    A thread answers at once what a pass holds; another one walks back from the loss, where a gradient is asked for;
    what computes much more anew waits for a third, and nothing waits for it.

    prompt  the text that a page begins with, and `next`, what follows it
    theirs  arrays of a port of the model, which a pass may be compared with
    """

    theirs: Mapping[str, Theirs] | None = None

    def __init__(self, subject: Subject, prompt: str, next: str = "", limits: Limits | None = None) -> None:
        self.subject, self.prompt, self.next = subject, prompt, next
        self.limits = limits or Limits()
        self.views: OrderedDict[str, View] = OrderedDict()
        self.quick, self.back, self.later = (Lane(f"explore-{name}", self.limits.lane) for name in LANES)
        self.stops: list[Callable[[], None]] = []
        self.endings: list[Callable[[], Awaitable[None]]] = []
        self.routes: list[Callable[[FastAPI], None]] = []

    def stop(self) -> None:
        """Let go of those who wait for news: the server stops."""
        for stop in self.stops:
            stop()

    async def close(self) -> None:
        """Let what trains here save, and the thread end."""
        for end in self.endings:
            await end()
        for lane in (self.quick, self.back, self.later):
            lane.close()

    def found(self, id: str) -> View:
        """Return a pass that is kept; RequestError if it is not."""
        if (view := self.views.get(id)) is None:
            raise RequestError("this pass is no longer kept. Ask for it again.", 404, "not_found", "id")
        return view

    async def asked(
        self, id: str, question: Callable[[View], Result], gradient: bool = False, later: bool = False
    ) -> Result:
        """Return the answer of a pass.

        gradient  the answer needs the gradients
        later     it takes long, and what is asked after it need not wait
        """
        view = self.found(id)
        if gradient and not view.has_gradients:
            await self.back.run(self._walk_back, view)
        return await (self.later if later else self.quick).run(question, view)

    def _walk_back(self, view: View) -> None:
        """Compute the gradients of a pass. One may be as large as the embedding, so those of another one go."""
        for other in list(self.views.values()):
            if other is not view:
                other.forget_gradients()
        view.walk_back()

    async def predicted(self, id: str) -> dict[str, Any]:
        """Return what the changes of a pass did to the loss; the gradients are those of its base."""
        view = self.found(id)
        if view.base and not view.has_prediction:
            await self.back.run(lambda: self._predict(view, view.base))
        return view.predicted()

    def _predict(self, view: View, base: View | None) -> None:
        if base:
            self._walk_back(base)
            view.predicted()

    async def begin(self, asked: PassAsked) -> dict[str, Any]:
        """Compute a pass, unless it is kept, and return what a page shows first."""
        changes = [change.read() for change in asked.changes]
        return await self.quick.run(self._begin, asked, changes)

    def _begin(self, asked: PassAsked, changes: list[Change]) -> dict[str, Any]:
        prompt, after = (self.prompt, self.next) if asked.prompt is None else (asked.prompt, asked.next)
        base = self.kept(self.view(self.subject, prompt, after))
        view = self.kept(View(self.subject, base.tokens, base.targets, changes, base)) if changes else base
        if changes and base.has_gradients:
            view.predicted()  # before they go
        return {"prompt": prompt, "next": after, THEIRS: self.theirs is not None} | view.summary()

    def view(self, subject: Subject, prompt: str, after: str) -> View:
        """Return the pass of a model over a text; RequestError if it is too long to be looked at."""
        most, tokens = min(self.limits.explained, subject.model.config.seq_len), subject.encode(prompt.encode())
        if len(tokens) > most:
            raise RequestError(
                f"the text has {len(tokens)} tokens; at most {most} are explored.", 400, param="prompt"
            )
        following = [*subject.encode(after.encode())[:1], NO_TARGET][0]
        return View(subject, tokens, [*tokens[1:], following])

    def kept(self, view: View) -> View:
        """Return a pass, or the same one that is kept already, and keep it."""
        found = self.views.get(view.id) or view
        found.questions  # noqa: B018  (computed first: one that fails is not kept)
        self.views[found.id] = found
        self.views.move_to_end(found.id)
        while len(self.views) > 1 and (len(self.views) > KEPT or self._size() > KEPT_BYTES):
            self.views.popitem(last=False)
        return found

    def _size(self) -> int:
        """Return the bytes of what is kept besides the model, each array once."""
        own = {id(tensor.data) for tensor in self.subject.model.parameters().values()}
        arrays = {id(array): array.nbytes for view in self.views.values() for array in view.arrays()}
        return sum(size for key, size in arrays.items() if key not in own)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        for add in self.routes:
            add(app)

        @app.post("/explore/pass")
        async def _(request: PassAsked) -> Response:
            """Compute a pass."""
            return _json(await self.begin(request))

        @app.post("/explore/{id}/texts")
        async def _(id: str, request: TextsAsked) -> Response:
            """Return the texts of tokens."""
            return _json(self.found(id).subject.texts(request.ids))

        @app.get("/explore/{id}/norms")
        async def _(id: str, grad: bool = False) -> Response:
            """Return the length of each vector."""
            return _json(await self.asked(id, lambda view: view.norms(grad), grad))

        @app.get("/explore/{id}/stages")
        async def _(id: str) -> Response:
            """Return the prediction after each half of a block."""
            return _json(await self.asked(id, View.stages, later=True))

        @app.get("/explore/{id}/array")
        async def _(
            id: str, name: Target, grad: bool = False, head: Place = 0,
            rows: Annotated[str | None, Query(pattern=WINDOW)] = None,
            cols: Annotated[str | None, Query(pattern=WINDOW)] = None,
        ) -> Response:  # fmt: skip
            """Return a matrix as float32, in the order of its rows."""
            part = _window(rows), _window(cols)
            found = await self.asked(id, lambda view: view.matrix(name, grad, head, *part), grad)
            shapes = {"x-shape": found.part.shape, "x-whole": found.whole}
            headers = {key: ",".join(map(str, shape)) for key, shape in shapes.items()}
            return Response(found.part.tobytes(), media_type="application/octet-stream", headers=headers)

        @app.get("/explore/{id}/answer")
        async def _(id: str, target: Target, terms: Annotated[int, Query(ge=1, le=MOST_TERMS)] = 8) -> Response:
            """Return one number with its arithmetic."""
            name, index, gradient = parse_target(target)
            back = gradient or bool(self.found(id).questions.parameter_of(name))  # an update needs them too
            return _json(await self.asked(id, lambda view: view.answer(name, index, gradient, terms), back))

        @app.get("/explore/{id}/difference")
        async def _(id: str, target: Target) -> Response:
            """Return the central difference of the loss along one number."""
            name, index, _ = parse_target(target)
            found = await self.asked(id, lambda view: view.difference(name, index), True, True)
            return _json(finite({"value": found}))

        @app.get("/explore/{id}/reads")
        async def _(id: str, name: Target, grad: bool = False) -> Response:
            """Return which elements each element of a tensor, or of its gradient, is made from."""
            return _json({"reads": await self.asked(id, lambda view: regions(view.questions, name, grad), grad)})

        @app.get("/explore/{id}/shares")
        async def _(id: str, position: Place, token: Place, against: Place | None = None) -> Response:
            """Return what each part of the model added to a logit."""
            return _json(await self.asked(id, lambda view: view.shares(position, token, against)))

        @app.get("/explore/{id}/along")
        async def _(
            id: str, target: Target, points: Annotated[int, Query(ge=3, le=POINTS)] = 21,
            width: Annotated[float | None, Query(gt=0, le=1e6)] = None,
        ) -> Response:  # fmt: skip
            """Return the loss along one number."""
            name, index, _ = parse_target(target)
            return _json(await self.asked(id, lambda view: view.along(name, index, points, width), True, True))

        @app.get("/explore/{id}/predicted")
        async def _(id: str) -> Response:
            """Return the loss before and after the changes, and what the gradient predicted."""
            return _json(await self.predicted(id))

        @app.get("/explore/{id}/compare")
        async def _(id: str, other: Annotated[str, Query(alias="with", max_length=64)]) -> Response:
            """Return where two passes differ."""
            if other == THEIRS and (theirs := self.theirs) is not None:
                return _json(await self.asked(id, lambda view: ports.compared(view, theirs), later=True))
            second = self.found(other)
            return _json(await self.asked(id, lambda view: view.compared(second), later=True))

        @app.get("/explore/{id}/equations")
        async def _(id: str) -> Response:
            """Return the formulas, symbols and lines of the equations that a pass uses."""
            return _json(await self.asked(id, View.equations))


def _window(text: str | None) -> tuple[int, int] | None:
    first, _, last = (text or "").partition("-")
    return (int(first), int(last)) if text else None


def _json(value: Any) -> Response:
    return Response(as_json(value), media_type="application/json")
