"""LaTeX for the terminal: every formula of the registry comes through, readable and without a backslash."""

import pytest

import byhand.equations  # noqa: F401 - fills the registry
from byhand.book.words.plain_math import plain
from byhand.engine import registry
from byhand.errors import ByhandError
from every import every


@every([(stem, lang) for stem in sorted(registry) for lang in ("en", "zh")])
def test_every_formula(stem, lang):
    for latex in (registry[stem].latex, registry[stem].derivative):
        text = plain(latex, lang)
        assert text
        assert not set(text) & set("\\\0&")
        for opening, closing in ("()", "[]", "{}"):
            assert text.count(opening) == text.count(closing)


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"S_{t,s} = \frac{Q_t \cdot K_s}{\sqrt{D}}", "S[t,s] = (Q_t · K_s) / √D"),
        (r"\partial K = \frac{(\partial S)^{\top} Q}{\sqrt{D}}", "∂K = ((∂S)ᵀ Q) / √D"),
        (r"L = \frac{1}{N} \sum_n -\log p_{n,y_n}", "L = (1 / N) Σ_n −log p[n,y_n]"),
        (r"y = \tfrac{x}{2}\left(1 + \tanh u\right), \quad u = x^3", "y = (x / 2)(1 + tanh u)\nu = x³"),
        (r"\frac{e^{x_i - m}}{\sqrt{a + b}}", "exp(x_i − m) / √(a + b)"),
        (r"\begin{cases} 0 & s \le t \\ -\infty & \text{otherwise} \end{cases}", "{ 0 if s ≤ t ; −∞ otherwise }"),
    ],
)
def test_lines(latex, text):
    assert plain(latex) == text


def test_chinese_words():
    said = plain(registry["top_k"].latex, "zh")
    assert "−∞，其余情形" in said
    assert "≤ k" in said.split("，当 ")[1], "a case with a condition keeps its word"


@pytest.mark.parametrize("latex", [r"\unheard{x}", "{x", "x}"])
def test_what_is_not_understood(latex):
    with pytest.raises(ByhandError):
        plain(latex)
