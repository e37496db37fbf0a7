"""The explorer in a real browser: what is shown of a number is what `explain --json` says; every door leads there."""

import json
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from browser.explorer import MODELS, PROMPT, Page, cells, exploring, leaves, number
from browser.webdriver import DOWN, ENTER, ESCAPE, LEFT, RIGHT, UP
from byhand.errors import ExplainError
from byhand.exploring import paper, static
from byhand.exploring.view import View
from byhand.runtimes.sampling import Sampling, probabilities
from byhand.serving.explorer import Explorer
from live import explorer as trained

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shared(browser):
    with exploring(browser) as page:
        yield page


@pytest.fixture
def page(shared):
    shared.browser.look(prefers_reduced_motion="reduce")
    shared.open()
    yield shared
    assert shared.browser.complaints() == []  # such as of the content security policy


def target(name, index, gradient=False):
    return ("d " if gradient else "") + name + (f"[{','.join(map(str, index))}]" if index else "")


def shown(page):
    """What the page says of the chosen number: it, its doors, and the sums that are written out."""
    script = """return {
        figure: document.querySelector('.cell .figure').textContent,
        doors: [...document.querySelectorAll('.cell .door')].map(
            (e) => [e.dataset.target, [...e.childNodes].find((n) => n.nodeType === 3).data]),
        totals: [...document.querySelectorAll('.cell .tot .v')].map((e) => e.textContent),
        halves: [...document.querySelectorAll('.half .fig')].map((e) => e.textContent),
    }"""
    return page.browser.run(script)


@pytest.mark.parametrize("model", MODELS)
def test_what_is_shown_is_what_explain_says(browser, model):
    with exploring(browser, MODELS[model]) as page:
        page.open()
        for name, index, gradient in cells(page.view, 24):
            try:
                due = page.answer(name, index, gradient)
            except ExplainError:  # a parameter that is not trained
                continue
            page.go(target(name, index, gradient))
            page.wait("!document.querySelector('.half .fig').textContent.includes('–')")
            page.wait("!document.querySelector('.nudge') || document.querySelectorAll('.fig')[1].textContent !== '–'")
            found = shown(page)
            assert number(found["figure"]) == pytest.approx(due["value"], rel=1e-6), (name, index, gradient)
            read = {target(**_source(leaf)): leaf["value"] for leaf in leaves(due["terms"])}
            assert {each for each, _ in found["doors"]} == read.keys(), (name, index, gradient)
            for each, text in found["doors"]:
                assert number(text) == pytest.approx(read[each], rel=1e-4)
            for text in found["totals"][:1]:
                assert np.isfinite(number(text))
            values = [page.answer(name, index, False)["value"], due["value"] if gradient else None]
            for text, value in zip(found["halves"], values, strict=True):
                assert value is None or number(text) == pytest.approx(value, rel=1e-5)
        assert browser.complaints() == []


def test_a_page_without_a_server_shows_the_same(browser, tmp_path):
    subject = paper.subject()
    view = View(subject, subject.encode(paper.PROMPT.encode()), [1, 0, 2])
    static.write(view, tmp_path, paper.PROMPT, paper.NEXT)
    explorer = Explorer(subject, paper.PROMPT, paper.NEXT)
    with still(browser, tmp_path, explorer) as page:
        page.open()
        for name, index, gradient in cells(view, 16):
            agrees(page, view, name, index, gradient)
        page.go("logits[0,2,1]")
        page.wait("document.querySelector('.who')")
    assert browser.complaints() == []


def test_the_sites_trained_model_shows_what_explain_says(browser, site):
    view = trained.trained()
    with still(
        browser, site / trained.TRAINED, Explorer(view.subject, trained.END + trained.NAME, trained.END)
    ) as page:
        page.open()
        for name, index, gradient in cells(view, 6):
            agrees(page, view, name, index, gradient)
        page.go("d blocks.0.mlp.w_fc[3,5]")
        page.wait("!document.querySelector('.halves .nudge').textContent")  # it has no central differences
    assert browser.complaints() == []


@contextmanager
def still(browser, folder, explorer):
    """Serve a page that needs no server of ours; yield it."""
    handler = partial(QuietHandler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = Page(browser, explorer, server.server_port)
        page.url = f"http://127.0.0.1:{server.server_port}/"
        browser.look(prefers_reduced_motion="reduce")
        yield page
        browser.open("about:blank")
        server.shutdown()


def agrees(page, view, name, index, gradient):
    """Assert that a number, its figure and its doors are what explain says."""
    page.go(target(name, index, gradient))
    due = view.answer(name, index, gradient, 8)
    assert number(page.texts(".cell .figure")[0]) == pytest.approx(due["value"], rel=1e-6, abs=1e-15)
    read = {target(**_source(leaf)) for leaf in leaves(due["terms"])}
    assert {each for each, _ in shown(page)["doors"]} == read


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format, *args):
        pass


