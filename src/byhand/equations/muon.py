r"""Muon's update: orthogonalised momentum, so that a step moves every direction of a matrix by the same length.

Equation    m' = beta m + (1 - beta) g,   n = beta m' + (1 - beta) g (Nesterov's look-ahead),
            theta' = theta - lr (s O(n) + wd theta),   O = orthogonalise,   s = sqrt(max(1, N / M)),
            beta = momentum, wd = weight_decay; N counts outputs, M inputs, since weights are [in, out].
            Matrices side by side in one array are orthogonalised separately
Derivative  with d_n = vjp of O at -lr s d_theta':  d_theta = (1 - lr wd) d_theta',   d_m' += beta d_n,
            d_g = (1 - beta) (d_m' + d_n),   d_m = beta d_m',   d_lr = -sum of d_theta' (s O(n) + wd theta)
Shapes      theta, g, m (..., M, packed N); lr a scalar -> theta', m'
Units       the decay is scaled by lr, as in AdamW
Raises      ShapeError if the shapes differ or are not those of matrices
Source      Jordan et al. 2024, Muon: An optimizer for hidden layers in neural networks
"""

from dataclasses import replace
from math import prod

from byhand.engine.arrays import namespace, require
from byhand.engine.equation import Equation, Symbol
from byhand.engine.terms import element, element_name, number, product, total
from byhand.equations.orthogonalise import frobenius, iterated, orthogonalise

STEPS, EPS = 5, 1e-7


def forward(theta, g, m, lr, *, momentum, weight_decay, packed=1, steps=STEPS, eps=EPS):
    """Return the new parameter and the new momentum; nothing is modified."""
    require(
        theta.shape == g.shape == m.shape,
        f"muon: theta {theta.shape}, g {g.shape} and m {m.shape} must have one shape",
    )
    m = momentum * m + (1.0 - momentum) * g
    direction, saved = orthogonalise.forward(apart(momentum * m + (1.0 - momentum) * g, packed), steps=steps, eps=eps)
    direction = together(direction, packed)
    made = theta - lr * (stretch(theta.shape, packed) * direction + weight_decay * theta)
    return (made, m), (theta, namespace(theta).asarray(lr, dtype=theta.dtype), direction, *saved)


def stretch(shape, packed):
    """Return s: wide matrices (more outputs than inputs) move further, so that all outputs move equally."""
    return max(1.0, shape[-1] / packed / shape[-2]) ** 0.5


