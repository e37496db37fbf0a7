"""The arithmetic that is shown for a derivative is what the vjp computes."""

import numpy as np
import pytest

from byhand.book.numbers import arithmetic
from byhand.engine import Tensor, walk_back
from byhand.equations import causal_softmax, cross_entropy, gelu, layer_norm, linear, softmax

RNG = np.random.default_rng(4)
X = RNG.standard_normal((2, 3, 3))
CASES = {
    "softmax": (softmax, (X,), {}),
    "causal_softmax": (causal_softmax, (X,), {}),
    "layer_norm": (layer_norm, (X,), {"eps": 0.1}),
    "layer_norm with gain": (layer_norm, (X, RNG.standard_normal(3), RNG.standard_normal(3)), {}),
    "cross_entropy": (cross_entropy, (X, RNG.integers(0, 3, (2, 3))), {}),
    "gelu": (gelu, (X,), {}),
    "linear": (linear, (X, RNG.standard_normal((3, 2))), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_vjp(case):
    equation, arrays, static = CASES[case]
    result = equation(*(Tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays), **static)
    (back,) = walk_back(result, RNG.standard_normal(result.shape) if result.shape else np.asarray(0.7))
    for index, expected in np.ndenumerate(back.d_inputs[0]):
        term = back.gradient_term(0, index)
        assert term.value == pytest.approx(expected, rel=1e-12, abs=1e-14)
        assert arithmetic.expression(term)
