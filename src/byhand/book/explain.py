"""Where a number of a real model comes from: the equation, its arithmetic with the numbers put in, and its inputs.

Values are explained by the equations' `terms`. A gradient is explained by the equations' derivatives: a vjp is linear
in the cotangent, so one element of a result at a time gives that element's share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from byhand.book import arithmetic, notes
from byhand.book.explanation import ExplainError, Explanation, Part, Source, written
from byhand.book.index import entries
from byhand.book.shares import Share, shares
from byhand.book.watch import Application, Nudge, Watched, collect, moved, watch
from byhand.engine import Step, Tensor, interpreting, no_grad, walk_back
from byhand.engine.arrays import namespace
from byhand.engine.terms import Index, Term
from byhand.equations import adamw
from byhand.model import TinyGPT
from byhand.optim import AdamW

STEP = 1e-6  # of a central difference, in float64, relative to max(1, |x|)
ROUNDING = 64  # times the precision and the terms' sizes: what sums of rounded numbers may leave of zero
MASKED = "masked"  # the label that causal_softmax gives the weight of a key that must not be seen
UPDATE = ("theta", "m", "v")  # the results of the adamw equation


def explain(
    model: TinyGPT,
    tokens: Any,
    targets: Any,
    name: str,
    index: Sequence[int] = (),
    grad: bool = False,
    depth: int = 1,
    optimizer: AdamW | None = None,
    max_grad_norm: float = 0.0,
    width: int = 8,
) -> Explanation:
    """Explain one element of a parameter, activation, the logits, the loss, or of an update.

    tokens, targets  (B, T) token ids; targets may be None where neither the loss nor a gradient is asked for
    name, index      as in `blocks.1.attn.weights` and (0, 0, 2, 1); `PARAMETER.m`, `.v`, `.theta` and `.update` are
                     what one step of the optimizer makes of a parameter
    grad             explain d loss / d element instead, with a central difference in float64 beside it
    depth            how far to go on into the inputs; `width` of them at each level
    optimizer        its settings and moments, for updates; a fresh AdamW without it
    max_grad_norm    clip gradients to this global norm before the update, as training does; 0 does not

    Raises ExplainError if there is no such element, or it has no gradient.
    """
    explainer = Explainer(model, tokens, targets, optimizer, max_grad_norm)
    return explainer.explain(name, tuple(index), grad, depth, width)


class Explainer:
    """One forward pass of a model, and what lies behind it once it is asked for: gradients, and an update."""

    def __init__(
        self,
        model: TinyGPT,
        tokens: Any,
        targets: Any = None,
        optimizer: AdamW | None = None,
        max_grad_norm: float = 0.0,
    ) -> None:
        self.model = model
        self.optimizer = optimizer or AdamW()
        self.max_grad_norm = max_grad_norm
        self.compute: Callable[[TinyGPT], Tensor] = (
            (lambda m: m.forward_logits(tokens)) if targets is None else (lambda m: m.loss(tokens, targets))
        )
        self.has_loss = targets is not None
        self.result, self.watched = watch(lambda: self.compute(model))
        self._steps: list[Step] | None = None
        self._gradients: dict[str, Any] | None = None

    def names(self) -> list[str]:
        """Return everything that can be explained, in the order in which it is computed; updates last."""
        updates = [f"{p}.{part}" for p in self.model.parameters() for part in (*UPDATE, "update")]
        return [*self.model.parameters(), *self.watched.made, *(updates if self.has_loss else [])]

    def explain(self, name: str, index: Index, grad: bool = False, depth: int = 1, width: int = 8) -> Explanation:
        """Explain one element, its inputs too if depth is above 1."""
        explanation = self._gradient(name, index, first=True) if grad else self._value(name, index)
        return self._deepen(explanation, depth, width)

    def _deepen(self, explanation: Explanation, depth: int, width: int) -> Explanation:
        if depth <= 1:
            return explanation
        children = []
        for source in explanation.sources[:width]:
            if source.grad or source.name in self.watched.made or self._parameter_of(source.name):
                child = (
                    self._gradient(source.name, source.index)
                    if source.grad
                    else self._value(source.name, source.index)
                )
                children.append(self._deepen(child, depth - 1, width))
        return replace(explanation, children=tuple(children))

    # Values

    def _value(self, name: str, index: Index) -> Explanation:
        parameter = self._parameter_of(name)
        if parameter:
            return self._update(name, parameter, index)
        if name in self.watched.leaves:
            tensor = self.watched.leaves[name]
            _check_index(name, index, tensor.shape)
            note = notes.PARAMETER if tensor.requires_grad else notes.GIVEN
            return Explanation(name, index, float(tensor.data[index]), note=note)
        if name not in self.watched.made:
            raise self._unknown(name)
        application, which = self.watched.made[name]
        return _explained(name, index, application, which, self.watched)

    def _parameter_of(self, name: str) -> str:
        """Return the parameter whose update `name` is part of, or nothing."""
        parameter, _, part = name.rpartition(".")
        known = part in (*UPDATE, "update") and parameter in self.model.parameters()
        return parameter if known and name not in self.watched.leaves else ""

    def _update(self, name: str, parameter: str, index: Index) -> Explanation:
        """Explain m, v, the new parameter (theta) or the update itself, for one step from here."""
        if not self.has_loss:
            raise ExplainError(f"{name} needs a loss. Give targets.")
        optimizer, tensor = self.optimizer, self.model.parameters()[parameter]
        _check_index(name, index, tensor.shape)
        xp = namespace(tensor.data)
        decayed = optimizer.decay == "all" or tensor.ndim >= 2
        static = {
            "beta1": optimizer.betas[0],
            "beta2": optimizer.betas[1],
            "eps": optimizer.eps,
            "weight_decay": optimizer.weight_decay if decayed else 0.0,
        }
        moments = [part.get(parameter, xp.zeros_like(tensor.data)) for part in (optimizer.m, optimizer.v)]
        gradient = self._clipped(parameter)
        results, _ = adamw.forward(tensor.data, gradient, *moments, optimizer.lr, optimizer.t + 1, **static)
        inputs = (
            tensor,
            Tensor(gradient, name=parameter),
            *(Tensor(x, name=f"{parameter}.{k} before") for x, k in zip(moments, "mv", strict=True)),
            Tensor(optimizer.lr, name="lr"),
            Tensor(optimizer.t + 1, name="t"),
        )
        application = Application(
            0,
            f"{parameter}.adamw",
            adamw,
            inputs,
            static,
            tuple(Tensor(r, name=n) for r, n in zip(results, UPDATE, strict=True)),
        )
        watched = collect((application,))
        part = name.rpartition(".")[2]
        if part != "update":
            explanation = _explained(name, index, application, UPDATE.index(part), watched)
        else:
            whole = adamw.terms(index, tuple(t.data for t in inputs), results[0], **static)
            before = [xp.asarray(t.data, dtype=xp.float64) for t in inputs[:4]]  # a difference of close numbers
            after = adamw.forward(*before, optimizer.lr, optimizer.t + 1, **static)[0][0]
            moved_by = float(after[index] - before[0][index])
            explanation = _from_term(name, index, moved_by, whole.parts[1], application, watched)
        clipped = self._is_clipped()
        whole = float(self.gradients().get(parameter, gradient)[index])
        sources = tuple(
            Source(parameter, s.index, whole, "" if clipped else s.letter, grad=True) if s.letter == "g" else s
            for s in explanation.sources
        )
        definitions = explanation.definitions
        if clipped and sources != explanation.sources:
            definitions = (self._clipping(parameter, index, whole, float(gradient[index])), *definitions)
        note = notes.update(optimizer.t + 1, optimizer.lr, self._norm if clipped else None, self.max_grad_norm)
        return replace(explanation, sources=sources, definitions=definitions, note=note)

    def _clipping(self, parameter: str, index: Index, whole: float, clipped: float) -> arithmetic.Line:
        """Return the line that makes the clipped gradient g of the whole one."""
        factor = f"{arithmetic.decimal(self.max_grad_norm)} / {arithmetic.decimal(self._norm)}"
        letters = f"∂loss/∂{written(parameter, index)} × {factor}"
        return arithmetic.Line("g", f"{letters} = {arithmetic.decimal(whole)} × {factor}", Term("g", clipped))

    # Gradients

    def _walk(self) -> list[Step]:
        """Walk back once, and keep the gradient of every named tensor."""
        if not self.has_loss:
            raise ExplainError("a gradient needs a loss. Give targets.")
        if self._steps is None:
            xp = namespace(self.result.data)
            one = xp.asarray(1.0, dtype=self.result.dtype)
            self._steps = list(walk_back(self.result, one))
            gradients = {self.watched.name(self.result): one}
            for step in self._steps:
                for tensor, d in zip(step.node.inputs, step.d_inputs, strict=True):
                    if d is not None:
                        name = self.watched.name(tensor)
                        gradients[name] = gradients[name] + d if name in gradients else d
            self._gradients = gradients
        return self._steps

    def gradients(self) -> dict[str, Any]:
        """Return d loss / d tensor for every named tensor that the loss depends on."""
        self._walk()
        return self._gradients or {}

    @property
    def _norm(self) -> float:
        squares = (self.gradients().get(name) for name in self.model.parameters())
        return math.sqrt(math.fsum(float((d * d).sum()) for d in squares if d is not None))

    def _is_clipped(self) -> bool:
        return bool(self.max_grad_norm) and self._norm > self.max_grad_norm

    def _clipped(self, parameter: str) -> Any:
        tensor = self.model.parameters()[parameter]
        gradient = self.gradients().get(parameter, namespace(tensor.data).zeros_like(tensor.data))
        return gradient * (self.max_grad_norm / self._norm) if self._is_clipped() else gradient

    def _gradient(self, name: str, index: Index, first: bool = False) -> Explanation:
        """Explain d loss / d element: each use of the tensor, each element of the use's result that it reaches."""
        if name not in self.watched.leaves and name not in self.watched.made:
            if self._parameter_of(name):
                raise ExplainError(
                    f"{name} comes after the loss and has no gradient. Ask for {self._parameter_of(name)}."
                )
            raise self._unknown(name)
        tensor = self.watched.tensor(name)
        _check_index(name, index, tensor.shape)
        gradients = self.gradients()
        if name not in gradients:
            given = "given, not learned" if not tensor.requires_grad else "not used by the loss"
            raise ExplainError(f"{name} has no gradient: it is {given}. Ask for a parameter or an activation.")
        value = float(gradients[name][index])
        difference = self.central_difference(name, index) if first else None
        if name == self.watched.name(self.result):
            return Explanation(name, index, value, True, note=notes.ROOT, difference=difference)
        found_shares = [share for step in self._walk() for share in shares(step, tensor, index, self.watched)]
        found_shares.sort(key=lambda s: -abs(s.value))
        uses = [s for s in self._walk() if any(t is tensor for t in s.node.inputs)]
        equations = [s.node.equation for s in uses]
        found = entries()
        scale = math.fsum(abs(share.value) for share in found_shares)
        cancels = bool(found_shares) and abs(value) <= ROUNDING * float(np.finfo(self.result.dtype).eps) * scale
        note = notes.CANCELLED if cancels else None if found_shares else notes.why_zero(uses, tensor, index)
        return Explanation(
            name,
            index,
            value,
            True,
            equation=", ".join(dict.fromkeys(e.name for e in equations)),
            formula="\n".join(dict.fromkeys(found[e.name].plain_derivative for e in equations)),
            latex=r" \quad ".join(dict.fromkeys(e.derivative for e in equations)),
            where=", ".join(dict.fromkeys(str(found[e.name].derivative) for e in equations)),
            expression="sum over what it reaches of (cotangent × slope)",
            terms=tuple(map(_part, found_shares)),
            total=math.fsum(share.value for share in found_shares),
            scale=scale,
            sources=tuple(map(_source, found_shares)),
            difference=difference,
            note=note,
            cancels=cancels,
        )

    def central_difference(self, name: str, index: Index) -> float:
        """Return (loss(x + h) - loss(x - h)) / 2h for one element, computed in float64 on the spot."""
        arrays = {
            k: namespace(p.data).asarray(p.data, dtype=_double(p.data)) for k, p in self.model.parameters().items()
        }
        value = float(self.watched.tensor(name).data[index])
        h = STEP * max(1.0, abs(value))

        def loss(step: float) -> float:
            if name in arrays:
                model = TinyGPT(self.model.config, arrays=arrays | {name: moved(arrays[name], index, step)})
                with no_grad():
                    return self.compute(model).item()
            application, which = self.watched.made[name]
            with interpreting(Nudge(application.number, which, index, step)):
                return self.compute(TinyGPT(self.model.config, arrays=arrays)).item()

        return (loss(h) - loss(-h)) / (2 * h)

    def _unknown(self, name: str) -> ExplainError:
        near = get_close_matches(name, self.names(), n=3, cutoff=0.4)
        hint = f"Nearest: {', '.join(near)}." if near else "Use a name such as blocks.0.attn.weights, logits or loss."
        if name == "loss" and not self.has_loss:
            hint = "Give targets, or a prompt of at least two bytes."
        return ExplainError(f"nothing is called {name!r} in this model. {hint}")


