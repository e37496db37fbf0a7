"""What one does in the explorer: work by hand, follow a tour, change the model, compare; on a telephone too."""

import json
import re
from contextlib import contextmanager

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from browser.explorer import NEXT, PROMPT, Page, exploring, number, subject
from browser.webdriver import ENTER, ESCAPE, RIGHT, TAB
from byhand.book.port.theirs import Theirs
from byhand.exploring import paper
from byhand.exploring.changes import Change
from byhand.exploring.view import View
from byhand.serving.explorer import Explorer
from byhand.serving.guard import Access
from byhand.serving.train import Trainings
from exploring.test_training import SETTINGS, TEXT, opening
from serving.house import listening

pytestmark = pytest.mark.browser
KEY = "a-key-of-the-test"
TEXTS = {
    "en": ["Forward", "Cover", "How it was made", "after each block"],
    "zh-CN": ["前向", "遮住", "怎样算出", "每块之后"],
}
SECOND = {"en": "together", "zh-CN": "合计"}
HOLD = """const own = fetch; globalThis.held = []; globalThis.came = 0;
    globalThis.fetch = async (path, how) => {
      if (String(path).includes(arguments[0])) await new Promise((go) => held.push(go));
      return own(path, how).finally(() => came++);
    }"""
CHOOSE = """const e = document.querySelector('.tour select');
    e.value = arguments[0]; e.dispatchEvent(new Event('change'))"""


@pytest.fixture(scope="module")
def shared(browser):
    with exploring(browser) as page:
        yield page


@pytest.fixture
def page(shared):
    shared.browser.look(prefers_reduced_motion="reduce")
    shared.open()
    yield shared
    assert shared.browser.complaints() == []


def written(x, digits):
    return f"{x:.{digits}g}"


def test_numbers_are_covered_and_filled_in_by_hand(page):
    page.go("blocks.0.ln_1[0,3,2]")
    page.press("c")
    value = page.answer("blocks.0.ln_1", (0, 3, 2), False)["value"]
    said = page.browser.run("return document.body.innerText")
    assert f"{abs(value):.4f}"[:5] not in said
    page.wait("document.querySelector('.half .blank')")
    assert not any(page.texts(".half .blank"))
    wrong = {
        written(-value, 4): "sign", written(10 * value, 4): "decimal place", written(1 / value, 5): "inverse",
        "": None, written(value * 1.37, 4): "Not yet", written(value, 4): "Right",
    }  # fmt: skip
    for text, word in wrong.items():
        page.browser.run("const e = document.querySelector('.try'); e.value = ''; e.focus()")
        page.browser.type(text or " ")
        page.settle()
        found = page.texts(".said")
        assert found == [] if word is None else word in found[0], (text, found)
    assert page.browser.run("return document.querySelector('.try').matches('.good')")
    assert "cover=1" in page.at() or page.browser.later(
        "setTimeout(() => done(decodeURIComponent(location.hash)), 300)"
    ).count("cover=1")


VERDICTS = [
    ("0.5", 0.5, "right"), ("0.50", 0.5, "right"), (".5", 0.5, "right"), ("0,5", 0.5, "right"),
    ("−0.5", 0.5, "sign"), ("5", 0.5, "place"), ("0.0500", 0.5, "place"), ("2", 0.5, "inverse"),
    ("1.6487", 0.5, "exp"), ("0.25", 0.5, "half"), ("1.44", 1.2, "square"), ("0.51", 0.5, "notYet"),
    ("0", 0.5, "notYet"), ("0", 0, "right"), ("1e-5", 1e-5, "right"),
    ("2.5·10⁻⁵", 2.5e-5, "right"), ("0.4286", 0.42857, "right"), ("0.43", 0.42857, "right"),
    ("0.4285", 0.42857, "notYet"), ("x", 1, None), ("", 1, None),
]  # fmt: skip


