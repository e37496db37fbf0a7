"""Random numbers in a real browser: what is shown is what `explain --json` says, also after a weight has changed."""

import json

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from browser.explorer import MODELS, cells, exploring, leaves, number
from browser.test_explore import shown, target
from byhand.errors import ExplainError
from byhand.exploring.changes import Change
from byhand.exploring.view import View

pytestmark = pytest.mark.browser
COUNT = 10
NAME, INDEX, VALUE = "blocks.1.attn.w_proj", (1, 2), 0.75


def compare(page, view, drawn, settings=""):
    """Open each number; what is shown, and what it was read from, are those of the view. Return how many were."""
    count = 0
    for name, index, gradient in drawn:
        if name.endswith(".scores") and index[-1] > index[-2]:  # the page says that it is masked
            continue
        try:
            due = json.loads(json.dumps(view.answer(name, index, gradient, 8)))
        except ExplainError:  # a parameter that is not trained
            continue
        page.go(target(name, index, gradient), settings)
        page.wait("!document.querySelector('.half .fig').textContent.includes('–')", 60)
        here, found = (name, index, gradient, settings), shown(page)
        assert number(found["figure"]) == pytest.approx(due["value"], rel=1e-6), here
        read = {}
        for leaf in leaves(due["terms"]):
            source = leaf["source"]
            read[target(source["name"], source["index"], source["gradient"])] = leaf["value"]
        assert {each for each, _ in found["doors"]} == read.keys(), here
        for each, text in found["doors"]:
            assert number(text) == pytest.approx(read[each], rel=1e-4), (here, each)
        count += 1
    return count


@pytest.mark.parametrize("model", MODELS)
def test_numbers_after_a_change_are_those_of_the_changed_model(browser, model):
    with exploring(browser, MODELS[model]) as page:
        view = View(page.view.subject, page.view.tokens, page.view.targets, [Change(NAME, INDEX, VALUE)], page.view)
        page.open()
        drawn = [(NAME, INDEX, False), *cells(view, COUNT, seed=1)]
        place = ",".join(map(str, INDEX))
        assert compare(page, view, drawn, f"?change={NAME}[{place}]:{VALUE}") >= 2
        assert browser.complaints() == []
