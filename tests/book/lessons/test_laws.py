"""What holds of every lesson, worksheet and page: what is printed gives what is printed, a letter has one meaning."""

import re
from itertools import chain
from pathlib import Path

import byhand.book.entries  # noqa: F401 - fills the entries
from book.lessons.rows import agrees
from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.examples import TITLES, find, make
from byhand.book.lessons.formulas import QUAD
from byhand.book.lessons.letters import in_letters
from byhand.book.lessons.text import worked
from byhand.book.practice.sheets import TOPICS
from byhand.book.practice.sheets import make as sheet
from byhand.book.words.language import say
from byhand.engine import registry
from every import every

LESSONS = [*TITLES, *(stem for stem in ENTRIES if find(stem) not in TITLES)]
NO_EXACT = ("gelu_exact", "muon")
ITERATED = ("muon", "orthogonalise")  # their formulas say each step of an iteration
CHANGES = ("m", "v", "t", "K_{\\mathrm{cache}}", "V_{\\mathrm{cache}}")  # names that each step has of its own
ROOT = Path(__file__).parents[3]
GREEK = r"\\(?:alpha|beta|epsilon|lambda|mu|sigma|tau|theta)"
LEFT_OUT = "…"


def failures(numbers):
    """The rows whose printed arithmetic does not give their printed value."""
    rows = ((say(n.label, "en"), say(n.expression, "en"), n.shown, n.digits) for n in numbers)
    return [row for row in rows if LEFT_OUT not in row[1] and agrees(*row[1:]) is False]


@every(LESSONS)
def test_what_is_printed_gives_what_is_printed(name):
    for exact in (False, *([] if name in NO_EXACT else [True])):
        numbers = [n for step in make(name, exact).steps for n in step.numbers]
        assert not failures(numbers)
        assert not [n for n in numbers if n.begun and n.begun == say(n.expression, "en")]  # the quiz's hint: A = A
        arithmetic = [n for n in numbers if agrees(say(n.expression, "en"), n.shown, n.digits) is not None]
        assert len(arithmetic) >= len(numbers) / 2 or name in ("bpe", "memory-layout")


@every(TOPICS)
def test_what_a_key_prints_gives_what_it_prints(topic):
    for seed in range(8):
        assert not failures(n for step in sheet(topic, seed).steps for n in step.numbers)


@every(sorted((ROOT / "docs" / "guides").glob("*[!N].md")), lambda page: page.stem)
def test_what_a_page_prints_gives_what_it_prints(page):
    text = page.read_text(encoding="utf-8")
    for _, arithmetic, value in re.findall(r"(?m)^\| `([^`]*)` \| `([^`]*)` \| `([^`]*)` \|$", text):
        printed = len(re.sub(r"\D", "", value.lstrip("−0.")))  # the first page rounds to two decimals
        digits = printed if re.search(r"generated: lesson .* plain -->", text) else 6
        assert LEFT_OUT in arithmetic or agrees(arithmetic.split(" = ")[-1], value, digits) is not False, arithmetic


def test_the_calculator_tells_a_digit():
    assert agrees("0.1 × 3", "0.3")
    assert agrees("0.3333333 × 3", "1"), "to six digits"
    assert not agrees("0.333333 × 3", "1")
    assert agrees("√2/2 − (−1)²", "−0.292893")
    assert not agrees("√2/2 − (−1)²", "−0.292894")
    assert agrees("two", "2") is None


@every(LESSONS)
def test_a_letter_has_one_meaning(name):
    """A letter stands for one array, and an array has one letter, wherever a step reads or makes it."""
    meaning, letters = {}, {}
    for step in make(name).steps:
        for array in (*step.inputs, *step.arrays):
            if not array.name or array.name in CHANGES or array.name.isdigit():
                continue
            assert meaning.setdefault(array.letter, array.name) == array.name, step.title.en
            assert letters.setdefault(array.name, array.letter) == array.letter
            assert "\\_" not in array.letter


@every([name for name in LESSONS if name not in ITERATED])
def test_every_letter_of_a_formula_is_listed(name):
    """It is a result, an input, a setting or kept; or a formula of this equation defines it, or counts with it."""
    steps = make(name).steps
    for step in steps:
        if not step.latex:
            continue
        assert not re.search(r"_(\w|\{(?:[^{}]|\{[^{}]*\})*\})\s*_", step.latex), "two indices"
        letters = [array.letter for array in (*step.inputs, *step.arrays, *step.kept)]
        listed = {re.sub(r"\\partial(_\d)? ", "", letter) for letter in letters}
        lines = [line for other in steps if other.stem == step.stem for line in other.latex.split(QUAD)]
        indices = chain(*re.findall(r"[_^](?:\{([^{}]*)\}|(\w))|\[(\w)\]", step.latex))
        counted = {letter for index in indices for letter in re.findall(r"[a-zA-Z]", index)}
        lengths = (
            [symbol.shape for symbol in (*registry[step.stem].inputs, *registry[step.stem].results)]
            if step.stem
            else []
        )
        rest = in_letters(step.latex, dict.fromkeys(sorted(listed), " "))
        rest = re.sub(r"\\(?:mathrm|text|operatorname|begin|end)\{[^{}]*\}", " ", rest)
        for letter in re.findall(rf"\\hat[{{ ]\w|{GREEK}|(?<![\\\w])[A-Za-z](?!\w)", rest):
            known = letter in counted | {"e"} or any(line.startswith(letter) for line in lines)
            assert known or any(letter in x for x in (*listed, *lengths)), (step.title.en, letter, step.latex)


@every(TITLES)
def test_every_result_of_an_equation_has_one_number_with_all_of_its_arithmetic(name):
    for step in make(name).steps:
        if step.stem and step.numbers:
            for label, _ in step.results:
                whole = [n for n in step.numbers if n.whole and say(n.label, "en").startswith(f"{label}[")]
                assert len(whole) == 1 or step.title.en.startswith("Scaled"), (step.title.en, label)
                assert all(n.letters and list(worked(n)) for n in whole)
