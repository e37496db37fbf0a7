"""The kernel that computes an equation in each runtime, as the kernels and the rules of their use are registered."""

from __future__ import annotations

from functools import cache

from byhand.book.finding import source
from byhand.book.finding.source import Code
from byhand.runtimes.loops import kernels
from byhand.runtimes.loops.machine.kernel import KERNELS
from byhand.runtimes.loops.pattern.language import applications
from byhand.runtimes.loops.pattern.rules import Rule, registered


def kernels_of(equation: str) -> dict[str, Code]:
    """Return file and definition of the kernel that computes an equation in training, by runtime."""
    kernels.load()
    serving = {stem: name for name, kernel in reversed(KERNELS.items()) for stem in kernel.computes.split()}
    serving |= {name.removeprefix("bias_"): name for name, kernel in KERNELS.items() if kernel.formula}
    name = serving.get(equation) or _kernel(equation)
    return {"loops": _definition(name)} if name else {}


def _kernel(equation: str) -> str:
    """Return the kernel of the largest rule that ends in the equation, else of the smallest that contains it."""
    rules = [rule for rule in registered if "train" in rule.stages and rule.pattern]
    ending = [rule for rule in rules if rule.applied.names == (equation,)]
    if ending:
        return max(ending, key=lambda rule: (_size(rule), bool(rule.reason))).kernel
    having = [rule for rule in rules if equation in (*rule.names, rule.part_of)]
    return min(having, key=_size).kernel if having else ""


def _size(rule: Rule) -> int:
    return len(applications(rule.applied))


@cache
def _definition(name: str) -> Code:
    """Return where a kernel is defined, or the formula that it is made of; in a function that makes it, dotted."""
    kernel = KERNELS[name]
    if not kernel.formula:
        function = getattr(kernel.function, "py_func", kernel.function)
        return source.inside(source.file_of(function)), function.__qualname__.replace("<locals>.", "")
    files = sorted(source.file_of(kernels.load).parent.rglob("*.py"))
    found = next(path for path in files if source.definition(path, kernel.formula))
    return source.inside(found), kernel.formula