def test_a_mistake_is_known_by_its_trace(page):
    given = json.dumps([[text, value] for text, value, _ in VERDICTS])
    script = f"""import("/web/mistakes.js").then(({{ verdict }}) =>
        done({given}.map(([text, value]) => verdict(text, value)?.[1] ?? null)))"""
    assert page.browser.later(script) == [word for *_, word in VERDICTS]


def test_a_tour_leads_from_number_to_number(page):
    page.press("t")
    page.wait("document.querySelector('.tour .dots')?.textContent.startsWith('1 /')")
    first = page.texts(".tour p")
    stops = []
    for n in range(2, 9):
        page.press("n")
        page.wait(f"document.querySelector('.tour .dots').textContent.startsWith('{n} /')")
        page.ready()
        stops.append(page.texts(".cell .name")[0])
        assert page.texts(".tour p") != first
    assert any(stop.startswith("∂loss/∂") for stop in stops)
    assert "loss" in stops
    for guide in ("gradient", "why"):
        page.browser.run(CHOOSE, guide)
        page.wait(f"location.hash.includes('tour=1&guide={guide}')")
        said = page.texts(".tour p")
        page.open(page.at())
        page.wait(f"document.querySelector('.tour p')?.textContent === {json.dumps(said[0])}")
    where = page.at()
    page.press(ESCAPE)
    page.wait("!document.querySelector('.tour')")
    assert page.at().split("?")[0] == where.split("?")[0]  # leaving it keeps the place


def test_a_teachers_tour_is_loaded_from_the_same_server_only(page, tmp_path):
    stops = [
        {"address": "#/blocks.1.x_mid[0,-1,3]?lens=1", "en": "Look <b>here</b>.", "zh": "看这里。"},
        {"address": "#/loss", "en": "There."},
    ]
    page.browser.open("about:blank")
    page.browser.open(f"{page.url}?tour=/web/explore/tours/gpt.json#/loss?tour=3")
    page.ready()
    page.wait("document.querySelector('.tour .dots').textContent.startsWith('3 /')")
    page.browser.open("about:blank")
    page.browser.open(f"{page.url}?tour=/web/explore/tours/gradient.json")  # begins it
    page.there("loss")
    page.wait("document.querySelector('.tour .dots')?.textContent.startsWith('1 /')")
    page.browser.open("about:blank")
    page.browser.open(f"{page.url}?tour=http://example.org/x.json#/loss?tour=1")
    page.ready()
    page.wait("document.querySelector('.tour p').textContent.includes('not a tour')")
    for content in (json.dumps(stops), '[{"address": "javascript:alert(1)", "en": "x"}]', "no JSON"):
        script = f"""const e = document.querySelector('.tour input'), held = new DataTransfer();
            held.items.add(new File([{json.dumps(content)}], 'tour.json')); e.files = held.files;
            e.dispatchEvent(new Event('change'))"""
        page.browser.run(script)
        if content.startswith('[{"address": "#'):
            page.there(f"blocks.1.x_mid[0,{len(PROMPT) - 1},3]")
            assert page.texts(".tour p") == ["Look <b>here</b>."]
        else:
            page.wait("document.querySelector('.tour p').textContent.includes('not a tour')")


def test_a_tour_is_written_on_the_page(page):
    page.press("t")
    page.wait("document.querySelector('.tour .dots')?.textContent.startsWith('1 /')")
    page.click(".tour .button", page.texts(".tour .button").index("Write one"))
    for name in ("logits[0,3,110]", "d blocks.1.x_mid[0,2,3]"):
        page.go(name)
        page.click(".writes > .row .button", page.texts(".writes > .row .button").index("Add the number shown"))
        page.settle()
        page.browser.type("Look  at it. ", TAB, "看。")
    page.settle()
    stops = json.loads(page.browser.run("return sessionStorage.getItem('byhand.tour')"))
    assert [stop["address"].split("?")[0] for stop in stops] == ["#/logits[0,3,110]", "#/grad/blocks.1.x_mid[0,2,3]"]
    assert all("prompt=to%20be%20or" in stop["address"] for stop in stops)
    page.click(".writes > .row .button", page.texts(".writes > .row .button").index("Try it"))
    page.there("logits[0,3,110]")
    assert page.texts(".tour p") == ["Look  at it."]
    page.press("n")
    page.there("d blocks.1.x_mid[0,2,3]")
    page.browser.run("sessionStorage.clear()")


