"""Break every derivative in turn and see which test notices: `python tests/bite.py [EQUATION ...]`.

A mutant is one edit of a `vjp`: + for -, * for /, a minus dropped, a constant or an axis changed, a transpose left
out, a comparison moved, one gradient replaced by zeros; and the catalogue's mistakes of that half. Each mutant takes
the place of the derivative in this process, and the laws and the equation's own test file run against it until a
test fails. `--half forward` and `--half terms` break those instead. Prints a Markdown table; exits with 1 if a
mutant survives that is not known to be equivalent. `--write docs/tests-that-bite.md` puts the rows into the table of
that page; rows of others stay.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import inspect
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import pytest  # noqa: E402

import byhand.equations  # noqa: E402, F401
from byhand.book.practice.catalogue import catalogue  # noqa: E402
from byhand.book.practice.planting import code_of  # noqa: E402
from byhand.engine import Composite, registry  # noqa: E402
from byhand.engine.arrays import scatter_add_rows, sum_to_shape  # noqa: E402
from byhand.engine.backward import backward, walk_back  # noqa: E402

MARKER = "<!-- tests/bite.py -->"

Edit = Callable[[Any], ast.AST]

SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
COMPARISONS = {ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Eq: ast.NotEq}
TRANSPOSES = ("transpose", "matrix_transpose")

# The functions of the engine that every gradient passes through, and where their tests are.
ENGINE = {
    "sum_to_shape": (sum_to_shape, "equations/test_broadcast.py"),
    "scatter_add_rows": (scatter_add_rows, "equations/test_broadcast.py"),
    "walk_back": (walk_back, "engine/test_backward.py"),
    "backward": (backward, "engine/test_backward.py"),
}

SHAPE = "the derivative asks only for the shape of what is saved"
# Mutants that compute the same numbers, and why.
EQUIVALENT = {
    ("split_qkv", "d_qkv[0] → d_qkv[1]"): "asks for the namespace or the shape, which all three share",
    ("causal_self_attention", "d_qkv[0] → d_qkv[1]"): "as in split_qkv",
    (
        "scatter_add_rows",
        "result.at[index].add(rows) → tuple((g * 0 for g in result.at[index].add(rows)))",
    ): "only JAX arrays take this way",
    ("attention_scores", "inputs[0] → inputs[1]"): "asks for the head width, which queries and keys share",
    ("reshape", "offset = 0 → offset = 1"): "adds a multiple of the size, which the last division drops",
    ("relu", "x <= 0 → x < 0"): "both give zero at zero",
    ("relu_squared", "x <= 0 → x < 0"): "both give zero at zero",
    ("add", "a → a * 0"): SHAPE,
    ("add", "b → b * 0"): SHAPE,
    ("add_positional", "table → table * 0"): SHAPE,
    ("merge_heads", "x → x * 0"): SHAPE,
    ("embedding", "table → table * 0"): SHAPE,
    ("reshape", "x → x * 0"): SHAPE,
}


@dataclass(frozen=True)
class Mutant:
    """One edit of one function."""

    function: FunctionType
    line: int
    edit: str
    code: Any


def edits(node: ast.AST, parent: ast.AST | None) -> Iterator[Edit]:
    """Yield every way to break one node of the syntax tree."""
    match node:
        case ast.BinOp(op=op) if type(op) in SWAPS:
            yield lambda n: ast.BinOp(n.left, SWAPS[type(n.op)](), n.right)
        case ast.UnaryOp(op=ast.USub()) if not isinstance(node.operand, ast.Constant):
            yield lambda n: n.operand
        case ast.Constant(value=float()):
            yield lambda n: ast.Constant(n.value + 0.25)
        case ast.Constant(value=int()) if not isinstance(node.value, bool) and not isinstance(parent, ast.UnaryOp):
            yield lambda n: ast.Constant(n.value + 1)
        case ast.keyword(arg="axis", value=ast.Constant() | ast.UnaryOp()):
            yield lambda n: ast.keyword("axis", ast.Constant(0 if ast.literal_eval(n.value) else -1))
        case ast.Tuple(elts=axes) if len(axes) > 2 and all(isinstance(getattr(a, "value", None), int) for a in axes):
            yield lambda n: ast.Tuple([ast.Constant(i) for i in range(len(n.elts))], ast.Load())
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield lambda n: ast.Compare(n.left, [COMPARISONS[type(n.ops[0])]()], n.comparators)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[_]) if name in TRANSPOSES:
            yield lambda n: n.args[0]
        case ast.Attribute(attr="T"):
            yield lambda n: n.value
    nothing = (isinstance(node, ast.Constant) and node.value is None) or (
        isinstance(node, ast.Tuple) and not node.elts
    )
    if returned(node, parent) and not nothing:
        yield zeros if isinstance(parent, ast.Tuple) else zeros_each


def returned(node: ast.AST, parent: ast.AST | None) -> bool:
    """Say whether a node is one gradient in a returned tuple, or a returned call that makes them all."""
    return getattr(node, "is_gradient", False) and (isinstance(parent, ast.Tuple) or isinstance(node, ast.Call))


def mark_gradients(tree: ast.AST) -> None:
    """Mark the expressions that a function returns, and the elements of tuples among them."""
    waiting = [n.value for n in ast.walk(tree) if isinstance(n, ast.Return) and n.value is not None]
    for node in waiting:
        node.is_gradient = True  # pyright: ignore[reportAttributeAccessIssue]
        waiting += node.elts if isinstance(node, ast.Tuple) else []
        waiting += [node.body, node.orelse] if isinstance(node, ast.IfExp) else []


def zeros(n: Any) -> ast.AST:
    """Replace one gradient by zeros of its shape and type."""
    return ast.BinOp(n, ast.Mult(), ast.Constant(0))


def zeros_each(n: Any) -> ast.AST:
    """Replace every gradient of a returned tuple by zeros."""
    return ast.parse(f"tuple(g * 0 for g in {ast.unparse(n)})", mode="eval").body


def mutants(function: FunctionType) -> Iterator[Mutant]:
    """Yield every mutant of a function."""
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse("".join(lines))
    ast.increment_lineno(tree, first - 1)
    mark_gradients(tree)
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    signature = {id(node) for node in ast.walk(tree.body[0].args)}  # pyright: ignore[reportAttributeAccessIssue]
    for i, node in enumerate(ast.walk(tree)):
        if id(node) in signature:
            continue  # defaults belong to the function, not to its code
        for edit in edits(node, parents.get(id(node))):
            broken = replaced(tree, i, edit)
            shown = parents[id(node)] if isinstance(node, ast.Constant) else node
            inside = next(k for k, n in enumerate(ast.walk(shown)) if n is node)
            before, after = (ast.unparse(n).replace("\n", " ") for n in (shown, replaced(shown, inside, edit)))
            space: dict[str, Any] = {}
            exec(compile(broken, inspect.getsourcefile(function) or "", "exec"), function.__globals__, space)
            line = getattr(node, "lineno", None) or node.value.lineno  # pyright: ignore[reportAttributeAccessIssue]
            yield Mutant(function, line, f"{before} → {after}", space[function.__name__].__code__)


def mistakes(name: str, half: str, function: FunctionType) -> Iterator[Mutant]:
    """Yield the catalogue's mistakes in a half of an equation."""
    for mistake in catalogue():
        if mistake.where == f"{name}.{half}":
            yield Mutant(function, function.__code__.co_firstlineno, mistake.en, code_of(mistake.where, [mistake]))


