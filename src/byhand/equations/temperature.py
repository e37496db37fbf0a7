r"""Temperature: flatten (tau > 1) or sharpen (tau < 1) the distribution before sampling.

Equation    z' = z / tau
Derivative  d_z = d_z' / tau
Shapes      logits (..., V) -> the same
Raises      ShapeError if tau is not positive (tau = 0 is greedy decoding, which needs no distribution)
Source      Ackley, Hinton & Sejnowski 1985, A Learning Algorithm for Boltzmann Machines
"""

from byhand.engine.arrays import require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, number, ratio


def forward(logits, *, tau):
    """Divide."""
    require(tau > 0, f"temperature: tau must be positive, not {tau}")
    return logits / tau, ()


def vjp(saved, d_z, *, tau):
    """Divide the cotangent too."""
    return (d_z / tau,)


def terms(index, inputs, result, *, tau):
    """A logit over tau."""
    return ratio(element(inputs, 0, index, "z"), number(tau, "tau"))


def gradient_terms(saved, d_results, slot, index, *, tau):
    """A cotangent over tau."""
    return ratio(element(d_results, 0, index, "∂z'"), number(tau, "tau"))


temperature = Equation.of(
    __name__,
    title="Temperature",
    latex=r"z' = z / \tau",
    derivative=r"\partial z = \partial z' / \tau",
    inputs=(Symbol("logits", "z", "(..., V)", "logits"),),
    result=Symbol("z", "z'", "(..., V)", "logits to sample from"),
    seed_names=("generate",),
)
