"""Every equation has a worked example: one that is named after it, or its entry's numbers."""

import numpy as np
import pytest

import byhand.book.entries  # noqa: F401 - fills the entries
from byhand.book.entries.contract import ENTRIES
from byhand.book.lessons.examples import TITLES, find, make
from byhand.book.lessons.text import text
from byhand.book.numbers.closed_form import array, several
from byhand.cli.main import main
from byhand.errors import ByhandError
from every import every

OTHERS = [stem for stem in ENTRIES if find(stem) not in TITLES]

NO_EXACT = ("gelu_exact", "muon")  # erf by a polynomial, iterations of a matrix


@every(OTHERS)
def test_it_works_the_entrys_numbers(stem):
    for exact in (False, stem not in NO_EXACT):
        lesson = make(stem, exact)
        for lang in ("en", "zh"):
            assert text(lesson, lang)
    steps = [step for step in make(stem).steps if not step.is_derivative]
    result, written = steps[-1].arrays[0].data, array(several(ENTRIES[stem].result)[0])
    assert result.ravel() == pytest.approx(written.ravel(), rel=1e-12, abs=1e-12)


@every(NO_EXACT)
def test_functions_without_an_exact_form_are_refused_in_a_line(stem):
    with pytest.raises(ByhandError, match=f"{stem} uses functions that have no exact form. Leave out --exact."):
        make(stem, exact=True)


def test_pictures_that_it_lacks_are_refused_in_a_line(capsys):
    assert main(["work", "silu", "--plot"]) == 2
    assert capsys.readouterr().err == "error: silu has no pictures. Leave out --plot.\n"


def test_its_mistakes_are_known():
    numbers = [number for step in make("silu").steps for number in step.numbers if number.mistakes]
    assert {m.en for n in numbers for m in n.mistakes} >= {"used ReLU", "held the gate constant"}


def test_it_is_found_by_its_titles(capsys):
    assert find("SwiGLU") == find("swiglu") == "swiglu"
    assert find("top_p") == find("top-p") == "top_p"
    assert find("relu squared") == "relu_squared"
    assert main(["work", "top-p", "--lang", "zh"]) == 0
    assert "Top-p（核）截断" in capsys.readouterr().out
    assert np.all([find(stem) for stem in ENTRIES])


def test_norms_of_a_post_norm_block_follow_their_sublayers():
    titles = [
        step.title.en for step in make("post-norm").steps if step.stem == "layer_norm" and not step.is_derivative
    ]
    assert titles == ["LayerNorm: after attention", "LayerNorm: after the MLP"]
    titles = [step.title.en for step in make("paper-gpt").steps if step.stem == "layer_norm"]
    assert titles[:3] == [f"LayerNorm: before {what}" for what in ("attention", "the MLP", "the LM head")]
