"""The kernel that computes an equation in each runtime, from the registrations in the kernels' files.

They are parsed from the source: importing kernels would import NumPy and need Numba.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

from byhand.book.finding import source
from byhand.runtimes.loops.pattern.language import applications, names_in, parsed

RUNTIMES = source.PACKAGE / "runtimes"
# decorators of a kernel, or of an activation's formula
MAKERS = ("kernel", "saves_derivative", "derivative_of_output", "gates")

Rule = dict[str, Any]


def kernels_of(equation: str) -> dict[str, tuple[Path, str]]:
    """Return file and definition of the kernel that computes an equation in training, by runtime.

    A definition in a function that makes kernels of a format is dotted, as `source.definition` takes it.
    """
    found = {}
    for runtime in sorted(path.parent.name for path in RUNTIMES.glob("*/kernels")):
        definitions, rules, computes = _registered(runtime)
        name = computes.get(equation) or _kernel(rules, equation)
        if name is not None:
            found[runtime] = definitions[name]
    return found


def _kernel(rules: list[Rule], equation: str) -> str | None:
    """Return the kernel of the largest rule that ends in the equation, else of the smallest that contains it."""
    ending = [rule for rule in rules if parsed(rule["pattern"]).names == (equation,)]
    if ending:
        return max(ending, key=lambda rule: (_size(rule), "reason" in rule))["kernel"]
    having = [rule for rule in rules if equation in (*names_in(parsed(rule["pattern"])), rule.get("part_of"))]
    return min(having, key=_size)["kernel"] if having else None


def _size(rule: Rule) -> int:
    return len(applications(parsed(rule["pattern"])))


@cache
def _registered(runtime: str) -> tuple[dict[str, tuple[Path, str]], list[Rule], dict[str, str]]:
    """Return file and definition of a runtime's kernels by name, its rules of training, and kernels by equation."""
    definitions: dict[str, tuple[Path, str]] = {}
    rules: list[Rule] = []
    computes: dict[str, str] = {}
    for path in sorted((RUNTIMES / runtime / "kernels").rglob("*.py")):
        for statement in source.tree(path).body:
            if isinstance(statement, ast.FunctionDef):
                for facts in map(_kernel_facts, statement.decorator_list):
                    if facts is None:
                        continue
                    definitions[statement.name] = (path, statement.name)
                    for name in facts.get("computes", "").split():
                        computes.setdefault(name, statement.name)
                for made in statement.body:
                    if isinstance(made, ast.FunctionDef) and _makes_kernels(made):
                        definitions.setdefault(made.name, (path, f"{statement.name}.{made.name}"))
            elif isinstance(statement, ast.Expr) and _is_call(statement.value, "register"):
                rules += [_literals(rule) for rule in statement.value.args]
    return definitions, [rule for rule in rules if "train" in rule["stages"]], computes


def _makes_kernels(function: ast.FunctionDef) -> bool:
    return any(_kernel_facts(decorator) is not None for decorator in function.decorator_list)


def _kernel_facts(decorator: ast.expr) -> dict[str, Any] | None:
    """Return the settings of `@kernel`, or of a decorator that makes kernels of a formula; None for another one."""
    if isinstance(decorator, ast.Name) and decorator.id == "kernel":
        return {}
    return _literals(decorator) if any(_is_call(decorator, name) for name in MAKERS) else None


def _is_call(node: ast.expr, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _literals(call: ast.expr) -> dict[str, Any]:
    """Return the keywords of a call whose values are literals."""
    assert isinstance(call, ast.Call)
    found = {}
    for keyword in call.keywords:
        try:
            found[keyword.arg] = ast.literal_eval(keyword.value)
        except ValueError:
            continue  # a function, or a name
    return found
