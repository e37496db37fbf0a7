"""The site's first page: its numbers are the lesson's after every move, and its doors lead somewhere."""

import json
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlencode

import pytest

from browser.conftest import PAGES, ROOT
from browser.test_live_pages import LANGUAGES
from browser.webdriver import ENTER, RIGHT, TAB
from byhand.book.finding.search import search, stored
from byhand.book.lessons.examples import make
from byhand.book.numbers.arithmetic import decimal
from byhand.book.words.language import say
from live import explorer

pytestmark = pytest.mark.browser
FIRST = ("z", "p", "∂z")
PLACES = ".score b, .prob b, .slope b, .all b, .k span"
SHOWN = f"return [...document.querySelectorAll('{PLACES}')].map((e) => e.textContent)"


def expected(scores, steps=0):
    """The lesson's scores, sum, probabilities, loss and slopes, as the page writes them."""
    for _ in range(steps):
        scores = lesson(scores, "z'")
    said = [[decimal(x, 4) for x in row] for row in (scores, *(lesson(scores, name) for name in FIRST[1:]))]
    total = decimal(1 / max(lesson(scores, "p")), 4)
    return [*said[0], total, *said[1], decimal(lesson(scores, "L")[0], 4), *said[2]]


def lesson(scores, name):
    made = make("next-word", changes=[f"z[{k}]={score!r}" for k, score in enumerate(scores)])
    found = [n.value for s in made.steps for n in s.numbers if re.fullmatch(rf"{name}(\[\d\])?", say(n.label, "en"))]
    return found


@pytest.fixture(autouse=True)
def _complaints_stay_here(browser):
    """From a disk the search of all pages complains, also after its test."""
    yield
    browser.open("about:blank")
    browser.complaints()


def read(browser, site, lang="en", width=1280, **media):
    browser.look(width, **media)
    browser.open(site / lang / "index.html")


def focus(browser, selector):
    browser.run("document.querySelector(arguments[0]).focus()", selector)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_its_numbers_are_the_lessons(browser, site, lang):
    read(browser, site, lang)
    given = make("next-word").given
    assert dict(given)["z"] == "[−0.15, −0.17, 1.56]"
    assert browser.run(SHOWN) == expected([-0.15, -0.17, 1.56])
    text = (site / lang / "index.html").read_text(encoding="utf-8")
    for number in browser.run(SHOWN):  # the page has them without its scripts
        assert f">{number}</span>" in text
    assert browser.complaints() == []