def _source(leaf):
    source = leaf["source"]
    return {"name": source["name"], "index": source["index"], "gradient": source["gradient"]}


def test_a_page_opens_at_a_number_of_the_last_position(page):
    t = len(PROMPT) - 1
    assert page.texts(".cell .name") == [f"blocks.0.attn.weights[0,0,{t},{t - 1}]"]
    assert page.texts("h1") == ["Causal softmax"]
    assert page.texts(".chips button.chip") == list(PROMPT.replace(" ", "␣"))
    assert page.texts(".chips .after") == ["␣"]
    assert len(page.texts(".half math")) >= 2
    assert page.texts(".code .on")[0].startswith("def forward")


def test_doors_go_deeper_and_crumbs_lead_back(page):
    page.go("blocks.1.x_mid[0,3,2]")
    top = page.browser.run("return document.querySelector('.cell').getBoundingClientRect().top")
    way = ["blocks.1.x_mid[0,3,2]"]
    for _ in range(3):
        door = page.browser.run("return document.querySelector('.cell .door').dataset.target")
        page.click(".cell .door")
        page.there(door)
        way.append(door)
        assert page.texts(".crumbs button")[-1].endswith(f"[{','.join(way[-2].rstrip(']').split(',')[-2:])}]")
    assert page.browser.run("return document.activeElement.className") == "name mono"
    now = page.browser.run("return document.querySelector('.cell').getBoundingClientRect().top")
    assert abs(now - top) < 2 or page.browser.run("return document.querySelector('#eq').scrollTop") == 0
    assert page.at().endswith(f"via={'~'.join(way[:-1])}")
    page.open(page.at())  # the link holds the way too
    page.there(way[-1])
    page.press("b")
    page.there(way[-2])
    page.click(".crumbs button", 0)
    page.there(way[0])
    assert page.texts(".crumbs button") == []
    page.browser.run("history.back()")
    page.there(way[-2])


def test_forwards_and_backwards_are_a_key_apart(page):
    page.go("blocks.0.x_mid[0,2,5]")
    page.press(" ")
    page.there("d blocks.0.x_mid[0,2,5]")
    assert page.texts(".title .seg button") == ["norm", "stream"]  # what reads it
    gradient = page.answer("blocks.0.x_mid", (0, 2, 5), True)["value"]
    assert number(page.texts(".half .fig")[1]) == pytest.approx(gradient, rel=1e-5)
    page.wait("document.querySelector('.nudge b')")
    assert number(page.texts(".nudge")[0].split()[1]) == pytest.approx(gradient, rel=1e-3)
    assert page.texts(".code .on")[0].startswith("def vjp")
    page.click(".title .seg button", 1)
    assert page.texts("h1") == ["Residual connection, backwards"]


def test_keys_alone_reach_everything(page):
    page.go("blocks.0.attn.weights[0,0,4,2]")
    steps = [
        (RIGHT, "blocks.0.attn.mixed[0,0,4,0]"), (LEFT, "blocks.0.attn.weights[0,0,4,3]"),
        (UP, "blocks.0.attn.weights[0,0,3,3]"), (DOWN, "blocks.0.attn.weights[0,0,4,3]"),
        ("2", "blocks.0.attn.weights[0,1,4,3]"),
    ]  # fmt: skip
    for key, there in steps:
        page.press(key)
        page.there(there)
    page.browser.devtools("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", code="ArrowRight", modifiers=8)
    page.there("blocks.1.attn.weights[0,1,4,3]")
    page.press(ENTER)
    page.browser.type(LEFT, UP)
    page.settle()
    assert page.texts("#read")[0].startswith("P[3 ‹b›, 2 ‹␣›] = ")
    page.browser.type(ENTER)
    page.there("blocks.1.attn.weights[0,1,3,2]")
    page.press("z")
    assert "zoom=blocks.1.attn.weights" in _later(page)
    page.press(ESCAPE)
    assert "zoom" not in _later(page)
    page.press("/")
    page.browser.type("mlp act")
    page.settle()
    assert page.texts("#found li")[0].endswith("blocks.0.mlp.act")
    page.browser.type(ENTER)
    page.wait("document.querySelector('.cell .name').textContent.startsWith('blocks.0.mlp.act')")
    page.press("?")
    assert page.browser.run("return document.querySelector('#keys').open")


def _later(page):
    """The address, which sliders and toggles write a moment later."""
    page.browser.later("setTimeout(done, 300)")
    return page.at()


