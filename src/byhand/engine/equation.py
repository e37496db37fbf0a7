"""Equation: two pure halves, the meaning of its symbols, and the one point where an interpreter intercepts it.

    forward(*arrays, **static) -> (result, saved)      result an array, or a tuple of arrays
    vjp(saved, d_result, **static) -> one gradient for each input, None for integers
    terms(index, inputs, result, **static) -> Term     the arithmetic of one element; with several results `which=`
                                                       chooses one, the first by default

`saved` holds arrays only; besides the static settings, it is all that the vjp gets from the forward half.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any, Self

from byhand.engine.context import current
from byhand.engine.terms import Term
from byhand.errors import ConfigError

registry: dict[str, Equation] = {}

TRANSCENDENTAL = 12  # multiplications and additions of a polynomial for exp, log or tanh in float32


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol of an equation: its name in code and in LaTeX, its shape, its meaning.

    nonnegative  its elements are never negative
    """

    name: str
    latex: str
    shape: str
    meaning: str
    nonnegative: bool = False


@dataclass(frozen=True, eq=False)
class Statement:
    """Fields common to equations and composites; each registers under its name.

    `inputs` lists the symbols in the order of forward's arrays (trailing ones may be optional); `result` is the
    result's symbol, or a tuple with one for each result. Formulas are only in `latex` and `derivative`.
    """

    name: str
    title: str
    latex: str
    derivative: str
    inputs: tuple[Symbol, ...]
    result: Symbol | tuple[Symbol, ...]
    seed_names: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        first: Statement = registry.setdefault(self.name, self)  # pyright: ignore[reportArgumentType] - a subclass
        if first is not self:  # the first may be the user's, imported before byhand's
            files = " and ".join(map(_file, (first, self)))
            raise ConfigError(f"two equations are called {self.name!r}, in {files}. Rename one of them.")

    @classmethod
    def of(cls, module: str, **facts: Any) -> Self:
        """Return the equation of a file (`__name__`): named after it, with its functions named like fields."""
        there = vars(sys.modules[module])
        functions = {f.name: there[f.name] for f in fields(cls) if callable(there.get(f.name))}
        return cls(name=module.rpartition(".")[2], **functions, **facts)

    def restated(self, **facts: Any) -> Self:
        """Return this equation with another formula or other terms; the first one stays registered under its name."""
        twin = copy(self)
        for fact, said in facts.items():
            object.__setattr__(twin, fact, said)
        return twin

    @property
    def results(self) -> tuple[Symbol, ...]:
        """The symbol of each result."""
        return self.result if isinstance(self.result, tuple) else (self.result,)

    def __call__(self, *inputs: Any, name: str = "", **static: Any) -> Any:
        """Apply to tensors or arrays; `name` is this result's name within the current scope.

        A composite names its parts under it, and takes None for an optional input.
        """
        return current().interpret(self, inputs, static, name)


@dataclass(frozen=True, eq=False)
class Equation(Statement):
    """One equation of the model. Calling it applies it under the current context's interpreter.

    role            the setting that may choose it: "activation", "gate", or "update" of parameters; "" for none
    moves           whether it only moves elements (transpose, gather) and computes nothing
    gradient_terms  (saved, d_results, slot, index, **static) -> Term: one element of the gradient of input number
                    `slot`, its leaves numbered in (*d_results, *saved); if absent, each partial derivative costs one
                    vjp and has no tree
    saved_terms     (which, index, inputs, **static) -> Term: one element of saved array number `which`; called only
                    if that is neither an input nor a result
    rule_terms      (index, inputs, **static) -> Term: one element of the first result including the choice that the
                    inputs decide, and all steps of an iteration; `terms` has only the chosen branch, the last step
    beside          (index, inputs, **static) -> Terms: intermediate values that are leaves of `terms`, in order of
                    computation
    products        (*shapes of inputs, **static) -> operations of the matrix products, forward and backward
    flops           the same for all other arithmetic; an exp, log or tanh counts as TRANSCENDENTAL operations
    """

    forward: Callable[..., Any]
    vjp: Callable[..., tuple[Any, ...]]
    terms: Callable[..., Term]
    role: str = ""
    moves: bool = False
    gradient_terms: Callable[..., Term | None] | None = None
    saved_terms: Callable[..., Term] | None = None
    rule_terms: Callable[..., Term] | None = None
    beside: Callable[..., tuple[Term, ...]] | None = None
    products: Callable[..., tuple[int, int]] | None = None
    flops: Callable[..., tuple[int, int]] | None = None


@dataclass(frozen=True, eq=False)
class Composite(Statement):
    """An equation made of smaller ones. The composition is the reference; a runtime may substitute a fused kernel."""

    compose: Callable[..., Any]


def per_element(forward: int, back: int) -> Callable[..., tuple[int, int]]:
    """Return a `flops` function that counts these operations per element of the first input."""
    return lambda shape, *_, **__: (forward * prod(shape), back * prod(shape))


def with_role(*roles: str) -> tuple[str, ...]:
    """Return the names of the equations with one of these roles."""
    return tuple(name for name, equation in registry.items() if getattr(equation, "role", "") in roles)


def _file(equation: Any) -> str:
    half = getattr(equation, "forward", None) or equation.compose
    return half.__code__.co_filename if hasattr(half, "__code__") else f"the module {half.__module__}"
