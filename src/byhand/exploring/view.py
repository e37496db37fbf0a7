"""A view: one pass of a model over a text, and what a page asks about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from byhand.engine.terms import Index
from byhand.errors import DataError, ExplainError
from byhand.exploring.changes import Change, changed
from byhand.exploring.formulas import formulas
from byhand.exploring.gradients import Lean
from byhand.exploring.shares import shares
from byhand.exploring.stages import stages
from byhand.model import TinyGPT
from byhand.optim import Optimizer
from byhand.tracing.answers import finite
from byhand.tracing.differences import recomputed

LARGEST = 1 << 20  # numbers of an array that are sent at once
POINTS = 41  # of a curve of the loss
NO_TARGET = -1


class MatrixPart(NamedTuple):
    """A part of a matrix: the last two axes of an array, at one place of the others."""

    part: np.ndarray
    whole: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Subject:
    """A model that is looked at, and how it reads a text.

    step         after so many updates; None if nobody knows
    encode       bytes to token ids
    token_bytes  the bytes of each token
    unit         the word for one token: byte, token or word
    """

    name: str
    step: int | None
    model: TinyGPT
    encode: Callable[[bytes], Sequence[int]]
    token_bytes: Mapping[int, bytes]
    unit: str

    def texts(self, tokens: Sequence[int]) -> dict[int, str]:
        """Return each token's text; bytes that are no UTF-8 as \\xe4."""
        known = self.token_bytes
        return {t: known.get(t, b"").decode(errors="backslashreplace") for t in dict.fromkeys(map(int, tokens))}