def replaced(tree: ast.AST, index: int, edit: Edit) -> ast.AST:
    """Return a copy of the tree in which the node that `ast.walk` meets as number `index` is edited."""
    tree = copy.deepcopy(tree)
    target = list(ast.walk(tree))[index]

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return edit(node) if node is target else self.generic_visit(node)

    return ast.fix_missing_locations(Replace().visit(tree))


class FirstFailure:
    """A pytest plugin that remembers the first test that failed."""

    test = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the name of the first failure."""
        if report.failed and not self.test:
            self.test = report.nodeid.partition("::")[2].partition("[")[0]


def first_failure(tests: list[str]) -> str:
    """Run tests as they are; return the first that fails, or nothing."""
    plugin = FirstFailure()
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=bite", f"--rootdir={ROOT}"]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        code = pytest.main([*(str(ROOT / "tests" / test) for test in tests), *options], plugins=[plugin])
    return plugin.test or ("" if code == pytest.ExitCode.OK else f"pytest: {code!r}")


def catch(mutant: Mutant, tests: list[str]) -> str:
    """Run tests with the mutant in the function's place; return the test that failed."""
    original = mutant.function.__code__
    mutant.function.__code__ = mutant.code
    try:
        return first_failure(tests)
    finally:
        mutant.function.__code__ = original


def tests_of(name: str, *laws: str) -> list[str]:
    """Return where the tests of an equation are: the laws that it has to obey, then its own file."""
    return [*(f"equations/test_laws.py::{law}[{name}]" for law in laws), f"equations/test_{name}.py"]


