"""The numbers behind reasons: found again without the blocks that print them."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from pages.answers import steps
from pages.filling import as_read, docs

PAGE = Path(__file__)


def shown(page):
    return as_read((docs() / page).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def scales():
    """The rows of the table of scores with and without their scale."""
    table = shown("equations/attention_scores.md").partition("p, unscaled")[2].partition("\n\n")[0]
    return [[float(cell) for cell in row.strip("| ").split(" | ")] for row in table.splitlines()[2:]]


def test_a_dot_product_of_independent_signs_spreads_as_the_table_says(scales):
    """Components -1 and 1, each as likely, have mean 0 and variance 1."""
    width = 4
    vectors = np.array(list(itertools.product((-1, 1), repeat=width)))
    products = (vectors @ vectors.T).ravel()  # every pair of vectors, each as likely
    assert products.mean() == 0
    assert scales[0][:2] == [width, products.std()]


def test_the_table_of_scales_shows_a_slope_that_dies_and_one_that_does_not(scales):
    unscaled, scaled = ([row[n] for row in scales] for n in (3, 5))
    assert unscaled == sorted(unscaled, reverse=True)
    assert len(set(scaled)) == 1
    for row, slope in zip(scales, unscaled, strict=True):
        p = 1 / (1 + math.exp(-row[1]))
        assert slope == pytest.approx(p * (1 - p), abs=1e-6)


def test_only_the_maximum_of_the_visible_scores_saves_the_softmax():
    text = shown("equations/causal_softmax.md")
    assert text.count(r"p = (\mathrm{NaN}, \mathrm{NaN})") == 1
    p = 1 / (1 + math.exp(-1))
    assert text.count(f"p = ({p:.6g}, {1 - p:.6g})") == 1


def test_the_jacobian_of_the_example_is_the_one_of_finite_differences():
    text = shown("guides/autograd-and-memory.md")
    rows = re.search(r"= \\begin\{bmatrix\} (\d) & (\d) \\\\ (\d) & (\d) \\end", text)
    assert rows is not None
    at, step = np.array([2.0, 3.0]), 1e-3
    outputs = [lambda x: x[0] * x[1], lambda x: x[0] + x[1]]
    moved = [(y(at + step * e) - y(at - step * e)) / (2 * step) for y in outputs for e in np.eye(2)]
    np.testing.assert_allclose([float(n) for n in rows.groups()], moved, atol=1e-9)
    result = np.array([1.0, 2.0]) @ np.reshape(moved, (2, 2))
    assert rf"\begin{{bmatrix}} {result[0]:g} & {result[1]:g} \end{{bmatrix}}" in text


def test_shapes_of_the_parts_are_told_in_letters():
    shapes = {part: [line.shape for line in steps.lines_of((part,))] for part in steps.LINES}
    assert shapes["project"] == [["B", "T", "3C"], ["B", "H", "T", "D"]]
    assert shapes["score"] == shapes["weigh"] == [["B", "H", "T", "T"]]
    assert shapes["mlp"] == [["B", "T", "F"], ["B", "T", "F"], ["B", "T", "C"]]
    assert shapes["head"][-1] == ["B", "T", "V"]
    assert shapes["loss"] == [[]]


def test_a_training_step_zeroes_computes_walks_back_and_updates():
    text = shown("guides/equation-to-code.md").partition("y_t = x_{t+1}")[2]
    order = [
        text.index(call) for call in ("sample_batch(", "zero_grad(", "model.loss(", "backward(", "clipped_step(")
    ]
    assert order == sorted(order)
