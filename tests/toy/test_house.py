"""An equation lives in five places: with softplus's own files alone, the whole book knows it.

`softplus.py`, its entry, its test and its two pages are in this folder; no file of the package names it.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from book.entries.computed import compute
from book.words.test_formulas_agree import differences, sides
from byhand import AdamW, ModelConfig, TinyGPT
from byhand.book.entries.contract import ENTRIES
from byhand.book.explain.explainer import Explainer, explain
from byhand.book.explain.text import text
from byhand.book.finding import source
from byhand.book.finding.search import search
from byhand.book.lessons import text as lesson_text
from byhand.book.lessons.backward_steps import backward_steps
from byhand.book.lessons.forward_steps import forward_steps
from byhand.book.numbers.closed_form import array
from byhand.book.practice.checking import check
from byhand.book.words.language import PAGE
from byhand.cli.main import main
from byhand.engine import Tensor
from byhand.tracing.trace import Trace
from pages.filling import docs, filled
from where.index import findings

HERE = Path(__file__).resolve().parent
TOKENS, TARGETS = [[1, 2, 3]], [[2, 3, 4]]


@pytest.fixture(autouse=True)
def known(softplus):
    """Every test here knows the equation."""


@pytest.fixture
def model():
    """A model whose activation is softplus."""
    size = {"vocab_size": 7, "seq_len": 4, "d_model": 4, "n_layers": 1, "n_heads": 2}
    return TinyGPT(ModelConfig(**size, activation="softplus"), seed=3, dtype="float64")


def test_no_file_of_the_package_names_it():
    named = [p for p in source.PACKAGE.rglob("*.py") if "softplus" in p.read_text(encoding="utf-8").lower()]
    assert not named


@pytest.mark.parametrize(
    "query", ["softplus", "Softplus（平滑的 ReLU）", "ln(1 + e^x)", "log1p(exp(x))", "SmoothReLU"]
)
def test_where_finds_it(query):
    assert search(query)[0].finding.name == "softplus"


@pytest.mark.parametrize(
    ("lang", "title", "meaning"), [("en", "Softplus", "any array"), ("zh", "Softplus（", "任意数组")]
)
def test_where_says_where_everything_is(lang, title, meaning, capsys):
    assert main(["where", "softplus", "--limit", "1", "--lang", lang]) == 0
    said = capsys.readouterr().out
    assert said.startswith(title)
    assert meaning in said
    for name in ("softplus.py:", "softplus_entry.py:", "test_softplus.py:", "softplus.md:1", "softplus.zh-CN.md:1"):
        assert f"tests/toy/{name}" in said


def test_every_pointer_opens_what_it_names(capsys):
    assert main(["where", "softplus", "--limit", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)[0]
    begins = {"forward": "def forward(", "derivative": "def vjp(", "worked": "entry = ", "test": "def test"}
    for pointer, start in begins.items():
        path, _, line = found[pointer].rpartition(":")
        lines = (source.PACKAGE.parents[1] / path).read_text(encoding="utf-8").splitlines()
        assert lines[int(line) - 1].startswith(start)
    assert found["kernels"] == {}
    assert found["symbols"][0]["meaning_zh"] == "任意数组"


def test_it_stands_in_the_overview(capsys):
    main(["where"])
    said = capsys.readouterr().out
    assert said.index("  relu ") < said.index("  softplus ") < said.index("  cross_entropy ")


def test_it_is_forgotten_with_its_files(monkeypatch):
    assert "softplus" in findings()
    assert search("SmoothReLU")
    monkeypatch.delitem(ENTRIES, "softplus")
    assert "softplus" not in findings()
    assert "softplus" not in [m.finding.name for m in search("SmoothReLU")]


@pytest.mark.parametrize("name", ["softplus.md", "softplus.zh-CN.md"])
def test_its_pages_are_what_the_code_says(name):
    page = HERE / name
    assert filled(page) == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_books_own_pages_would_list_it(lang):
    for page in ("index", "guides/equation-to-code", "guides/glossary"):
        assert "../tests/toy/softplus" in filled(docs() / f"{page}{PAGE.said(lang)}")


def test_docstring_and_latex_agree():
    assert differences("softplus", *sides("softplus")) == []


def test_its_worked_numbers():
    worked = ENTRIES["softplus"]
    computed = compute(worked)
    assert computed.results[0] == pytest.approx(array(worked.result), rel=1e-15)
    assert computed.gradients["x"] == pytest.approx(array(worked.gradients["x"]), rel=1e-15)


def test_explain_a_value(model):
    e = explain(model, TOKENS, TARGETS, "blocks.0.mlp.act", (0, 1, 2))
    assert e.equations == ("softplus",)
    assert e.term.value == pytest.approx(e.value, rel=1e-14)
    assert "tests/toy/softplus.py:" in e.where
    assert "ln(1 + exp(" in text(e)
    assert "Softplus（平滑的 ReLU）" in text(e, "zh")


def test_explain_every_gradient(model):
    explainer = Explainer(model, TOKENS, TARGETS)
    for name in ("blocks.0.mlp.pre", "blocks.0.mlp.act", "wte", "blocks.0.mlp.w_fc"):
        e = explainer.explain(name, tuple(1 if n > 1 else 0 for n in explainer.trace.tensor(name).shape), grad=True)
        assert e.term.value == pytest.approx(e.value, rel=1e-12, abs=1e-15)
        assert e.difference == pytest.approx(e.value, rel=1e-5, abs=1e-8)


def lesson(softplus):
    x = Tensor(np.array([-1.0, 0.5]), requires_grad=True, name="x")
    trace = Trace.of(lambda: softplus(x, name="y"))
    return forward_steps(trace), backward_steps(trace, np.array([2.0, 3.0]))


@pytest.mark.parametrize(("lang", "title"), [("en", "1. Softplus  "), ("zh", "1. Softplus（平滑的 ReLU）  ")])
def test_a_lesson_shows_its_arithmetic(softplus, lang, title):
    (forward,), (backward,) = lesson(softplus)
    said = "\n".join(lesson_text.step_lines(1, forward, lang))
    assert said.startswith(title)
    assert "y[1] = ln(1 + exp(0.5)) = 0.974077" in said
    assert "= 2 × 1 / (1 + exp(−(−1))) = 0.537883" in "\n".join(lesson_text.step_lines(2, backward, lang))


def test_known_mistakes_are_recognised(softplus):
    (forward,), (backward,) = lesson(softplus)
    assert check(forward.numbers[1], "0.5").mistake.en == "used ReLU"
    assert check(forward.numbers[1], "2.649").mistake.zh == "没有取对数"
    assert check(backward.numbers[1], "3").mistake.en == "took the slope for 1"
    assert check(forward.numbers[1], "0.974").right


@pytest.mark.parametrize("runtime", ["numpy", "loops"])
def test_it_trains_and_generates(runtime, tmp_path, capsys):
    pytest.importorskip("numba" if runtime == "loops" else "numpy")
    data, run = tmp_path / "text.txt", tmp_path / "run"
    data.write_text("to be or not to be, that is the question\n" * 20, encoding="utf-8")
    size = ["--seq-len", "8", "--d-model", "8", "--n-layers", "1", "--n-heads", "2", "--batch-size", "2"]
    flags = ["--activation", "softplus", "--runtime", runtime, "--steps", "2", *size]
    assert main(["train", "--data", str(data), "--out", str(run), *flags]) == 0
    assert main(["sample", str(run), "--max-new-tokens", "4", "--runtime", runtime]) == 0


def test_loops_plans_it_beside_its_kernels(model):
    pytest.importorskip("numba", reason="Numba is not installed")
    from byhand.runtimes.loops.run.training import LoopsSession

    single = TinyGPT(model.config)  # in float32
    calls = LoopsSession(single, AdamW(), 1, "tiles").plan("train", (1, 3)).calls
    equations = {call.node.equation.name for call in calls if call.node is not None}
    assert {"softplus", "linear", "layer_norm"} <= equations


def test_its_title_outranks_a_name_that_another_entry_claims():
    before = dict(ENTRIES)
    relu = ENTRIES.pop("relu")
    try:
        replace(relu, asked="Softplus, a smooth one")  # which takes its place
        assert [match.finding.name for match in search("Softplus")[:2]] == ["softplus", "relu"]
        assert search("a smooth one")[0].finding.name == "relu"
    finally:  # in the order of before, in which the index is made
        ENTRIES.clear()
        ENTRIES.update(before)