def test_a_weight_to_change_is_one_click_away_and_the_slider_stays(page):
    page.go("blocks.0.attn.weights[0,1,4,2]")
    page.click(".cell .change button", page.texts(".cell .change button").index("change a weight →"))
    page.wait("document.querySelector('.along input')")
    name, *index = re.findall(r"[^\[\],]+", page.texts(".cell .name")[0])
    assert name == "blocks.0.attn.w_qkv"
    gradient = page.view.matrix(name, True, 0, None, None).part
    assert abs(gradient[tuple(map(int, index))]) == pytest.approx(abs(gradient).max())
    top = "return document.querySelector('.along input').getBoundingClientRect().top"
    page.browser.run("document.querySelector('.along input').focus()")  # which scrolls
    before = page.browser.run(top)
    page.browser.run("const e = document.activeElement; e.value = e.max; e.dispatchEvent(new Event('input'))")
    page.wait("document.querySelectorAll('.changes > span > b').length === 2")
    page.ready()
    assert page.browser.run(top) == pytest.approx(before, abs=1)


def test_a_link_gives_the_language_and_the_theme(page):
    page.browser.open("about:blank")
    page.browser.open(f"{page.url}?lang=zh&theme=dark#/loss")
    page.ready()
    look = "return [document.documentElement.lang, document.documentElement.dataset.theme, location.search]"
    assert page.browser.run(look) == ["zh-CN", "dark", "?lang=zh&theme=dark"]
    page.click("header [lang]")
    page.press("d")
    assert page.browser.run(look) == ["en", "light", "?lang=en&theme=light"]
    page.browser.run("localStorage.clear()")
    page.open()
    assert page.browser.run(look) == ["en", None, ""]


def test_without_a_next_token_one_begins_at_the_last_that_has_a_target(page):
    page.open("#/?prompt=to be")
    assert page.texts(".cell .name")[0].endswith(f",{len('to be') - 2},{len('to be') - 3}]")
    page.browser.run("location.hash = '#/logits[0,-1,top]?prompt=to be'")
    page.wait(f"document.querySelector('.cell .name').textContent.startsWith('logits[0,{len('to be') - 1},')")
    page.ready()
    token = page.browser.run("return document.querySelector('.next').dataset.token")  # the likeliest
    assert page.texts(".cell .name") == [f"logits[0,{len('to be') - 1},{token}]"]


def changed(page, *changes):
    return View(page.view.subject, page.view.tokens, page.view.targets, changes, page.view)


def test_a_weight_is_changed_and_the_loss_foretold(page):
    page.go("lm_head.b[32]")
    page.wait("document.querySelector('.along svg')")
    page.browser.run(
        "const e = document.querySelector('.change input[name=value]'); e.value = '0.75'; e.form.requestSubmit()"
    )
    page.wait("document.querySelector('.changes b + .tag')")
    page.ready()
    page.wait("document.querySelectorAll('.changes > span > b').length === 2")
    due = changed(page, Change("lm_head.b", (32,), 0.75)).predicted()
    text = page.texts(".changes")[0]
    before, after = (number(each) for each in page.texts(".changes > span > b"))
    assert (before, after) == (pytest.approx(due["before"], rel=1e-5), pytest.approx(due["after"], rel=1e-5))
    foretold = re.findall(r"predicted\s+([+−]?[\d.]+(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)", text)[0].lstrip("+")
    assert number(foretold) == pytest.approx(due["predicted"] - due["before"], rel=6e-3)
    page.ready()
    assert number(page.texts(".cell .figure")[0]) == 0.75
    assert "change=lm_head.b[32]:0.75" in page.at()
    page.open(page.at())
    page.wait("document.querySelectorAll('.changes > span > b').length === 2")
    assert number(page.texts(".changes > span > b")[1]) == pytest.approx(due["after"], rel=1e-5)
    page.click(".changes .tag button", 1)
    page.wait("!document.querySelector('.changes')")
    page.ready()
    assert number(page.texts(".cell .figure")[0]) != 0.75