def apart(x, packed):
    """Return the matrices (..., packed, M, N) packed side by side in x (..., M, packed N); a single one is x."""
    if packed == 1:
        return x
    *batch, rows, columns = x.shape
    return namespace(x).moveaxis(x.reshape((*batch, rows, packed, columns // packed)), -2, -3)


def together(x, packed):
    """Undo `apart`."""
    if packed == 1:
        return x
    *batch, _, rows, columns = x.shape
    return namespace(x).moveaxis(x, -3, -2).reshape((*batch, rows, packed * columns))


def vjp(saved, d_results, *, momentum, weight_decay, packed=1, steps=STEPS, eps=EPS):
    """Propagate through the step, the orthogonalisation, and the moving average, which n applies twice."""
    theta, lr, direction, *of_direction = saved
    d_theta, d_m = d_results
    scale = stretch(theta.shape, packed)
    (d_n,) = orthogonalise.vjp(tuple(of_direction), apart(-lr * scale * d_theta, packed), steps=steps, eps=eps)
    d_n = together(d_n, packed)
    d_m = d_m + momentum * d_n
    xp = namespace(theta)
    d_lr = xp.asarray(-xp.sum(d_theta * (scale * direction + weight_decay * theta)))
    return d_theta * (1.0 - lr * weight_decay), (1.0 - momentum) * (d_m + d_n), momentum * d_m, d_lr


def terms(index, inputs, result, *, momentum, weight_decay, packed=1, steps=STEPS, eps=EPS, which=0):
    """Old value, minus lr times (stretched direction, plus decay); or m' (which = 1)."""
    if which:
        g, m = element(inputs, 1, index, "g"), element(inputs, 2, index, "m")
        return total((product((number(momentum, "beta"), m)), product((number(1 - momentum), g))), "m'")
    ahead = momentum * (momentum * inputs[2] + (1 - momentum) * inputs[1]) + (1 - momentum) * inputs[1]
    direction = together(orthogonalise.forward(apart(ahead, packed), steps=steps, eps=eps)[0], packed)[index]
    return _moved(index, inputs, number(direction, element_name("O", index)), weight_decay, packed)


def _moved(index, inputs, direction, weight_decay, packed):
    theta = element(inputs, 0, index, "theta")
    moved = product((number(stretch(inputs[0].shape, packed), "s"), direction))
    decay = product((number(weight_decay, "wd"), theta))
    return total((theta, product((number(-1), number(inputs[3], "lr"), total((moved, decay))))))


def rule_terms(index, inputs, *, momentum, weight_decay, packed=1, steps=STEPS, eps=EPS):
    """The new weight with all steps of the orthogonalisation, of which `terms` has only the result."""
    *batch, i, j = index
    width = inputs[0].shape[-1] // packed
    first = j - j % width  # column of its matrix

    def ahead(*place):
        g, m = (element(inputs, which, (*batch, *place), "") for which in (1, 2))
        kept = total((product((number(momentum), m)), product((number(1 - momentum), g))))
        name = element_name("n", place)
        return total((product((number(momentum), kept)), product((number(1 - momentum), g))), name)

    n = [[ahead(row, first + k) for k in range(width)] for row in range(inputs[0].shape[-2])]
    made = iterated(n, (i, j - first), "|n|", steps, eps)
    return _moved(index, inputs, replace(made, label=element_name("O", index)), weight_decay, packed)


def beside(index, inputs, *, momentum, packed=1, steps=STEPS, eps=EPS, **_):
    """m', n, the norm of the whole n, and an element of the direction O, of which theta's term has only the value."""
    _, g, m, _ = inputs
    own, average = element(inputs, 1, index, "g"), element(inputs, 2, index, "m")

    def blended(average, label):
        return total((product((number(momentum), average)), product((number(1 - momentum), own))), label)

    kept = blended(average, "m'")
    whole = apart(momentum * (momentum * m + (1 - momentum) * g) + (1 - momentum) * g, packed)
    norm = together(namespace(whole).broadcast_to(frobenius(whole), whole.shape), packed)[index]
    made = together(orthogonalise.forward(whole, steps=steps, eps=eps)[0], packed)[index]
    return kept, blended(kept, "n"), number(norm, "|n|"), number(made, element_name("O", index))


def products(theta, g, m, lr, *, packed=1, steps=STEPS, **_):
    """The orthogonalisation's."""
    return orthogonalise.products(_matrices(theta, packed), steps=steps)  # pyright: ignore[reportOptionalCall]


def flops(theta, g, m, lr, *, packed=1, steps=STEPS, **_):
    """The orthogonalisation's; both averages 5, decay and step 5, backward 12."""
    forward, back = orthogonalise.flops(_matrices(theta, packed), steps=steps)  # pyright: ignore[reportOptionalCall]
    return forward + 10 * prod(theta), back + 12 * prod(theta)


def _matrices(shape, packed):
    return (*shape[:-2], packed, shape[-2], shape[-1] // packed)


muon = Equation.of(
    __name__,
    title="Muon update",
    latex=r"\theta' = \theta - \alpha \left( s\, O(n_t) + \lambda \theta \right), \quad "
    r"m_t = \beta m_{t-1} + (1-\beta) g_t, \quad n_t = \beta m_t + (1-\beta) g_t, \quad "
    r"s = \sqrt{\max(1, N/M)}, \quad O = \mathrm{orthogonalise}",
    derivative=r"\partial \theta = (1 - \alpha\lambda)\, \partial \theta', \quad "
    r"d_n = \mathrm{vjp}_O(-\alpha s\, \partial \theta'), \quad d_m = \partial m_t + \beta\, d_n, \quad "
    r"\partial g_t = (1-\beta) (d_m + d_n), \quad \partial m_{t-1} = \beta\, d_m, \quad "
    r"\partial \alpha = -\sum \partial \theta' \odot \left( s\, O(n_t) + \lambda \theta \right)",
    inputs=(
        Symbol("theta", r"\theta", "(..., M, N)", "weight of a linear layer, [in, out]"),
        Symbol("g", "g_t", "(..., M, N)", "its gradient"),
        Symbol("m", "m_{t-1}", "(..., M, N)", "momentum: moving average of gradients"),
        Symbol("lr", r"\alpha", "()", "learning rate"),
    ),
    result=tuple(
        Symbol(name, letter, "(..., M, N)", "new weight and momentum")
        for name, letter in (("theta", r"\theta'"), ("m", "m_t"))
    ),
    role="update",
)
