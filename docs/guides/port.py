"""What the page asks: the models' parameters, first draws, tokens and applications in order; the table."""

import contextlib
import io
from collections.abc import Iterable
from itertools import islice
from random import Random
from typing import Any

from byhand.book.port import model
from byhand.book.port.comparing import check, of_page
from byhand.book.port.microgpt import NAMES, SEED, STD, MicroRun, in_order
from byhand.book.port.naming import table
from byhand.cli.main import main
from byhand.clipping import gradient_norm
from byhand.tracing.trace import Trace

step = model.STEP
# What the equations' general formulas are on this page: no cache, as many heads of keys as of queries.
HERE = {r"\mathrm{start} + t": "t", "(t)\\,": "t\\,", "H+K+h": "2H+h", " + (S - T)": ""}


def config_of(name: str) -> Any:
    """Return the settings of one of the page's models."""
    return model.CONFIGS[name]


def numbers_of(words: str, count: int) -> str:
    """Return the first numbers that a mistake leads to, as a command's arguments."""
    mistake = next(m for m in table().mistakes if m.en == words)
    return " ".join(f"{number:.9g}" for number in mistake.numbers[:count])


def two_together() -> int:
    """Return of how many pairs of mistakes the table has numbers."""
    return sum(numbers[0] == numbers[0] for *_, numbers in table().pairs())


def parameters_of(name: str) -> list[tuple[str, str]]:
    """Return each parameter's name and its shape; of the blocks the first alone."""
    arrays = model.filled(config=config_of(name))[0].parameters()
    return [(n, _shape(p.shape)) for n, p in arrays.items() if not n.startswith("blocks.1")]


def first_draws() -> list[tuple[int, float]]:
    """Return the generator's first states, and the numbers that they give."""
    return [(x, x / 2**31 - 1) for x in islice(model.states(), 3)]


def sizes(name: str) -> int:
    """Return the number of all parameters' elements."""
    return sum(p.data.size for p in model.filled(config=config_of(name))[0].parameters().values())


def token_rows(name: str) -> list[list[int]]:
    """Return the ids of each text, of which the last is a target only."""
    _, tokens, targets = model.filled(config=config_of(name))
    return [[*map(int, row), int(last[-1])] for row, last in zip(tokens, targets, strict=True)]


def first_logits(name: str) -> list[float]:
    """Return the logits of the first position."""
    network, tokens, _ = model.filled(config=config_of(name))
    return [float(x) for x in network.forward_logits(tokens).data[0, 0]]


def passed(name: str) -> list[tuple[str, str, str, str]]:
    """Return each application up to the first block's end, then those behind the last block.

    A row has the results' names without the block's, the first one's shape, the equation, and what it reads.
    """
    network, tokens, targets = model.filled(config=config_of(name))
    trace = Trace.of(lambda: network.loss(tokens, targets))
    rows = []
    for made in trace.applications:
        results, read = made.result_names(), map(trace.name, made.inputs)
        if not results[0].startswith("blocks.1."):
            rows.append((_listed(results), _shape(made.results[0].shape), made.equation.name, _listed(read)))
    return rows


def each_once(name: str, stems: Iterable[str]) -> list[tuple[str, str, str, str]]:
    """Return the rows of `passed` of these equations, one for each equation."""
    rows = [[row for row in passed(name) if row[2] == stem] for stem in stems]
    columns = ([" <br> ".join(dict.fromkeys(column)) for column in zip(*same, strict=True)] for same in rows)
    return [(results, shapes, stem, read) for results, shapes, stem, read in columns]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name.removeprefix('blocks.0.').removeprefix('blocks.1.')}`" for name in names)


def here(latex: str) -> str:
    """Return a formula with the settings of this page."""
    for general, special in HERE.items():
        latex = latex.replace(general, special)
    return latex


def gradient_norms(name: str) -> list[tuple[str, float, float]]:
    """Return the norm of each parameter's gradient, the last one's first; beside the first block's, the second's."""
    network, tokens, targets = model.filled(config=config_of(name))
    network.loss(tokens, targets).backward()
    norms = {n: float(gradient_norm({n: p.grad})) for n, p in network.parameters().items()}
    first = [n for n in reversed(norms) if not n.startswith("blocks.1.")]
    return [
        (n.removeprefix("blocks.0."), norms[n], norms[n.replace(".0.", ".1.")] if n.startswith("blocks.0.") else 0.0)
        for n in first
    ]


def printed(arguments: str, lang: str) -> str:
    """Return what `byhand port` prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["port", *arguments.split(), "--lang", lang])
    return out.getvalue().rstrip()


SHOWN = ("blocks.0.attn.scores", "grad/blocks.1.x_mid", "grad/blocks.0.attn.w_qkv", "new/blocks.0.attn.w_qkv")


def traced_lines() -> list[str]:
    """Return lines of the index that `byhand trace --page gpt` writes."""
    return [of_page("gpt").named(name).line() for name in SHOWN]


def traced_count() -> int:
    """Return how many arrays it has."""
    return len(of_page("gpt").arrays)


def checked(name: str, factor: float, lang: str) -> str:
    """Return what `byhand.check` says of an array that is a multiple of the right one."""
    return check(name, factor * of_page("gpt").named(name).array).said(lang)


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def run_of_microgpt() -> tuple[MicroRun, list[float]]:
    """Return microgpt's run on the page's names, and its first losses."""
    run = MicroRun()
    return run, list(run.losses(len(NAMES)))


def draws() -> dict[str, str]:
    """Return what Python's generator gives after `seed(42)`, by call."""
    of, words = (lambda: Random(SEED)), Random(SEED)
    gauss, drawn, order = of(), of(), list(range(10))
    of().shuffle(order)
    uniform = of()
    return {
        "words": ", ".join(str(words.getrandbits(32)) for _ in range(4)),
        "random()": ", ".join(repr(uniform.random()) for _ in range(3)),
        "gauss(0, 0.08)": ", ".join(repr(gauss.gauss(0, STD)) for _ in range(3)),
        "shuffle(0 ... 9)": " ".join(map(str, order)),
        "choices(0 ... 3, weights 1 2 3 4)": " ".join(map(str, drawn.choices(range(4), (1, 2, 3, 4), k=12))),
    }