def test_a_head_is_switched_off_and_the_mask_lifted(page):
    page.go("blocks.0.attn.weights[0,1,4,2]")
    for k, change in enumerate((Change(head=(0, 1)), Change(mask=False))):
        page.click(".cell .change button", k)
        page.wait("document.querySelectorAll('.changes > span > b').length === 2")
        after = changed(page, change).predicted()["after"]
        assert number(page.texts(".changes > span > b")[1]) == pytest.approx(after, rel=1e-5)
        page.click(".cell .change button", k)
        page.wait("!document.querySelector('.changes')")
        page.ready()


def test_the_first_place_that_differs_lights(page):
    page.go("lm_head.b[32]")
    page.browser.run("location.hash += '?change=blocks.1.mlp.w_fc[3,5]:2&vs=base'")
    page.wait("document.querySelector('.compare .differs')")
    assert "block 1 up" in page.texts(".compare .differs")[0]
    assert page.texts(".map .n.first") in (["up"], ["MLP 1"])
    page.click(".compare .differs")
    page.wait("document.querySelector('.cell .name').textContent.startsWith('blocks.1.mlp.pre')")
    assert page.texts(".map .n.first") == ["up"]
    page.browser.run("location.hash = '#/tok[0,0,0]?vs=p:to be on'")
    page.wait("document.querySelector('.compare .differs')?.textContent.includes('embedding')")
    page.click(".compare > button")
    page.wait("!document.querySelector('.compare')")


def test_a_ports_first_wrong_array_lights(page, monkeypatch):
    name, gradient = "blocks.1.mlp.pre", page.view.questions.array("logits", True)
    arrays = {name: page.view.questions.array(name).copy(), "grad/logits": gradient * 2}
    arrays[name][0, 2, 5] += 1
    theirs = {key: Theirs(array.shape, array.copy) for key, array in arrays.items()}
    monkeypatch.setattr(page.explorer, "theirs", theirs)
    page.open("#/?vs=theirs&metric=differs")
    page.wait("document.querySelector('.compare .differs')")
    assert page.texts(".compare [aria-pressed=true]") == ["the port’s arrays"]
    page.click(".compare .differs")
    page.there(f"{name}[0,2,5]")
    assert page.texts(".map .n.first") == ["up"]
    del theirs[name]
    page.open("#/?vs=theirs")
    page.wait("document.querySelector('.compare .differs')?.textContent.includes('∂ ')")
    page.click(".compare .differs")
    page.wait("document.querySelector('.cell .name').textContent.startsWith('∂loss/∂logits')")


def test_the_text_is_changed_in_its_place(page):
    page.press("e")
    page.browser.run("document.querySelector('#prompt').select()")
    page.browser.type("to see <b>", ENTER)
    page.wait("document.querySelectorAll('.chips button.chip').length === 10")
    page.ready()
    assert page.texts(".chips button.chip") == list("to␣see␣<b>")
    assert "prompt=to see" in page.at()
    page.press("e")
    page.browser.run("document.querySelector('#prompt').select()")
    page.browser.type("x" * 40, ENTER)
    page.wait("document.querySelector('.notice[role=alert]')")
    assert "40 tokens" in page.texts(".notice span")[0]
    assert page.texts(".chips button.chip") == list("to␣see␣<b>")  # what is shown stays
    page.click(".notice button")
    assert page.texts(".notice") == []
    page.browser.complaints()  # 400 is among them


