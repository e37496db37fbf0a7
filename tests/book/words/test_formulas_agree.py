"""An equation's docstring and its LaTeX say the same: the same symbols, settings, lengths, constants and functions.

They are written differently, in words here and in signs there, so what is compared is what each of them mentions. A
name that one side defines on the way (`rstd = ...`) stands for what it is made of.
"""

import re

import pytest

from byhand.book.entries.contract import ENTRIES
from byhand.book.finding import source
from byhand.book.finding.flow import order
from byhand.book.words.plain_math import plain
from byhand.engine import Composite, registry
from every import every
from where.index import findings

GREEK = {"α": "alpha", "β": "beta", "ε": "epsilon", "λ": "lambda", "μ": "mu", "σ": "sigma", "τ": "tau", "θ": "theta"}
SPELLED = {"lr": "alpha", "eps": "epsilon", "wd": "lambda", "weight_decay": "lambda", "var": "sigma", "mean": "mu"}
FUNCTIONS = {"exp", "log", "tanh", "sqrt", "max", "rank", "sum"}
SIGNS = {
    "Σ": " sum ",
    "√": " sqrt ",
    "**-1/2": " sqrt ",
    "** -1/2": " sqrt ",
    "e^{": " exp {",
    "∂": " d_",
    "^T": "",
    "ᵀ": "",
    "³": " 3",
    "ranking": "rank",
    "total": "sum",
}
AVERAGE = {"avg", "averages", "mu"}


def written(text: str) -> str:
    """Both sides in the same signs."""
    text = re.sub(r"(\w)\u0302", r"\1hat", text)  # x with a hat
    for sign, word in (SIGNS | GREEK).items():
        text = text.replace(sign, word)
    text = re.sub(r"\bbeta_?(\d)", r"beta\1", text)
    text = re.sub(r"\b(causal_)?softmax\b", "exp sum", text)
    text = re.sub(r"(?<=\w) · (?=[A-Z])", " sum ", text)  # a dot product
    return re.sub(r"(?<=[a-z])(?=[A-Z]\b)", " ", text)  # h times D


def words(text: str) -> set[str]:
    """The names and numbers in a formula, subscripts aside."""
    found = set()
    for d, name in re.findall(r"(\bd_)?(\d+(?:\.\d+)?|[A-Za-z]\w*)", text):
        spelled = {SPELLED.get(s, s) for s in (name, name.partition("_")[0])}
        found |= spelled | ({f"d_{s}" for s in spelled} if d else set())
    return found


def defined(text: str, symbols: set[str]) -> dict[str, set[str]]:
    """What a formula defines on the way, by name."""
    clauses = re.split(r"\n|,\s{2,}|;\s|:\s|\bwith\b|\band\b", text)
    halves = [clause.strip().partition(" = ") for clause in clauses]
    names = [(re.sub(r"[\[_].*", "", left), right) for left, _, right in halves]
    return {name: words(right) for name, right in names if re.fullmatch(r"\w+", name) and name not in symbols}


def mentioned(parts: tuple[str, str], which: int, symbols: set[str]) -> set[str]:
    """What the formula (0) or the derivative (1) mentions, definitions followed."""
    known = defined(parts[0], symbols) | (defined(parts[1], symbols) if which else {})
    found = words(parts[which])
    for _ in range(3):
        found |= set().union(*(known[name] for name in found & set(known)))
    return found


def sides(stem: str) -> tuple[tuple[str, str], tuple[str, str]]:
    equation = registry[stem]
    half = equation.compose if isinstance(equation, Composite) else equation.forward
    parts = source.sections(source.file_of(half))
    said = written(parts["Equation"]), written(parts["Derivative"])
    return said, (written(plain(equation.latex)), written(plain(equation.derivative)))


def spellings(name: str, latex: str) -> set[str]:
    letter = re.sub(r"[\[_'].*", "", written(plain(latex)))
    return {SPELLED.get(s, s) for s in (name, letter, letter.lower())}


def differences(stem: str, said: tuple[str, str], latex: tuple[str, str]) -> list[str]:
    """What one side mentions and the other does not."""
    equation, entry = registry[stem], ENTRIES[stem]
    symbols = (*equation.inputs, *equation.results)
    names = {f"{s.name} {s.meaning}": spellings(s.name, s.latex) for s in symbols}
    for setting in (given.partition("=")[0] for given in findings()[stem].settings):
        names[setting] = {SPELLED.get(s, s) for s in (setting, written(plain(entry.settings.get(setting, setting))))}
    letters = {letter for s in symbols for letter in (re.sub(r"\W.*|_.*", "", s.latex),)}
    lengths = {c for s in symbols for c in re.findall(r"[A-Z]", s.shape)} - letters
    found: list[str] = []
    for which in (0,) if isinstance(equation, Composite) else (0, 1):
        ours, theirs = (mentioned(parts, which, set().union(*names.values())) for parts in (said, latex))
        found += [w for w in ours ^ theirs if re.fullmatch(r"[3-9]|\d+\.\d+", w)]
        if not AVERAGE & (ours | theirs):  # which is a sum over a length
            found += (ours ^ theirs) & (FUNCTIONS | lengths)
        asked = dict(names)
        if which:
            asked |= {f"d {name}": {f"d_{s}" for s in spelled} for name, spelled in names.items()}
        found += [name for name, spelled in asked.items() if bool(spelled & ours) != bool(spelled & theirs)]
    return found


@every(order())
def test_docstring_and_latex_agree(stem):
    assert differences(stem, *sides(stem)) == []


@pytest.mark.parametrize(
    ("stem", "term", "drifted"),
    [
        ("add_positional", r"\mathrm{start} + ", ""),
        ("causal_softmax", " + (S - T)", ""),
        ("attention_scores", r"\sqrt{D}", "D"),
        ("attention_scores", r"\sqrt{D}", r"\sqrt{C}"),
        ("layer_norm", r" + \epsilon", ""),
        ("layer_norm", r"\partial b", r"\partial g"),
        ("gelu", "0.044715", "0.044"),
        ("adamw", r"\lambda", r"\mu"),
        ("softmax", "e^", ""),
        ("linear", " + b", ""),
    ],
)
def test_drift_is_noticed(stem, term, drifted):
    said, _ = sides(stem)
    equation = registry[stem]
    latex = [text.replace(term, drifted) for text in (equation.latex, equation.derivative)]
    assert latex != [equation.latex, equation.derivative]
    assert differences(stem, said, (written(plain(latex[0])), written(plain(latex[1]))))
