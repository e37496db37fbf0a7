"""Passes and answers as a notebook shows them: tables that need no script."""

import numpy as np
import pytest

import byhand as bh
from byhand.exploring import paper

pytestmark = pytest.mark.browser
LOOK = (
    "return [...document.querySelectorAll('table.byhand tbody tr')].map(row => [...row.cells].map(c => c.innerText))"
)


def shown(browser, path, thing):
    path.write_text(f"<!doctype html><meta charset=utf-8>{thing._repr_html_()}", encoding="utf-8")
    browser.open(path)
    return browser.run(LOOK)


def test_an_answer_is_a_table_whose_last_column_adds_up(browser, tmp_path):
    model, tokens = paper.subject().model, np.array([[0, 1, 0]])
    answer = bh.explain(model, tokens, None, "logits", (0, 2, 2))
    rows = shown(browser, tmp_path / "answer.html", answer)
    assert rows
    assert sum(float(row[-1].replace("−", "-")) for row in rows) == pytest.approx(answer.value, abs=1e-5)
    assert "<script" not in answer._repr_html_()


def test_a_pass_is_a_table_of_its_tensors(browser, tmp_path):
    model = paper.subject().model
    trace = bh.Trace.of(lambda: model.loss([[0, 1, 0]], [[1, 0, 2]]))
    names = [row[0] for row in shown(browser, tmp_path / "pass.html", trace)]
    assert names == list(trace.made)