@contextmanager
def training(browser, explorer, address, steps):
    """Train on a page; yield it, and what presses a button of it."""
    Trainings(explorer, lambda settings, text: opening({**SETTINGS, "steps": settings["steps"]}, text))
    browser.look(prefers_reduced_motion="reduce")
    buttons = ".train button, .bar .button"
    with listening(None, None, explorer) as port:
        page = Page(browser, explorer, port)
        page.open(address)

        def press(word):
            k = page.texts(buttons).index(word)
            page.wait(f"!document.querySelectorAll('{buttons}')[{k}].disabled")  # one question at a time
            page.click(buttons, k)

        press("Train")
        browser.run("""const own = fetch; globalThis.fetch = async (path, how) => {
            const response = await own(path, how);
            if (path.endsWith("/go")) await new Promise((go) => { globalThis.late = go; });
            return response;
        }""")
        fill = "const f = document.querySelector('.begins'); [f.text.value, f.steps.value] = arguments;"
        browser.run(f"{fill} f.requestSubmit()", TEXT, steps)
        whole = f"document.querySelector('.train .row.wrap')?.textContent.includes('step {steps} of {steps}')"
        page.wait(f"globalThis.late && {whole}", 60)
        browser.run("late()")  # the answer says step 0, and comes after the news of all steps
        page.settle()
        assert browser.run(f"return {whole}")
        yield page, press
        page.browser.open("about:blank")
    browser.complaints()  # 404 is among them: nothing trained at first


