"""The optimizer: one application of an update for each parameter, and averaged weights."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any, Literal, NamedTuple, Self

from byhand.clipping import clip_gradients, gradient_norm
from byhand.config import GROUPS, OptimConfig
from byhand.engine import Tensor
from byhand.engine.arrays import as_tuple, namespace, require
from byhand.errors import Former
from byhand.layers.parameter import Arrays, Parameter
from byhand.update_rules import UpdateRule, rule_of, state_of, used_by

NOTHING = (0,)


class State(NamedTuple):
    """The arrays that a step changes, by parameter name.

    moments   the arrays that updates keep, by kind: {"m": ..., "v": ...}
    averages  moving averages of the parameters; empty without ema
    """

    parameters: dict[str, Any]
    moments: dict[str, dict[str, Any]]
    averages: dict[str, Any]

    @classmethod
    def each(cls, function: Callable[..., dict[str, Any]], *states: State) -> Self:
        """Map a function of dicts over the states: parameters, each kind of moments, averages."""
        first = states[0]
        return cls(
            function(*(state.parameters for state in states)),
            {kind: function(*(state.moments.get(kind, {}) for state in states)) for kind in first.moments},
            function(*(state.averages for state in states)),
        )

    def dictionaries(self) -> list[dict[str, Any]]:
        """Return the dict of each kind of arrays."""
        return [self.parameters, *self.moments.values(), self.averages]


class Optimizer:
    """Updates named parameters, each by the rule that the settings choose for its group.

    settings  of a run; `lr` starts with theirs: assign to it between steps to follow a schedule
    declared  a model's declarations of its parameters; undeclared ones decay if they have two or more axes
    t         steps made so far
    moments   the arrays that the updates keep, by kind and parameter name, in the parameter's dtype
    averages  moving averages of the parameters (see `averaged`), if the settings have an `ema`
    """

    m, v = Former('optimizer.moments["m"]'), Former('optimizer.moments["v"]')
    update_trace = Former("byhand.tracing.updates.ParameterUpdate(name, parameter, gradient, clipping, optimizer)")

    def __init__(self, settings: OptimConfig, declared: Mapping[str, Parameter] | None = None) -> None:
        self.settings = settings
        self.declared = declared or {}
        self.lr = settings.lr
        self.moments: dict[str, dict[str, Any]] = {
            symbol.name: {} for equation in used_by(settings, GROUPS) for symbol in state_of(equation)
        }
        self.averages: dict[str, Any] = {}
        self._count: tuple[int, Sequence[float]] = 0, NOTHING
        self._rules: dict[str, UpdateRule] = {}

    @property
    def t(self) -> int:
        """The number of steps made so far."""
        made, applied = self._count
        return made + int(applied[0])

    @t.setter
    def t(self, steps: int) -> None:
        self._count = steps, NOTHING

    def count_with(self, applied: Sequence[float]) -> None:
        """Add applied[0] to the count of steps: a runtime sets it to 1 when its in-place update is complete."""
        self._count = self.t, applied

    def one_more(self) -> tuple[Any, str, Any]:
        """Return the assignment that counts a step, for `assign` to make together with the update's."""
        return self, "_count", (self.t + 1, NOTHING)

    def restore(self, moments: Mapping[str, Arrays], averages: Arrays) -> None:
        """Load optimizer state; missing arrays are initialised at the next step."""
        self.moments = {kind: dict(moments.get(kind, {})) for kind in self.moments}
        self.averages = dict(averages)

    def rule(self, name: str, array: Any) -> UpdateRule:
        """Return a parameter's update rule."""
        if name not in self._rules:
            self._rules[name] = self._rule(name, tuple(array.shape))
        return self._rules[name]

    def _rule(self, name: str, shape: tuple[int, ...]) -> UpdateRule:
        known = self.declared.get(name)
        return rule_of(self.settings, known or Parameter(shape, decays=len(shape) >= 2))

    def rate_of(self, name: str, array: Any) -> float:
        """Return the learning rate of a parameter."""
        return self.lr * self.rule(name, array).scale

    def step(self, parameters: Mapping[str, Tensor]) -> None:
        """Replace each parameter's array by the updated one. A parameter without gradient is unchanged.

        Even if interrupted, either all are replaced and t counts the step, or nothing changes.
        """
        made, _ = self._updated(parameters, 0.0)
        self._replace(parameters, made)

    def clipped_step(self, parameters: Mapping[str, Tensor], max_norm: float) -> float:
        """Make a step with gradients clipped to the global norm max_norm (0: never); return the norm before.

        Nothing changes if the norm is not finite.
        """
        made, norm = self._updated(parameters, max_norm)
        if math.isfinite(norm):
            self._replace(parameters, made)
        return float(norm)

    def application(self, name: str, parameter: Tensor, gradient: Any) -> tuple[UpdateRule, dict[str, Any]]:
        """Return the rule of a parameter's next update by a gradient, and the inputs of its equation by name."""
        rule, theta = self.rule(name, parameter), parameter.data
        state = {kind: _kept(self.moments, kind, name, theta) for kind in rule.state}
        return rule, rule.inputs(theta, gradient, state, self.rate_of(name, parameter), self.t + 1)

    def _updated(self, parameters: Mapping[str, Tensor], max_norm: float) -> tuple[State, Any]:
        gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
        for name, g in gradients.items():
            p = parameters[name]
            require(
                g.shape == p.shape and g.dtype == p.dtype,
                f"the optimizer: the gradient of {name} is {g.shape} {g.dtype}, not {p.shape} {p.dtype}",
            )
        arrays = {name: parameters[name].data for name in gradients}
        rules = {name: self.rule(name, array) for name, array in arrays.items()}
        state = State(arrays, self.moments, self.averages)
        return updated(state, gradients, self.t + 1, self.lr, rules, max_norm, self.settings.ema)

    def _replace(self, parameters: Mapping[str, Tensor], made: State) -> None:
        """Commit a step's results to parameters and optimizer in one assignment."""
        moments = {kind: held | made.moments.get(kind, {}) for kind, held in self.moments.items()}
        assign(
            [
                *((parameters[name], "data", array) for name, array in made.parameters.items()),
                (self, "moments", moments),
                (self, "averages", self.averages | made.averages),
                self.one_more(),
            ]
        )


