"""The engine: applies equations, records them, and walks back. It knows no transformer and no equation by name."""

from byhand.engine.backward import BackwardStep, backward, walk_back
from byhand.engine.equation import Composite, Equation, Symbol, registry
from byhand.engine.gradcheck import gradcheck
from byhand.engine.interpreter import Evaluate, Record, interpreting, no_grad, scope
from byhand.engine.tensor import Node, Tensor
from byhand.engine.terms import Term

__all__ = [
    "BackwardStep",
    "Composite",
    "Equation",
    "Evaluate",
    "Node",
    "Record",
    "Symbol",
    "Tensor",
    "Term",
    "backward",
    "gradcheck",
    "interpreting",
    "no_grad",
    "registry",
    "scope",
    "walk_back",
]
