"""Update rules: the update of each parameter, and its state between steps.

An update is an equation with `role="update"`: (theta, g, state ..., lr, perhaps t) -> (theta', new state ...). It
applies to every parameter, or only to matrices if its theta has the shape (..., M, N). Checkpoints, memory, runtimes
and explanations get the names and shapes of an optimizer's state from here.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from byhand.config import GROUPS, Group, OptimConfig
from byhand.engine.equation import Equation, Symbol, registry, with_role
from byhand.layers.parameter import Parameter

GIVEN = ("theta", "g", "lr", "t")  # inputs of an update other than state
OF_A_PARAMETER = "packed"  # the equation setting that comes from a parameter's declaration
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """How one parameter is updated.

    equation   the update
    parameter  its declaration: shape, packing, whether decay="matrices" decays it
    static     settings of the equation; weight decay is 0 if it does not decay
    scale      factor of lr
    """

    equation: Equation
    parameter: Parameter
    static: Mapping[str, Any]
    scale: float = 1.0

    @property
    def state(self) -> dict[str, Shape]:
        """The names and shapes of the arrays kept between steps; initially zeros."""
        return {symbol.name: self.parameter.shape for symbol in state_of(self.equation)}

    def inputs(self, theta: Any, g: Any, state: Mapping[str, Any], lr: Any, t: Any) -> dict[str, Any]:
        """Return the equation's inputs by name, in order."""
        given = {"theta": theta, "g": g, "lr": lr, "t": t, **state}
        return {symbol.name: given[symbol.name] for symbol in self.equation.inputs}

    @property
    def products(self) -> int:
        """The operations of the update's matrix products."""
        if self.equation.products is None:
            return 0
        shape = self.parameter.shape
        shapes = self.inputs(shape, shape, self.state, (), ())
        return self.equation.products(*shapes.values(), **self.static)[0]

    def unpacked(self) -> UpdateRule:
        """Return the rule for arrays that hold packed matrices along a separate axis."""
        return replace(self, static={**self.static, OF_A_PARAMETER: 1}) if OF_A_PARAMETER in self.static else self


def rule_of(settings: OptimConfig, parameter: Parameter) -> UpdateRule:
    """Return a parameter's update rule under a run's settings."""
    equation = registry[settings.rule_of(parameter.group)]
    static = {name: getattr(settings, field) for name, field in settings_of(equation).items()}
    if "weight_decay" in static and not (settings.decay == "all" or parameter.decays):
        static["weight_decay"] = 0.0
    if OF_A_PARAMETER in _parameters(equation.forward):
        static[OF_A_PARAMETER] = parameter.packed
    rate = settings.rate_of(parameter.group)
    return UpdateRule(equation, parameter, static, 1.0 if rate == settings.lr else rate / settings.lr)


@cache
def _parameters(forward: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return a function's parameters by name; cached, since every parameter of a model needs them."""
    return inspect.signature(forward).parameters


def settings_of(equation: Equation) -> dict[str, str]:
    """Return the config field of each setting that an update reads from a run's configuration.

    Its own field, such as `muon_momentum`, comes first; a setting with a default and no such field keeps the default.
    """
    known = {field.name for field in fields(OptimConfig)}
    found = {}
    for p in _parameters(equation.forward).values():
        own = f"{equation.name}_{p.name}"
        if p.kind is p.KEYWORD_ONLY and (own in known or p.default is p.empty):
            found[p.name] = own if own in known else p.name
    return found


def unread(settings: OptimConfig) -> dict[str, str]:
    """Return the settings that no chosen update reads, each with an update that does."""

    def read(equation: Equation) -> set[str]:
        return {*settings_of(equation).values(), *({f"{equation.name}_lr"} & vars(settings).keys())}

    used = {field for equation in used_by(settings, GROUPS) for field in read(equation)}
    return {field: equation.name for equation in updates() for field in sorted(read(equation) - used)}


def state_of(equation: Equation) -> tuple[Symbol, ...]:
    """Return the symbols of an update's state."""
    return tuple(symbol for symbol in equation.inputs if symbol.name not in GIVEN)


def updates() -> tuple[Equation, ...]:
    """Return the registered updates, which `--optimizer` offers."""
    return tuple(registry[name] for name in with_role("update"))


def used_by(settings: OptimConfig, groups: Iterable[Group]) -> tuple[Equation, ...]:
    """Return the distinct updates that a run's settings apply to these groups of parameters."""
    return tuple(registry[name] for name in dict.fromkeys(map(settings.rule_of, groups)))


def state_shapes(settings: OptimConfig, declared: Mapping[str, Parameter]) -> dict[str, Shape]:
    """Return the names, such as `m.wte`, and shapes of an optimizer's state, without averages.

    A checkpoint holds exactly these. Frozen parameters have none.
    """
    rules = {name: rule_of(settings, parameter) for name, parameter in declared.items() if parameter.trained}
    kinds = dict.fromkeys(kind for rule in rules.values() for kind in rule.state)
    return {f"{kind}.{n}": rule.state[kind] for kind in kinds for n, rule in rules.items() if kind in rule.state}


def by_kind(arrays: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a checkpoint's arrays of state by kind and parameter: {"m.wte": x} becomes {"m": {"wte": x}}."""
    found: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        kind, _, name = key.partition(".")
        found.setdefault(kind, {})[name] = array
    return found


def state_size(settings: OptimConfig, declared: Mapping[str, Parameter]) -> int:
    """Return the number of elements an optimizer keeps between steps, averages included."""
    averages = sum(math.prod(p.shape) for p in declared.values()) if settings.ema else 0
    return sum(map(math.prod, state_shapes(settings, declared).values())) + averages