class View:
    """One pass of a model over tokens.

    tokens, targets  (T,) ids; a target of -1 is none, as after the last token of a text that goes no further
    changes          of the model, after which this pass is computed
    base             the pass without them
    batch            of which these are the first row, each (B, T)
    optimizer        its state, and the norm to which gradients are clipped, for the next update
    """

    def __init__(
        self,
        subject: Subject,
        tokens: Sequence[int],
        targets: Sequence[int],
        changes: Sequence[Change] = (),
        base: View | None = None,
        *,
        batch: tuple[Any, Any] | None = None,
        optimizer: Optimizer | None = None,
        clip: float = 0.0,
    ) -> None:
        if not tokens or (len(tokens) < 2 and set(targets) == {NO_TARGET}):
            raise DataError("the text needs two tokens, or one and what follows it: the loss predicts the second.")
        self.subject, self.tokens, self.targets = subject, tuple(tokens), tuple(targets)
        self.changes, self.base = tuple(changes), base
        self.model = changed(base.model, changes) if base else subject.model
        named = [subject.name, subject.step, self.tokens, self.targets, [asdict(c) for c in self.changes], batch]
        self.id = sha256(json.dumps(named).encode()).hexdigest()[:16]
        given = batch or ([self.tokens], [self.targets])
        self._compute = lambda: Lean(self.model, *given, optimizer, clip)

    @cached_property
    def questions(self) -> Lean:
        """The pass, computed on first use."""
        return self._compute()

    @property
    def has_gradients(self) -> bool:
        """Whether they are computed."""
        return "gradients" in self.questions.__dict__

    @property
    def has_prediction(self) -> bool:
        """Whether `predicted` is computed."""
        return "_predicted" in self.__dict__

    def arrays(self) -> list[Any]:
        """Return the arrays of the pass, parameters too."""
        return [np.asarray(array) for array in self.questions.trace.values.values()]

    @cached_property
    def places(self) -> list[str]:
        """The tensors that equations made, in order."""
        return list(self.questions.trace.made)

    def summary(self) -> dict[str, Any]:
        """Return what a page shows first: the model, the text, and which equation made what of what."""
        trace, config = self.questions.trace, self.model.config
        shapes = {name: list(np.shape(array)) for name, array in trace.values.items()}
        made = {}
        for name, (use, which) in trace.made.items():
            inputs = [trace.name(tensor) for tensor in use.inputs]
            made[name] = {"equation": use.equation.name, "inputs": inputs, "result": which, "static": use.static}
        model = {
            "name": self.subject.name,
            "step": self.subject.step,
            "layers": config.n_layers,
            "heads": config.n_heads,
            "kv_heads": config.kv_heads,
            "width": config.d_model,
            "vocab": config.vocab_size,
            "context": config.seq_len,
            "parameters": sum(tensor.data.size for tensor in self.model.parameters().values()),
            "unit": self.subject.unit,
        }
        summary = {
            "id": self.id,
            "base": self.base.id if self.base else None,
            "changes": [asdict(change) for change in self.changes],
            "model": model,
            "tokens": self.tokens,
            "targets": self.targets,
            "texts": self.subject.texts([*self.tokens, *(t for t in self.targets if t != NO_TARGET)]),
            "loss": float(trace.result.data),
            "places": self.places,
            "shapes": shapes,
            "made": made,
            "trained": {name: p.requires_grad for name, p in self.model.parameters().items()},
            "norms": self.norms(False),
        }
        return finite(json.loads(json.dumps(summary, default=str)))

    def norms(self, gradient: bool) -> dict[str, list[float]]:
        """Return the length of the vector at each position, over all heads, of tensors or their gradients."""
        found = {}
        for name in self.places:
            if gradient and name not in self.questions.gradients.by_name:
                continue
            array = self.questions.array(name, gradient)
            if array.ndim >= 3 and array.shape[-2] == len(self.tokens):
                first = array[0].reshape((-1, *array.shape[-2:]))
                found[name] = finite(np.sqrt(np.square(first, dtype=np.float64).sum(axis=(0, 2))).tolist())
        return found

    def matrix(
        self, name: str, gradient: bool, head: int, rows: tuple[int, int] | None, columns: tuple[int, int] | None
    ) -> MatrixPart:
        """Return a part of an array's last two axes; DataError if it is too large to be sent at once."""
        self._require(name, gradient)
        array = self.questions.array(name, gradient)
        array = array.reshape((1,) * max(0, 2 - array.ndim) + array.shape)
        leading = array.reshape((-1, *array.shape[-2:]))
        if not 0 <= head < len(leading):
            raise DataError(f"{name} has {len(leading)} matrices, so there is no number {head}.")
        whole = leading[head]
        part = whole[slice(*(rows or (None,))), slice(*(columns or (None,)))]
        if part.size > LARGEST:
            raise DataError(
                f"{name} has {part.size} numbers. Ask for at most {LARGEST} of them, by rows and columns."
            )
        return MatrixPart(np.ascontiguousarray(part, dtype="<f4"), whole.shape)

    def answer(self, name: str, index: Index, gradient: bool, terms: int) -> dict[str, Any]:
        """Return one number with its arithmetic, of which the largest `terms` of each long sum are shown."""
        return self.questions.explain(name, index, gradient, difference=False).as_json(terms)

    def difference(self, name: str, index: Index) -> float:
        """Return a gradient's central difference."""
        return self.questions.gradients.central_difference(name, index)

    def equations(self) -> dict[str, Any]:
        """Return the formulas, symbols and lines of the equations that the pass uses."""
        names = {use.equation.name for use, _ in self.questions.trace.made.values()}
        return {name: formulas(name) for name in sorted(names)}

    def stages(self) -> list[dict[str, Any]]:
        """Return the next token as the model's own head would predict it after each half of a block."""
        return stages(self.questions.trace, self.model, self.targets)

    def shares(self, position: int, token: int, against: int | None) -> dict[str, Any]:
        """Return what each part of the model added to a logit, or to its difference from another's."""
        return shares(self.questions.trace, self.model, position, token, against)

    def along(self, name: str, index: Index, points: int, width: float | None) -> dict[str, Any]:
        """Return the loss along one number, and its slope there."""
        trace = self.questions.trace
        place = trace.resolved(name, index)
        value = float(trace.tensor(name).data[place])
        slope = float(self.questions.gradients.array(name)[place])
        reach = width or max(1.0, 4 * abs(value))
        steps = np.linspace(-reach, reach, max(3, min(points, POINTS) | 1))
        losses = [[value + float(h), float(recomputed(trace, name, place, float(h)))] for h in steps]
        return finite({"value": value, "slope": slope, "losses": losses})

    def predicted(self) -> dict[str, Any]:
        """Return the loss before and after the changes, and what the gradient before predicts."""
        return self._predicted

    @cached_property
    def _predicted(self) -> dict[str, Any]:
        if not self.base:
            raise DataError("nothing is changed in this pass.")
        before = self.base.questions
        gradients, parameters = before.gradients.by_name, before.model.parameters()
        step = 0.0
        for name, tensor in self.model.parameters().items():
            if name in gradients and tensor.data is not parameters[name].data:
                where = tensor.data != parameters[name].data
                moved = np.subtract(tensor.data[where], parameters[name].data[where], dtype=np.float64)
                step += float((moved * gradients[name][where]).sum())
        exact = self.model.config == self.base.model.config
        losses = {"before": float(before.trace.result.data), "after": float(self.questions.trace.result.data)}
        return finite({**losses, "predicted": losses["before"] + step if exact else None})

    def compared(self, other: View) -> dict[str, Any]:
        """Return where this pass differs from another, place by place in order; the first is where it begins."""
        places, ours, theirs = [], self.questions.trace.values, other.questions.trace.values
        for name in [*self.model.parameters(), *self.places]:
            a, b = ours[name], theirs.get(name)
            if a is b:
                continue
            if b is None or np.shape(a) != np.shape(b):
                places.append({"name": name, "difference": None, "index": None})
                continue
            d = np.asarray(np.subtract(a, b, dtype=np.float64))
            np.abs(d, out=d)
            if d.size and (largest := float(d.max())) > 0:
                index = [int(i) for i in np.unravel_index(int(d.argmax()), d.shape)]
                places.append({"name": name, "difference": largest, "index": index})
        return finite({"first": places[0]["name"] if places else None, "places": places})

    def walk_back(self) -> None:
        """Compute the gradients."""
        self.questions.gradients  # noqa: B018

    def forget_gradients(self) -> None:
        """Free the gradients."""
        self.questions.__dict__.pop("gradients", None)

    def _require(self, name: str, gradient: bool) -> None:
        trace = self.questions.trace
        if name not in trace.made and name not in trace.leaves:
            raise ExplainError(f"nothing is called {name!r} in this pass.")
        if gradient:
            self.questions.gradients.array(name)
