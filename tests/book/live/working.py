"""The exported arithmetic evaluated by a few lines of Python, independent of the pages' code."""

import itertools
import math


def drawn(v):
    sums = list(itertools.accumulate(v[1:]))
    return float(next(k for k, x in enumerate(sums) if x > v[0] * sums[-1]))


FUNCTIONS = {f.__name__: f for f in (math.exp, math.log, math.sqrt, math.tanh, math.erf, math.cos, math.sin)}
OPERATIONS = {
    "sum": math.fsum,
    "product": math.prod,
    "ratio": lambda v: math.nan if v[0] == v[1] == 0 else v[0] / v[1],
    "max": max,
    "negative": lambda v: -v[0],
    "square": lambda v: v[0] * v[0],
    "positive": lambda v: max(v[0], 0.0),
    "kept": lambda v: v[0] if v[1] <= v[2] else -math.inf,
    "draw": drawn,
    "step": lambda v: float(v[0] > 0),
    **{name: lambda v, f=f: f(v[0]) for name, f in FUNCTIONS.items()},
}


def program_of(data, cell, numbers):
    for switch, forms in data["choices"]:
        own = next(programs for value, programs in forms if value == numbers[switch])
        if cell in own:
            return own[cell]
    return data["programs"][cell]


def registers(data, cell, numbers):
    form, *cells = program_of(data, cell, numbers)
    _, constants, operations, _ = data["forms"][form]
    found = [*(numbers[c] for c in cells), *map(float, constants)]
    for op, *places in operations:
        parts = [found[place] for place in places]
        value = OPERATIONS[op](parts)
        residue = op == "sum" and abs(value) < 1e-12 * max(map(abs, parts), default=0)
        found.append(0.0 if residue else value)
    return found


def worked(data, given):
    numbers = list(given)
    for cell, program in enumerate(data["programs"]):
        if program:
            numbers[cell] = registers(data, cell, numbers)[-1]
    return numbers