def _explained(name: str, index: Index, application: Application, which: int, watched: Watched) -> Explanation:
    result = application.results[which].data
    _check_index(name, index, result.shape)
    asked = {"which": which} if len(application.results) > 1 else {}
    inputs = tuple(t.data for t in application.inputs)
    term = application.equation.terms(index, inputs, result, **application.static, **asked)
    return _from_term(name, index, float(result[index]), term, application, watched)


def _from_term(
    name: str, index: Index, value: float, term: Term, application: Application, watched: Watched
) -> Explanation:
    entry = entries()[application.equation.name]
    parts = sorted(arithmetic.addends(term), key=lambda t: -abs(t.value))
    sources: dict[tuple[int, Index], Source] = {}
    for part in parts:
        for leaf in arithmetic.leaves(part):
            if leaf.source is not None and leaf.source not in sources:
                which, place = leaf.source
                tensor = application.inputs[which]
                sources[leaf.source] = Source(watched.name(tensor), place, leaf.value, leaf.label.partition("[")[0])
    ordered = list(sources.values())
    if application.equation.name == "cross_entropy":
        targets = application.inputs[1].data
        ordered.sort(
            key=lambda s: (s.index[-1] != int(targets[s.index[:-1]]), -s.value)
        )  # targets, then the likeliest
    return Explanation(
        name,
        index,
        value,
        equation=application.equation.name,
        formula=entry.plain,
        latex=entry.latex,
        where=str(entry.forward),
        expression=arithmetic.expression(term),
        definitions=tuple(arithmetic.definitions(term)),
        terms=tuple(Part(_both(t), t.value) for t in parts),
        total=term.value,
        scale=math.fsum(abs(t.value) for t in parts),
        sources=tuple(ordered),
        note=notes.masked(index) if term.label == MASKED else None,
    )


def _both(term: Term) -> str:
    """Write a term in letters and in numbers."""
    letters, numbers = arithmetic.expression(term, arithmetic.letter), arithmetic.expression(term)
    return letters if letters == numbers else f"{letters} = {numbers}"


def _source(share: Share) -> Source:
    return Source(share.name, share.index, float(share.cotangent), "d", grad=True)


def _part(share: Share) -> Part:
    target = written(share.name, share.index, True)
    numbers = f"{arithmetic.decimal(float(share.cotangent))} × {arithmetic.decimal(float(share.slope))}"
    return Part(f"{target} × slope = {numbers}", share.value)


def _double(x: Any) -> Any:
    return namespace(x).float64


def _check_index(name: str, index: Index, shape: tuple[int, ...]) -> None:
    if shape and not index:
        raise ExplainError(
            f"give an index: {name} has shape {shape}. The last one is {written(name, tuple(n - 1 for n in shape))}."
        )
    if len(index) != len(shape) or any(not 0 <= i < n for i, n in zip(index, shape, strict=True)):
        example = f"{name}[{','.join(str(n - 1) for n in shape)}]" if shape else name
        raise ExplainError(
            f"{written(name, index)} does not exist: {name} has shape {shape}. The last one is {example}."
        )