def test_scores_move_and_learn_by_keys_alone(browser, site):
    read(browser, site)
    focus(browser, "[data-moves]")
    browser.type(*[RIGHT] * 25)
    assert browser.run(SHOWN) == expected([0.1, -0.17, 1.56])
    focus(browser, "[data-moves='2']")
    browser.type(TAB)
    assert browser.run("return document.activeElement.className") == "learn"
    for steps in (1, 2, 3):
        browser.type(ENTER)
        assert browser.run(SHOWN) == expected([0.1, -0.17, 1.56], steps)
    assert len(browser.run("return document.querySelector('polyline').getAttribute('points')").split()) == 4
    browser.type(TAB, ENTER)
    assert browser.run(SHOWN) == expected([-0.15, -0.17, 1.56])
    assert browser.run("return document.querySelector('.again').hidden")
    assert browser.run("return document.activeElement.className") == "learn"
    assert browser.complaints() == []


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_telephone_shows_it_without_scrolling_sideways(browser, site, lang, scheme):
    read(browser, site, lang, 360, prefers_color_scheme=scheme)
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    beyond = """
        return [...document.querySelectorAll(".touch *")].filter((e) => e.getBoundingClientRect().right
          > document.querySelector(".touch").getBoundingClientRect().right).map((e) => e.className);
    """
    assert browser.run(beyond) == []
    dark = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(19, 21, 24)"
    assert dark == (scheme == "dark")
    browser.run("document.querySelector('button.theme').click()")
    assert (browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(19, 21, 24)") != dark
    browser.run("localStorage.clear()")


class Strict(SimpleHTTPRequestHandler):
    """Sends files with a policy that allows nothing within a page and nothing from elsewhere."""

    def end_headers(self):
        own = "; ".join(f"{kind}-src 'self'" for kind in ("script", "style", "img", "font"))
        self.send_header("Content-Security-Policy", f"default-src 'none'; form-action 'self'; {own}")
        super().end_headers()

    def log_message(self, *said):
        pass


@pytest.fixture
def strict(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Strict, directory=str(site))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_strict_server_can_send_it(browser, strict):
    browser.look()
    browser.open(f"{strict}/index.html")
    assert browser.run("return location.pathname") == "/en/index.html"
    browser.run("document.querySelector('.learn').click()")
    assert browser.run(SHOWN) == expected([-0.15, -0.17, 1.56], 1)
    assert browser.run("return document.querySelector('.prob.true i').style.width").startswith("80.57")
    loaded = browser.later("document.fonts.ready.then(() => done(performance.getEntries().map((e) => e.name)))")
    files = [name for name in loaded if ":" in name]
    assert sum(name.endswith((".js", ".css", ".woff2")) for name in files) >= 5
    assert all(name.startswith(strict) for name in files)
    assert browser.complaints() == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_page_says_what_it_is_about(site, lang):
    said = set()
    for page in ("index", *map(str, PAGES)):
        head = (site / lang / f"{page}.html").read_text(encoding="utf-8").partition("</head>")[0]
        (about,) = re.findall(r'<meta name="description" content="([^"]+)">', head)
        (picture,) = re.findall(r'<meta property="og:image" content="([^"]+)">', head)
        assert 20 < len(about) < 400
        assert ((site / lang / page).parent / picture).resolve().read_bytes().startswith(b"\x89PNG")
        assert "icon.svg" in head
        said.add(about)
    assert len(said) == len(PAGES) + 1


def test_equations_lead_to_the_explorer(site):
    trace = explorer.view().questions.trace
    assert explorer.places().keys() == {use.equation.name for use, _ in trace.made.values()}
    assert all(explorer.has(site, f"/{address}") for address in explorer.places().values())
    assert not any(
        explorer.has(site, address) for address in ("/loss[0]", "/nothing[0]", "/blocks.0.attn.q[0,0,0,9]")
    )
    for page in (page for page in PAGES if page.parts[0] == "equations"):
        text = (site / "en" / f"{page}.html").read_text(encoding="utf-8")
        found = re.findall(r'class="to-explorer" href="\.\./\.\./explore/index\.html#/([^"]+)"', text)
        assert found == [explorer.places()[page.name]] if page.name in explorer.places() else found == []
    stored = json.loads((site / "explore" / "data" / "pass.json").read_text(encoding="utf-8"))
    assert stored["model"]["name"] == "paper"


def test_steps_have_addresses(site):
    text = (site / "en" / "guides" / "update.html").read_text(encoding="utf-8")
    places = re.findall(r'class="live-anchor" id="([\w-]+)" href="#([\w-]+)"', text)
    assert len(places) > 25
    assert all(place == target for place, target in places)
    assert len({place for place, _ in places}) == len(places)


ASKED = [
    question["ask"]
    for name in ("questions", "questions_tuned")
    for question in json.loads((ROOT / f"tests/book/{name}.json").read_text(encoding="utf-8"))
]


def ask(browser, site, lang, query):
    browser.open(f"{(site / lang / 'search.html').as_uri()}?{urlencode({'q': query})}")


def test_the_search_box_answers_as_where_does(browser, site):
    ask(browser, site, "en", "softmax")
    formulas = [entry.latex for entry in stored().findings() if entry.latex]
    strange = ["", "x", "的", "a.b.c.weight", "ﬁne", "注意力" * 30, "Q K^T / √d", "İ", "\\frac{", "..", "constructor"]
    asked = [*ASKED[::8], *formulas[::4], *strange]
    found = browser.run(
        "return arguments[0].map((asked) => where.search(asked).map((n) => whereIndex.answers[n][0]))", asked
    )
    assert len(asked) > 100
    wrong = [q for q, own in zip(asked, found, strict=True) if own != [match.finding.name for match in search(q)]]
    assert wrong == []


@pytest.mark.parametrize(
    ("lang", "query", "title"),
    [
        ("en", "how is temperature used", "Temperature"),
        ("zh-CN", "温度", "温度"),
        ("en", "scaled_dot_product_attention", "Causal self-attention"),
    ],
)
def test_answers_stand_above_the_pages(browser, site, lang, query, title):
    ask(browser, site, lang, query)
    (first, *_) = browser.run(
        "return [...document.querySelectorAll('#where-answers li :first-child')].map((e) => e.textContent)"
    )
    assert first == title
    names = browser.run("return [...document.querySelectorAll('#where-answers li')].map((e) => e.dataset.name)")
    assert names == [match.finding.name for match in search(query)][:8]
    assert browser.run("return document.querySelector('input[name=q]').value") == query
    assert not any("where.js" in line for line in browser.complaints())  # Sphinx reads pages, which a disk refuses


@pytest.mark.parametrize("lang", LANGUAGES)
def test_answers_lead_to_pages_of_the_site(browser, site, lang):
    ask(browser, site, lang, "softmax")
    found = browser.run("return whereIndex.answers.map(([name, , kind, address]) => [kind, address])")
    led = {address.partition("#")[0] for _, address in found if address}
    assert len(led) > 30
    assert all((site / lang / address).is_file() for address in led)
    assert {"equation", "place", "setting"} <= {kind for kind, address in found if address}