class AdamW(Optimizer):
    """AdamW for all parameters.

    lr            learning rate
    betas, eps    as in the equation
    weight_decay  decoupled, scaled by lr, on every array (`decay="all"`) or on `matrices` alone
    matrices      names of parameters; None: those with two or more axes
    scales        factors of lr by parameter name; 1 for the others
    ema           decay of the parameters' moving averages; 0 keeps none

    Deviation from the paper: decay is scaled by lr, as PyTorch and the original program do.
    """

    def __init__(
        self,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        decay: Literal["all", "matrices"] = "all",
        matrices: Collection[str] | None = None,
        *,
        scales: Mapping[str, float] | None = None,
        ema: float = 0.0,
        **settings: Any,
    ) -> None:
        numbers = {"lr": lr, "beta1": betas[0], "beta2": betas[1], "eps": eps, "weight_decay": weight_decay}
        super().__init__(OptimConfig(**numbers, decay=decay, ema=ema, **settings))
        self.matrices, self.scales = matrices, scales or {}
        self.packed: Mapping[str, int] = {}

    def _rule(self, name: str, shape: tuple[int, ...]) -> UpdateRule:
        decays = len(shape) >= 2 if self.matrices is None else name in self.matrices
        group = "matrices" if name in self.packed else "vectors"
        parameter = Parameter(shape, decays=decays, packed=self.packed.get(name, 1), group=group)
        return replace(rule_of(self.settings, parameter), scale=self.scales.get(name, 1.0))


class Muon(AdamW):
    """Muon for some matrices, one application of the `muon` equation each; AdamW for every other parameter.

    packed    names of the arrays that Muon updates, each with the number of matrices concatenated along its last
              axis; each matrix is orthogonalised by itself
    momentum  as in the equation

    All other settings are AdamW's; Muon's learning rate is lr times the array's scale.
    """

    def __init__(self, packed: Mapping[str, int], momentum: float = 0.95, **adamw: Any) -> None:
        super().__init__(**adamw, optimizer="muon", muon_lr=adamw.get("lr", 1e-3), muon_momentum=momentum)
        self.packed = dict(packed)


def updated(
    state: State, gradients: Arrays, t: Any, lr: Any, rules: Mapping[str, UpdateRule], max_norm: Any = 0.0,
    ema: float = 0.0,
) -> tuple[State, Any]:  # fmt: skip
    """Return the state after step t, and the gradients' norm before clipping to max_norm (0: never).

    A function of arrays by name, without branches on values, so it can be traced. The step t (from 1), lr and
    max_norm may be arrays. Missing moments count as zeros, a missing average as its parameter. Parameters without
    gradient are left out.

    ema  decay of the averages; 0 makes none
    """
    norm = gradient_norm(gradients)
    made = State({}, {kind: {} for kind in state.moments}, {})
    for name, g in clip_gradients(gradients, norm, max_norm).items():
        theta, rule = state.parameters[name], rules[name]
        rate = namespace(theta).asarray(lr * rule.scale, dtype=theta.dtype)
        kept = {kind: _kept(state.moments, kind, name, theta) for kind in rule.state}
        update = rule.equation.forward
        results, _ = update(*rule.inputs(theta, g, kept, rate, t).values(), **rule.static)
        made.parameters[name], *new = as_tuple(results)
        for kind, array in zip(rule.state, new, strict=True):
            made.moments[kind][name] = array
        if ema:
            made.averages[name] = averaged(state.averages.get(name, theta), made.parameters[name], t, ema)
    return made, norm


def assign(assignments: Iterable[tuple[Any, str, Any]]) -> None:
    """Set attributes (object, name, value): all of them or, if interrupted, none.

    Python runs signal handlers between bytecodes; the whole loop is one call into C, which runs none as long as the
    attributes are plain.
    """
    deque(starmap(setattr, list(assignments)), maxlen=0)


def _kept(moments: Mapping[str, Arrays], kind: str, name: str, theta: Any) -> Any:
    """Return an array of state; zeros before the first step."""
    held = moments.get(kind, {})
    return held[name] if name in held else namespace(theta).zeros_like(theta)


def averaged(average: Any, theta: Any, t: Any, decay: float) -> Any:
    r"""Return the moving average of a parameter after step t.

    Equation    a' = a + (1 - d) (theta - a),   d = min(decay, (1 + t) / (10 + t))
                so that initial weights do not dominate early averages
    Source      Tarvainen & Valpola 2017, arXiv:1703.01780; the smaller initial decay is TensorFlow's
    """
    xp = namespace(theta)
    kept = xp.minimum(xp.asarray(decay, dtype=theta.dtype), xp.asarray((1 + t) / (10 + t), dtype=theta.dtype))
    return average + (1.0 - kept) * (theta - average)


def decay_at(t: int, decay: float) -> float:
    """Return d of `averaged` after step t."""
    return min(decay, (1 + t) / (10 + t))