def targets(names: list[str], half: str) -> Iterator[tuple[str, list[FunctionType], list[str]]]:
    """Yield what to break and the tests that must notice. A composite's derivative is that of its parts."""
    for name, equation in sorted(registry.items()):
        if names and name not in names:
            continue
        if isinstance(equation, Composite):
            used = [registry[n] for n in equation.compose.__code__.co_names if n in registry]
            yield name, [e.vjp for e in used] if half == "vjp" else [], tests_of(name, "test_gradient")
        else:
            yield name, [getattr(equation, half)], tests_of(name, "test_gradient", "test_halves", "test_terms")
    for name, (function, test_file) in ENGINE.items():
        if half == "vjp" and (not names or name in names):
            yield name, [function], [test_file]


@dataclass(frozen=True)
class Row:
    """What became of the mutants of one equation, or of one function of the engine."""

    name: str
    mutants: int
    killed: int
    equivalent: int
    caught_by: str
    survivors: tuple[str, ...]

    @property
    def line(self) -> str:
        """The row of the table."""
        return f"| {self.name} | {self.mutants} | {self.killed} | {self.equivalent} | {self.caught_by} |"


def measured(names: list[str], half: str) -> Iterator[Row]:
    """Break everything of these names, or all, and yield what became of it."""
    for name, functions, tests in targets(names, half):
        if failed := first_failure(tests):
            sys.exit(f"error: the tests of {name} fail as they are, in {failed}. Repair that first.")
        caught: Counter[str] = Counter()
        survivors: list[str] = []
        equivalent = 0
        for mutant in (m for f in functions for m in (*mutants(f), *mistakes(name, half, f))):
            if test := catch(mutant, tests):
                caught[test] += 1
                continue
            why = EQUIVALENT.get((name, mutant.edit), "")
            equivalent += bool(why)
            where = Path(mutant.function.__code__.co_filename).relative_to(ROOT).as_posix()
            survivors.append(f"- {name}, `{where}:{mutant.line}`: `{mutant.edit}`: {why or '**no test noticed**'}")
        caught_by = ", ".join(f"`{test}` ({n})" for test, n in caught.most_common())
        if functions:
            killed = caught.total()
            yield Row(name, killed + len(survivors), killed, equivalent, caught_by, tuple(survivors))


def report(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of the table, then the survivors; the last line counts those that are not equivalent."""
    yield "| what was broken | mutants | killed | equivalent | caught first by |"
    yield "|---|--:|--:|--:|---|"
    sums: Counter[str] = Counter()
    survivors: list[str] = []
    for row in rows:
        yield row.line
        sums.update(mutants=row.mutants, killed=row.killed, equivalent=row.equivalent)
        survivors += row.survivors
    yield f"| **all** | {sums['mutants']} | {sums['killed']} | {sums['equivalent']} | |"
    yield ""
    yield from survivors
    yield f"\n{sums['mutants'] - sums['killed'] - sums['equivalent']} mutants escaped."


def written(table: str) -> dict[str, Row]:
    """Return the rows of a table that `report` made, by name."""
    survivors = re.findall(r"^(- (\w+), .*)", table, re.MULTILINE)
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (.*) \|$", table, re.MULTILINE)
    return {
        name: Row(name, *map(int, counts), tests, tuple(line for line, owner in survivors if owner == name))
        for name, *counts, tests in rows
    }


def write(page: Path, made: Iterable[Row]) -> None:
    """Put rows into a page's table; the others stay, save those of what is no longer there."""
    before, table, after = page.read_text(encoding="utf-8").split(MARKER)
    rows = written(table) | {row.name: row for row in made}
    kept = [rows[name] for name, _, _ in targets([], "vjp") if name in rows]
    page.write_text(MARKER.join((before, "\n\n" + "\n".join(report(kept)) + "\n\n", after)), encoding="utf-8")


def main() -> int:
    """Print the table, or write it into a page between its two markers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="EQUATION")
    parser.add_argument("--half", choices=("vjp", "forward", "terms"), default="vjp")
    parser.add_argument("--write", type=Path, metavar="PAGE", help=f"put the rows between two {MARKER} lines")
    options = parser.parse_args()
    if options.write and options.half != "vjp":
        parser.error("a page holds the table of derivatives: --write goes with --half vjp")
    sys.stdout.reconfigure(encoding="utf-8")  # pyright: ignore[reportAttributeAccessIssue]
    rows: list[Row] = []
    for line in report(rows.append(row) or row for row in measured(options.names, options.half)):
        print(line, flush=True)
    if options.write:
        write(options.write, rows)
    return int(any(row.mutants > row.killed + row.equivalent for row in rows))


if __name__ == "__main__":
    sys.exit(main())