def test_a_run_trains_in_front_of_one(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    button = "document.querySelector('.train .row.wrap')?.textContent.includes('step %d of 6')"
    with training(browser, Explorer(subject(), PROMPT, NEXT), "#/wte[110,3]", 6) as (page, press):
        assert len(page.texts(".graph path")) == 2
        press("‹ One back")
        page.wait(button % 5)
        press("Watch this weight")
        page.wait("document.querySelectorAll('.graph').length === 3")
        press("One step ›")
        page.wait(button % 6)
        press("Look at it now")
        press("Why it moved")  # what is asked last is shown
        page.there("wte.update[110,3]")
        assert page.texts(".cell .door")
        press("Save and end")
        page.wait("document.querySelector('.begins')")
        press("Train")
        page.wait("document.querySelector('.facts').textContent.startsWith('small')")
    assert any(tmp_path.rglob("step-00000006"))


def test_after_a_run_one_stands_in_the_model_before_which_may_be_smaller(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    facts = "document.querySelector('.facts').textContent"
    with training(browser, Explorer(paper.subject(), paper.PROMPT, paper.NEXT), "", 1) as (page, press):
        page.wait(f"!{facts}.startsWith('paper')")
        page.go("blocks.0.attn.k[0,1,5,2]")
        page.go("blocks.0.attn.qkv[0,5,18]")
        press("Train")
        page.wait(f"{facts}.startsWith('paper')")
        page.there("blocks.0.attn.qkv[0,2,11]")
        page.wait("document.querySelector('.who')")  # what added to the logit of one of its tokens
        page.go("wte[2,3]")
        press("Train")
        press("Watch this weight")
        press("Why it moved")  # which leads to its update, whatever was looked at
        page.there("wte.update[2,3]")
        browser.run("globalThis.fetch = () => Promise.reject()")
        press("Look at it now")
        page.wait("document.querySelector('.train .wrong')?.textContent.startsWith('The server does not answer')")


def test_on_a_slow_network_the_last_number_stays_readable_and_late_ones_are_dropped(page):
    page.go("blocks.0.ln_1[0,3,2]")
    slow = {"offline": False, "latency": 400, "downloadThroughput": -1, "uploadThroughput": -1}
    page.browser.devtools("Network.enable")
    page.browser.devtools("Network.emulateNetworkConditions", **slow | {"latency": 5000})
    try:
        page.press(RIGHT)
        page.wait("document.querySelector('.cell').getAttribute('aria-busy') === 'true'")
        assert page.texts(".cell .name")[0].startswith("blocks.0.attn.qkv")
        assert page.texts(".cell .body.stale .figure") != []  # the number before, dimmed
        page.browser.devtools("Network.emulateNetworkConditions", **slow)
        for _ in range(3):
            page.press(RIGHT)
        page.wait("document.querySelector('.cell .name').textContent.startsWith('blocks.0.attn.v')")
        page.ready()
        due = page.answer("blocks.0.attn.v", (0, 0, 3, 0), False)["value"]
        assert number(page.texts(".cell .figure")[0]) == pytest.approx(due, rel=1e-6)
        assert page.texts(".cell .body.stale") == []
    finally:
        page.browser.devtools("Network.emulateNetworkConditions", **slow | {"latency": 0})


@contextmanager
def late(page, path, others):
    """Hold answers back until the block has ended; then wait for them, and for what is asked because of them."""
    page.browser.run(HOLD, path)
    yield
    page.browser.run("came = 0; held.forEach((go) => go())")
    page.wait(f"came >= held.length + {others}")
    page.settle()


def test_a_late_pass_is_shown_where_one_is_and_not_if_it_was_taken_back(page):
    with late(page, "/explore/pass", 2):
        page.browser.run("location.hash = '#/loss?prompt=to see'")
        page.wait("held.length")
        page.browser.run("location.hash = '#/loss'")
        page.there("loss")
    assert page.texts(".chips button.chip") == list("to␣be␣or")
    page.open("#/blocks.0.ln_1[0,3,2]")
    with late(page, "/explore/pass", 2):
        page.press("e")
        page.browser.run("document.querySelector('#prompt').select()")
        page.browser.type("to see", ENTER)
        page.wait("held.length")
        page.press(RIGHT)
        page.wait("document.querySelector('.cell .name').textContent.startsWith('blocks.0.attn.qkv')")
    page.wait("document.querySelectorAll('.chips button.chip').length === 6")
    page.ready()
    assert page.texts(".cell .name")[0].startswith("blocks.0.attn.qkv")


def test_a_text_that_is_on_its_way_when_a_run_is_left_comes_as_it_was_asked_for(page):
    page.open("#/wte[110,3]")
    train = page.texts(".bar .button").index("Train")
    page.click(".bar .button", train)
    page.browser.run(HOLD, "/explore/pass")
    page.press("e")
    page.browser.run("document.querySelector('#prompt').select()")
    page.browser.type("to", ENTER)
    page.wait("held.length")
    page.click(".bar .button", train)
    page.wait("held.length === 2")
    page.browser.run("held.forEach((go) => go())")
    page.wait("document.querySelectorAll('.chips button.chip').length === 2")
    page.ready()
    assert page.texts(".chips [aria-pressed=true]") == ["o"]  # the text is shorter: one stands at its end
    page.browser.complaints()  # 404 is among them: nothing trains


def test_a_late_tour_does_not_take_the_place_of_the_one_that_was_chosen_after_it(page):
    page.press("t")
    page.wait("document.querySelector('.tour .dots')?.textContent.startsWith('1 /')")
    with late(page, "gradient.json", 0):
        page.browser.run(CHOOSE, "gradient")
        page.wait("held.length")
        page.browser.run(CHOOSE, "why")
        page.wait("location.hash.includes('tour=1&guide=why')")
        page.ready()
        said = page.texts(".tour p")
    page.ready()
    assert page.texts(".tour p") == said
    assert "guide=why" in page.at()


@pytest.mark.parametrize("lang", TEXTS)
def test_both_languages_fit_a_telephone(page, lang):
    agent = page.browser.run("return navigator.userAgent")
    page.browser.devtools("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=lang)
    page.browser.look(360, 640, prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    try:
        page.browser.run("localStorage.clear()")
        page.open("#/grad/blocks.1.mlp.act[0,-1,2]")
        assert page.browser.run("return document.documentElement.lang") == lang
        said = page.browser.run("return document.body.textContent")
        assert all(text in said for text in [*TEXTS[lang], SECOND[lang]])
        if lang == "zh-CN":
            parts = ".half .cap, .map .n, .bar button, .s-next, .s-who, .tabs, h1, .cell .dim"
            words = re.findall(r"\b[A-Za-z]{4,}\b", " ".join(page.texts(parts)))
            assert set(words) <= {"English", "logits", "logit", "softmax", "GELU"}, words
        for tab in range(4):
            page.click(".tabs button", tab)
            assert page.browser.run("return document.documentElement.scrollWidth") == 360
            script = """return [...document.querySelectorAll('.tabs button, .bar button, .door, .next')]
                .filter((e) => e.offsetParent && e.getBoundingClientRect().height < 24).length"""
            assert page.browser.run(script) == 0
    finally:
        page.browser.devtools("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="en-US")
        page.browser.run("localStorage.clear()")


def test_dark_and_light_and_the_other_language_at_a_click(page):
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = page.browser.run(paper)
    page.press("d")
    assert page.browser.run(paper) != light
    page.press("d")
    page.click("header [lang]")
    assert "怎样算出" in page.browser.run("return document.body.innerText")
    page.click("header [lang]")
    assert "How it was made" in page.browser.run("return document.body.innerText")
    page.browser.run("localStorage.clear()")


def test_the_tab_key_stops_once_at_each_list(page):
    page.browser.run("document.activeElement.blur()")
    stops = []
    for _ in range(40):
        page.browser.type(TAB)
        found = page.browser.run("""const e = document.activeElement;
            const lists = '.map, .cols, .halves, .view, .cell, .next, .bar';
            return e === document.body ? '' : (e.closest(lists)?.className ?? e.className)""")
        stops.append(found.split()[0] if found else "")
    assert stops.count("map") <= 2  # the metric, the place
    assert stops.count("cols") <= 2  # the position, its pencil
    assert {"bar", "map", "halves", "view", "cell"} <= set(stops)


def test_a_server_that_is_gone_is_said_and_found_again(browser):
    explorer = Explorer(subject(), PROMPT, NEXT)
    browser.look(prefers_reduced_motion="reduce")
    with listening(None, None, explorer) as port:
        page = Page(browser, explorer, port)
        page.open("#/blocks.0.ln_1[0,3,2]")
        page.wait("document.querySelector('.nudge b')")
        value = page.texts(".cell .figure")
    page.browser.run("location.hash = '#/blocks.1.mlp.act[0,2,3]'")
    page.wait("document.querySelector('.notice[role=alert]')")
    assert "The server does not answer." in page.texts(".notice span")[0]
    page.browser.run("location.hash = '#/blocks.0.ln_1[0,3,2]'")  # it works on with what it has
    page.there("blocks.0.ln_1[0,3,2]")
    assert page.texts(".cell .figure") == value
    page.browser.run("location.hash = '#/blocks.1.mlp.act[0,2,3]'")
    page.settle()
    with listening(None, None, Explorer(subject(), PROMPT, NEXT), port):
        page.click(".notice button")
        page.wait("!document.querySelector('.notice')")
        page.there("blocks.1.mlp.act[0,2,3]")
        due = page.answer("blocks.1.mlp.act", (0, 2, 3), False)["value"]
        page.wait("document.querySelector('.cell .expr .door')")
        assert number(page.texts(".cell .figure")[0]) == pytest.approx(due, rel=1e-6)
        browser.open("about:blank")
    browser.complaints()


def test_a_key_is_asked_for(browser):
    with exploring(browser, access=Access(KEY)) as page:
        page.browser.open(page.url)
        page.wait("document.querySelector('.notice input')")
        page.browser.run("document.querySelector('.notice input').focus()")
        page.browser.type("wrong-key", ENTER)
        page.wait("!document.querySelector('[aria-busy=true]')")
        page.browser.run("const e = document.querySelector('.notice input'); e.value = ''; e.focus()")
        page.browser.type(KEY, ENTER)
        page.ready()
        assert page.texts(".notice") == []
        browser.run("sessionStorage.clear()")
    browser.complaints()  # 401 is among them
