"""Signatures that can be read: few positional parameters, and one class for each name."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

from where.syntax import tree

SRC = Path(__file__).resolve().parents[1] / "src" / "byhand"
MOST = 8  # positional parameters
COMPILED = {"kernel", "compiled", "instruction"}  # decorators of compiled loops, which take sizes and strides


@cache
def modules():
    """Return every module of the package, parsed, by its place."""
    return {path.relative_to(SRC): tree(path) for path in sorted(SRC.rglob("*.py"))}


def last_names(expressions):
    """Return the last name of each: `kernel` for kernel(rows="m"), `Protocol` for typing.Protocol."""
    called = [e.func if isinstance(e, ast.Call) else e for e in expressions]
    return {getattr(e, "attr", getattr(e, "id", "")) for e in called}


def is_compiled(place, function):
    in_loops = place.as_posix().startswith(("runtimes/loops/kernels/", "runtimes/loops/machine/"))
    return in_loops and bool(last_names(function.decorator_list) & COMPILED)


def test_functions_take_at_most_eight_positional_parameters():
    functions = [
        (place, node)
        for place, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    long = [
        f"{place}:{f.lineno} {f.name}"
        for place, f in functions
        if len(f.args.posonlyargs + f.args.args) > MOST and not is_compiled(place, f)
    ]
    assert len(functions) > 1000
    assert not long, f"pass a record, or settings by name: {long}"


def test_a_class_name_means_one_thing():
    """Local and private classes and protocols are free; every command of `cli` calls its flags Options."""
    homes = defaultdict(list)
    for place, module in modules().items():
        for node in module.body:
            if (
                not isinstance(node, ast.ClassDef)
                or node.name.startswith("_")
                or "Protocol" in last_names(node.bases)
            ):
                continue
            if (place.parts[0], node.name) != ("cli", "Options"):
                homes[node.name].append(place.as_posix())
    assert len(homes) > 100
    assert not {name: places for name, places in homes.items() if len(places) > 1}
