r"""Cross-entropy: how surprised the model is by the actual next token, on average.

Equation    L = 1/N * sum over n of (ln sum over v of exp(z[n,v]) - z[n, y_n])
Derivative  d_z[n,v] = d_L / N * (p[n,v] - [v = y_n]),   p = softmax(z)
            the sums run over the rows with a target; a negative one means none, and d_z of that row is 0
Shapes      logits (..., V), targets (...) of integers -> scalar; N is the number of targets; without any, L is 0
Units       nats (divide by ln 2 for bits)
Raises      ShapeError if the targets are not integers or differ in shape from the rows
Source      Shannon 1948, A Mathematical Theory of Communication
"""

import itertools
import math

from byhand.engine.arrays import as_rows, namespace, require
from byhand.engine.equation import TRANSCENDENTAL, Equation, Symbol, per_element
from byhand.engine.rows import mapped, over
from byhand.engine.terms import element, function, indices, largest, number, product, ratio, total
from byhand.equations.softmax import softmax_terms


def forward(logits, targets):
    """Shift by each row's maximum, so that no exponential overflows."""
    xp = namespace(logits)
    require(
        logits.shape[:-1] == targets.shape,
        f"cross_entropy: targets {targets.shape} do not match the rows of logits {logits.shape}",
    )
    require(xp.isdtype(targets.dtype, "integral"), f"cross_entropy: targets must be integers, not {targets.dtype}")
    require(math.prod(targets.shape) > 0, "cross_entropy: there are no targets to average over")
    rows, target = as_rows(logits), targets.reshape((-1, 1))
    shifted = rows - xp.max(rows, axis=-1, keepdims=True)
    e = xp.exp(shifted)
    z = xp.sum(e, axis=-1, keepdims=True)
    zero = xp.zeros_like(z)
    losses = xp.log(z) - xp.take_along_axis(shifted, xp.where(target < 0, 0, target), axis=-1)
    return xp.asarray(xp.sum(xp.where(target < 0, zero, losses)) / _count(xp, targets, z.dtype)), (e / z, targets)


def vjp(saved, d_loss):
    """Probabilities minus the one-hot targets, over N; 0 without a target."""
    p, targets = saved
    xp = namespace(p)
    target = targets.reshape((-1, 1))
    is_target = xp.arange(p.shape[1])[None, :] == target
    weight = xp.where(target < 0, xp.zeros_like(p[:, :1]), d_loss / _count(xp, targets, p.dtype))
    d_rows = xp.where(is_target, p - 1.0, p) * weight
    return d_rows.reshape((*targets.shape, p.shape[1])), None


def _count(xp, targets, dtype):
    """Return N, or 1 without targets: an empty mean is 0."""
    n = xp.sum(xp.astype(targets >= 0, dtype))
    return xp.where(n > 0, n, xp.ones_like(n))


def terms(index, inputs, result):
    """The mean over all targets of log-sum-exp minus the target's logit."""
    logits, targets = inputs
    places = [place for place in indices(targets.shape) if targets[place] >= 0]

    def loss(place):
        row = over(logits.shape[-1], lambda v: element(inputs, 0, (*place, v), "z"))
        m = largest(row, "m")
        minus_m = function("negative", m)
        log_z = function("log", total(mapped(lambda x: function("exp", total((x, minus_m))), row)))
        target = row[int(targets[place])]
        label = f"loss[{','.join(map(str, place))}]"
        return total((log_z, function("negative", total((target, minus_m)))), label)

    return ratio(total(map(loss, places)), number(max(1, len(places)), "N"))


def saved_terms(which, index, inputs):
    """The probabilities, with flattened rows."""
    logits, targets = inputs
    row, v = index
    place = next(itertools.islice(indices(targets.shape), row, None))
    return softmax_terms(over(logits.shape[-1], lambda i: element(inputs, 0, (*place, i), "z")), v)


# Maximum, difference, exp and sum; backward, ratio, one-hot and weight.
flops = per_element(TRANSCENDENTAL + 3, 3)


def gradient_terms(saved, d_results, slot, index):
    """d (p - [v = y]) / N, or d 0 / N without a target."""
    _, targets = saved
    *place, v = index
    row = 0
    for i, n in zip(place, targets.shape, strict=True):
        row = row * n + i
    target, n = int(targets[tuple(place)]), max(1, int((targets >= 0).sum()))
    d, chance = element(d_results, 0, (), "∂L"), element((*d_results, *saved), 1, (row, v), "p")
    difference = total((chance, number(-1)) if target == v else (chance,)) if target >= 0 else number(0)
    return product((d, ratio(difference, number(n, "N"))))


cross_entropy = Equation.of(
    __name__,
    title="Cross-entropy",
    latex=r"L = \frac{1}{N} \sum_n -\ln p_{n,y_n}, \quad p_{n,:} = \mathrm{softmax}(z_{n,:})",
    derivative=r"\partial z_{n,v} = \frac{\partial L}{N} \left( p_{n,v} - [v = y_n] \right)",
    inputs=(
        Symbol("logits", "z", "(..., V)", "one row of scores for each position"),
        Symbol("targets", "y", "(...)", "the actual next token"),
    ),
    result=Symbol("loss", "L", "()", "mean loss in nats"),
    seed_names=("nn::cross_entropy", "model::TinyGPT::loss"),
)
