"""Collecting the graph of a lesson: its steps are walked, and with them the passes that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.book.lessons.lesson import Array, Lesson, Step
from byhand.book.lessons.naming import short, squeezed
from byhand.engine import BackwardStep, Tensor, Term
from byhand.engine.terms import Index, element, total
from byhand.tracing.answers import Answer
from byhand.tracing.gradients import Gradients, passed_back
from byhand.tracing.passes import Pass
from byhand.tracing.tracer import Application
from live.elements import is_same, kept_label, reader, row_label, term_of
from live.graph import LessonGraph, Loss, Numbered, StepLink
from live.intermediate import intermediate, saved_term
from live.program import Program
from live.settings import SETTINGS, slider

Known = dict[tuple[int, Any], int]  # places of arrays, by their pass, way back or step, and by name, tensor or number


@dataclass(frozen=True)
class Made:
    """How an array is made: the arrays that its terms read, and the term of an element."""

    read: list[int]
    term: Callable[[Index], Term]


class Collector:
    """Walks a lesson's steps and collects the arrays of their passes.

    `found` are the decisions of a walk in general position, in their order: which earlier array a given one is, and
    whether an intermediate array is part of the arithmetic. With them another lesson of the same form is walked in
    the same way, and without programs.
    """

    def __init__(self, lesson: Lesson, found: Iterable[int | None] | None = None) -> None:
        self.graph = LessonGraph(lesson)
        self.found: list[int | None] = []
        self._earlier = None if found is None else iter(found)
        self._known: Known = {}
        self._uses: dict[tuple[int, str], list[int]] = {}
        self._set: dict[int, list[int]] = {}  # the settings that an application reads
        self._walked: list[Any] = []
        for step in lesson.steps:
            self.graph.links.append(self._link(step, *step.origin) if step.origin else StepLink())

    def _link(self, step: Step, where: Any, what: Any) -> StepLink:
        """Return the arrays of a step, once its pass is collected."""
        if isinstance(what, Application):
            self._pass(where)
            made = tuple(self._known[id(where), where.name(t)] for t in what.results)
            for array, place in zip(step.arrays, made, strict=False):
                self.graph.arrays[place].name = array.name  # W', not W.theta
            read = [self._known[id(where), where.name(t)] for t in what.inputs]
            self._label(read, step.inputs)
            self._label(made, step.arrays)
            return StepLink((*read, *self._set[id(what)], *self._kept(what, step, read)), made)
        if isinstance(what, Answer):
            return self._drawn(where, what)
        self._way_back(where)
        if not isinstance(what, BackwardStep):
            total_of = self._gradient(where, what)
            self._label([total_of], step.arrays)
            return StepLink(tuple(self._uses[id(where), what]), (total_of,))
        results = where.trace.result_names(what.node)
        read = [self._gradient(where, name) for name in results]
        read += [self._known[id(where.trace), name] for name in (*map(where.trace.name, what.node.inputs), *results)]
        saved = [place for key, place in self._known.items() if key[0] == id(what) and isinstance(key[1], int)]
        for array in step.inputs:
            same = (k for k in saved if np.array_equal(squeezed(self.graph.arrays[k].data), array.data))
            self._label(() if array.name else same, [array])
        read += saved
        made = [place for key, place in self._known.items() if key[0] == id(what) and isinstance(key[1], str)]
        self._label(made, step.arrays)
        return StepLink(tuple(read), tuple(made))

    def _label(self, places: Iterable[int], arrays: Iterable[Array]) -> None:
        """Call arrays as the lesson's labels of their numbers do, where a step first says it."""
        for place, array in zip(places, arrays, strict=False):
            cells = self.graph.arrays[place]
            if not cells.label and array.name and not array.name.startswith("−"):
                cells.label = getattr(array, "label", array.name)
            elif not cells.label and not array.name:  # one that the forward pass keeps: exp(S − m)
                cells.label = kept_label(array.letter)

    def _pass(self, trace: Pass) -> None:
        """Collect the arrays of a pass."""
        if not self._is_new(trace):
            return
        for application in trace.applications:
            settings = [self._setting(application, n) for n in application.static if n in SETTINGS]
            self._set[id(application)] = settings
            read = [*(self._read(trace, t) for t in application.inputs), *settings]
            for which, tensor in enumerate(application.results):
                made = Made(read, lambda index, a=application, which=which: term_of(a, index, which))
                name = trace.name(tensor)
                self._known[id(trace), name] = self._add(short(name), tensor.data, made)

    def _setting(self, application: Application, name: str) -> int:
        """Return the array of a setting of an application."""
        return self._moved(name, float(application.static[name]), application.arrays[0].shape[-1])

    def _moved(self, name: str, value: float, length: int = 0) -> int:
        """Return the array of a number that a slider moves; the same one wherever it is used."""
        same = (k for k, a in enumerate(self.graph.arrays) if a.name == name and a.slider and a.numbers == [value])
        place = self._decided(lambda: next(same, None))
        return self.graph.add(name, value, slider(name, value, length)) if place is None else place

    def _drawn(self, trace: Pass, answer: Answer) -> StepLink:
        """Collect a draw from the probabilities of a pass: their running sums, and the token."""
        self._pass(trace)
        p = self._known[id(trace), trace.name(trace.result)]
        u = self._moved("u", float(answer.facts["u"]))

        def running(index: Index) -> Term:
            return total(element(answer.arrays, 0, (v,), "p") for v in range(index[0] + 1))

        def drawn(_: Index) -> Term:
            assert answer.term
            return answer.term

        sums = self._add("Σp", np.cumsum(answer.arrays[0]), Made([p], running))
        return StepLink((p, u), (sums, self._add("v", answer.value, Made([p, u], drawn))))

    def _read(self, trace: Pass, tensor: Tensor) -> int:
        """Return the array of an input; one that no application made is an earlier one, or given."""
        key = id(trace), trace.name(tensor)
        if key not in self._known:
            self._known[key] = self._given(short(key[1]), tensor.data)
        return self._known[key]

    def _given(self, name: str, data: Any) -> int:
        """Return the earlier array that a given one is, or a new one."""
        data = np.asarray(data)
        same = (k for k, cells in enumerate(self.graph.arrays) if is_same(cells, name, data))
        place = self._decided(lambda: next(same, None))
        return self.graph.add(name, data) if place is None else place

    def _way_back(self, gradients: Gradients) -> None:
        """Collect the gradients of a pass: what each use of a tensor passes back, and their sums."""
        trace = gradients.trace
        self._pass(trace)
        if not self._is_new(gradients):
            return
        result = trace.name(trace.result)
        self._known[id(gradients), result] = self._given(f"∂{short(result)}", gradients.by_name[result])
        for step in gradients.steps:
            self._passed_back(gradients, step)
        reached = {name: self._gradient(gradients, name) for name in gradients.by_name}
        if not trace.result.shape:
            follow = (name for name in reached if trace.tensor(name).requires_grad)  # of X there is none, not 0
            by_array = {self._known[id(trace), name]: reached[name] for name in follow}
            self.graph.losses.append(Loss(self._known[id(trace), result], by_array))

    def _passed_back(self, gradients: Gradients, step: BackwardStep) -> None:
        """Collect what an application passes back to its inputs."""
        trace, names = gradients.trace, gradients.trace.result_names(step.node)
        application = next(a for a in trace.applications if a.results[0].node is step.node)
        saved = self._saved(trace, step, application)
        read = [*(self._gradient(gradients, name) for name in names), *saved, *self._set[id(application)]]
        for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
            name = trace.name(tensor)
            if d is None or not tensor.requires_grad or (id(step), name) in self._known:
                continue

            def term(index: Index, tensor=tensor) -> Term:
                found = gradients.contribution(step, tensor, index).term
                assert found
                return found

            place = self._add(f"∂{short(name)}", passed_back(step, tensor), Made(read, term))
            self._known[id(step), name] = place
            self._uses.setdefault((id(gradients), name), []).append(place)

    def _gradient(self, gradients: Gradients, name: str) -> int:
        """Return the gradient of a tensor: what its only use passes back, or the sum over its uses."""
        key = id(gradients), name
        if key not in self._known:
            uses = self._uses.get(key, [])
            parts = [self.graph.arrays[place].data for place in uses]

            def term(index: Index) -> Term:
                return total(Term("", float(part[index]), source=(k, index)) for k, part in enumerate(parts))

            if not uses:  # a result that nothing reads
                place = self.graph.add("", np.zeros(gradients.trace.tensor(name).shape))
            else:
                one = len(uses) == 1
                place = uses[0] if one else self._add(f"∂{short(name)}", gradients.by_name[name], Made(uses, term))
            self._known[key] = place
        return self._known[key]

    def _saved(self, trace: Pass, step: BackwardStep, application: Application) -> list[int]:
        """Return the arrays that an application saved; one that is neither an input nor a result is collected."""
        tensors = (*step.node.inputs, *application.results)
        known = {id(t.data): self._known[id(trace), trace.name(t)] for t in tensors}
        read = [self._known[id(trace), trace.name(t)] for t in application.inputs]
        for k, x in enumerate(step.node.saved):
            if id(x) not in known:
                term = saved_term(application, k)
                known[id(x)] = self._known[id(step), k] = self._add("", x, term and Made(read, term))
        return [known[id(x)] for x in step.node.saved]

    def _kept(self, application: Application, step: Step, read: list[int]) -> Iterator[int]:
        """Yield the intermediate arrays of a forward step that its arithmetic speaks of."""
        for array in step.kept:
            data = np.asarray(array.data, dtype=np.float64)
            parts = dict(zip(np.ndindex(*data.shape), intermediate(application, data) or (), strict=False))
            if self._decided(lambda parts=parts: 1 if parts else None):
                kept = self._add("", data, Made(read, parts.__getitem__))
                self._label([kept], [array])
                yield kept

    def _decided(self, decide: Callable[[], int | None]) -> int | None:
        """Return a decision, or what it was in general position."""
        self.found.append(decide() if self._earlier is None else next(self._earlier))
        return self.found[-1]

    def _is_new(self, thing: Any) -> bool:
        """Return whether a pass or a way back is met for the first time; it is kept, so that no id is used twice."""
        seen = any(one is thing for one in self._walked)
        self._walked.append(thing)
        return not seen

    def _add(self, name: str, data: Any, made: Made | None) -> int:
        """Append an array; in general position with its programs."""
        place = self.graph.add(name, data)
        cells = self.graph.arrays[place]
        cells.is_free = cells.is_free and made is None
        if self._earlier is None and made is not None:
            arrays = [self.graph.arrays[k] for k in made.read]
            read = reader(arrays)
            for index in np.ndindex(*cells.data.shape):
                cells.programs.append(
                    Program.of(made.term(index), read, lambda label: row_label(label, arrays[0].data))
                )
        return place