def test_pointing_names_a_cell_and_renders_nothing(page):
    page.go("blocks.1.attn.mixed[0,1,4,3]")
    page.wait("document.querySelector('.nudge b')")
    script = "const { x, y, width, height } = [...document.querySelectorAll('.view')].at(-1).getBoundingClientRect();"
    x, y, w, h = page.browser.run(f"{script} return [x, y, width, height]")
    rows, columns = len(PROMPT), 8
    page.browser.run("""window.changes = 0; const seen = {childList: true, subtree: true, attributeFilter: ['class']};
        new MutationObserver((found) => changes += found.length).observe(document.querySelector('.eq'), seen)""")
    asked = page.browser.run("return performance.getEntriesByType('resource').length")
    where, lit = page.at(), set()
    for r, c in [(2, 1), (7, 7), (0, 0)]:
        page.browser.devtools(
            "Input.dispatchMouseEvent", type="mouseMoved", x=x + (c + 0.5) * w / columns, y=y + (r + 0.5) * h / rows
        )
        page.settle()
        value = page.answer("blocks.1.attn.mixed", (0, 1, r, c), False)["value"]
        said, _, text = page.texts("#read")[0].partition(" = ")
        assert said.startswith(f"Y[{r} ‹")
        assert number(text) == pytest.approx(value, rel=6e-3)
        lit.add(page.browser.run("return document.querySelectorAll('.view canvas.over')[0].toDataURL()"))
    assert len(lit) == 3  # the rows of weights that made them
    assert page.browser.run("return changes") <= 6  # the text of the line that names it
    assert page.browser.run("return performance.getEntriesByType('resource').length") == asked
    assert page.at() == where


def test_a_cell_of_an_input_is_a_door_and_one_of_the_result_is_chosen(page):
    page.go("blocks.1.attn.mixed[0,1,4,3]")
    script = """const e = document.querySelectorAll('.view')[arguments[0]], { x, y } = e.getBoundingClientRect();
        e.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: x + 1, clientY: y + 1}))"""
    page.browser.run(script, 1)
    page.there("blocks.1.attn.v[0,1,0,0]")
    assert page.texts(".crumbs button") == ["block 1 mixed values[4,3]"]
    page.browser.run(script, 1)
    page.there("blocks.1.attn.v[0,1,0,0]")
    assert page.texts(".crumbs button") == []


def test_the_next_byte_is_drawn_as_byhand_draws(page):
    z = page.view.matrix("logits", False, 0, None, None).part[3].astype(float)
    for t, k, p in [(0.8, 0, 1), (0.3, 5, 1), (1.5, 40, 0.6), (1, 0, 0.05), (0, 0, 1), (2, 3, 0.9)]:
        script = f"""import("/web/explore/drawing.js").then(({{ drawn, ranked }}) => {{
            const z = {json.dumps(z.tolist())}; done([...drawn(z, ranked(z), {t}, {k}, {p})]); }})"""
        due = probabilities(z, Sampling(t, k or None, p)) if t else (np.arange(256) == z.argmax()).astype(float)
        assert np.allclose(page.browser.later(script), due, rtol=1e-6, atol=1e-12)
    page.go("logits[0,3,101]", "?T=1")
    page.wait("document.querySelector('.next[aria-pressed=true]')?.dataset.token === '101'")
    odds = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
    tokens = "return [...document.querySelectorAll('.nexts > *')].map((e) => Number(e.dataset.token))"
    rows = page.browser.run(tokens)
    assert rows[:-1] == np.argsort(-z, kind="stable")[: len(rows) - 1].tolist()
    for v, text in zip(rows, page.texts(".nexts .v"), strict=True):
        assert float(text.rstrip("%")) == pytest.approx(100 * odds[v], abs=0.051)


def test_shares_and_stages_are_the_views(page):
    page.go("logits[0,3,101]")
    page.wait("document.querySelector('.who')")
    due = page.view.shares(3, 101, None)
    largest = max((each["value"] for each in due["parts"]), key=abs)
    assert number(page.texts(".who .v")[0]) == pytest.approx(largest, rel=6e-3)
    assert number(page.texts(".s-who .h .cap")[0].removeprefix("logit ")) == pytest.approx(due["total"], rel=6e-3)
    page.press("l")
    page.wait("document.querySelectorAll('.lens .cols').length")
    stages = page.view.stages()
    assert len(page.texts(".lens .cols")) == len(stages)
    titles = page.browser.run("return [...document.querySelectorAll('.lens button')].map((e) => e.title)")
    for title, (top, *_) in zip(titles, (top for stage in stages for top in stage["top"]), strict=True):
        assert number(title.split(" ")[1].rstrip(";")) == pytest.approx(top[1], rel=6e-3)


def test_an_address_holds_the_state(page):
    page.browser.run(
        "location.hash = arguments[0]",
        "#/grad/blocks.1.mlp.pre[0,2,4]?T=0.4&k=7&lens=1&cover=1&prompt=O%20Romeo&next=!",
    )
    page.there("d blocks.1.mlp.pre[0,2,4]")
    for _ in range(2):
        assert page.texts(".chips button.chip") == list("O␣Romeo")
        assert page.texts(".knobs output") == ["0.40", "7", "1.00"]
        assert page.texts(".cell .try") == [""]
        page.wait("document.querySelectorAll('.lens .cols').length")
        page.press(RIGHT)
        page.press(LEFT)
        page.there("d blocks.1.mlp.pre[0,2,0]")
        page.open(page.at())
