"""The chat page in a real browser, before a small model: what is shown, and what keys and buttons do."""

import json
import math
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import replace

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from browser.webdriver import ENTER, ESCAPE, LEFT, RIGHT, TAB, UP
from byhand.serving.guard import Access
from serving.house import listening, service

pytestmark = pytest.mark.browser
KEY = "a-key-of-the-test"
DRAWN = {"temperature": 0.8, "top_k": 0, "top_p": 1, "min_p": 0, "max_tokens": 300}  # what the page begins with
TEXTS = {"en": ["Settings", "Regenerate", "Ask something"], "zh-CN": ["设置", "重新生成", "问点什么"]}


class Page:
    """The page of a server."""

    def __init__(self, browser, found, port, pace):
        self.browser, self.service, self.pace = browser, found, pace
        self.url = f"http://127.0.0.1:{port}"

    def wait(self, condition, seconds=20.0):
        deadline = time.monotonic() + seconds
        while not self.browser.run(f"return Boolean({condition})"):
            assert time.monotonic() < deadline, condition
            time.sleep(0.01)

    def open(self):
        self.browser.open(self.url + "/")
        self.wait("document.querySelector('textarea')")

    def settle(self):
        self.browser.later("requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def ask(self, question):
        self.browser.run("document.querySelector('.field textarea').focus()")
        self.browser.type(question, ENTER)
        self.wait("document.querySelector('.answer')")
        self.finish()

    def finish(self):
        self.settle()
        self.wait("!document.querySelector('.caret') && !document.querySelector('.send[type=button]')")

    def click(self, selector, i=0):
        self.browser.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, i)
        self.settle()

    def texts(self, selector):
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return self.browser.run(script, selector)

    def shown(self):
        """The text of the last answer."""
        return self.texts(".answer")[-1]

    def api(self, messages, **settings):
        """What the API answers to the same request."""
        body = {"messages": messages, **DRAWN, "seed": 1, "logprobs": True, "top_logprobs": 5, **settings}
        asked = urllib.request.Request(
            self.url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)["choices"][0]

    def pretend(self, answer):
        """Let the page's next requests have this answer, an expression of JavaScript."""
        self.browser.run(f"globalThis.own ??= fetch; globalThis.fetch = async () => {answer}")

    def honest(self):
        self.browser.run("globalThis.fetch = own")


@contextmanager
def chat(browser, access=None, **how):
    found, pace = service(**how), [0.0]
    step = found.served.engine.step

    def slow(*most):
        time.sleep(pace[0])
        return step(*most)

    found.served.engine.step = slow
    with listening(found, access) as port:
        browser.look()
        page = Page(browser, found, port, pace)
        page.open()
        page.wait("document.querySelector('.name').textContent || document.querySelector('.notice')")
        yield page


@pytest.fixture
def page(browser):
    with chat(browser) as found:
        yield found
        assert browser.complaints() == []  # such as of the content security policy


def user(text):
    return {"role": "user", "content": text}


def spelled(tokens):
    """The text of tokens; each byte of no whole character as ⟨e4⟩."""
    text, left = "", b"".join(bytes(token["bytes"]) for token in tokens)
    while left:
        try:
            return text + left.decode()
        except UnicodeDecodeError as error:
            text += left[: error.start].decode() + "".join(f"⟨{byte:02x}⟩" for byte in left[error.start : error.end])
            left = left[error.end :]
    return text


def number(text):
    """A number as the page writes it."""
    plain, _, power = text.replace("−", "-").partition("·10")
    return float(plain) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def percent(logprob):
    p = 100 * math.exp(logprob)
    return f"{p:.1f}%" if p >= 1 else None  # smaller ones have two digits, and their ln p beside them


def test_answers_and_probabilities_are_the_apis(page):
    page.ask("Hi")
    choice = page.api([user("Hi")])
    tokens = choice["logprobs"]["content"]
    assert len(tokens) > 10
    assert page.shown() == spelled(tokens)
    page.browser.run("document.querySelector('.answer').focus()")
    for token in tokens:
        page.browser.type(RIGHT)
        page.settle()
        rows = page.browser.run("return [...document.querySelectorAll('.next')].map((e) => [e.title, e.innerText])")
        due = token["top_logprobs"]
        due = due if any(each["token"] == token["token"] for each in due) else [*due, token]
        assert len(rows) == len(due)
        for (title, text), each in zip(rows, due, strict=True):
            assert number(title.removeprefix("ln p ")) == pytest.approx(each["logprob"], rel=1e-5)
            assert (percent(each["logprob"]) or "%") in text
        (head,) = page.texts(".popover > .row + .row > :last-child")
        said = head.removeprefix("ln p ").partition(" ")[0]
        assert number(said) == pytest.approx(token["logprob"], rel=1e-3)
    page.browser.type(ESCAPE)
    page.settle()
    assert page.texts(".popover") == []


def test_the_conversation_and_the_settings_are_what_the_model_reads(browser):
    with chat(browser, context=160) as page:
        converse(page)


def converse(page):
    page.click(".opens")
    page.browser.run("document.querySelector('.settings textarea').focus()")
    page.browser.type("Be 'brief'")
    settings = {"temperature": 1.5, "top_k": 7, "top_p": 0.9, "min_p": 0.05, "max_tokens": 4}
    for name, value in (settings | {"seed": 12}).items():
        change = "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        page.browser.run(change + "e.dispatchEvent(new Event('input'))", name, value)
    page.settle()
    (command,) = page.texts("pre")
    assert command.split(" \\\n  ") == [
        "byhand chat small", "--temperature 1.5", "--top-k 7", "--top-p 0.9", "--min-p 0.05",
        "--max-new-tokens 4", "--seed 12", "--system 'Be '\\''brief'\\'''",
    ]  # fmt: skip
    page.ask("a")
    messages = [{"role": "system", "content": "Be 'brief'"}, user("a")]
    first = page.api(messages, **settings, seed=12)
    assert page.shown() == spelled(first["logprobs"]["content"])
    assert "longest answer reached · 4 tokens" in page.texts(".under")[0]
    page.click(".settings .quiet")
    page.ask("b")
    messages += [{"role": "assistant", "content": first["message"]["content"]}, user("b")]
    assert page.shown() == spelled(page.api(messages, **settings, seed=13)["logprobs"]["content"])


def test_stopping_keeps_the_text_and_ends_the_work(page):
    page.pace[0] = 0.05
    page.browser.type("Hi", ENTER)
    page.wait("document.querySelectorAll('.answer span').length > 3")
    page.browser.type(ESCAPE)
    page.finish()
    kept = page.shown()
    assert kept
    assert "stopped" in page.texts(".under")[0]
    deadline = time.monotonic() + 10
    while page.service.served.engine.running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not page.service.served.engine.running
    page.pace[0] = 0.0
    whole = spelled(page.api([user("Hi")])["logprobs"]["content"])
    assert whole.startswith(kept)
    assert whole != kept
    page.click(".again")
    page.finish()
    assert " / 2" in page.texts(".under")[0]


def test_regenerating_keeps_the_versions(page):
    page.ask("Hi")
    page.click(".again")
    page.finish()
    first, second = (spelled(page.api([user("Hi")], seed=seed)["logprobs"]["content"]) for seed in (1, 2))
    assert page.shown() == second != first
    assert "2 / 2" in page.texts(".under")[0]
    page.click(".under button")
    assert page.shown() == first
    assert "1 / 2" in page.texts(".under")[0]
    page.click("header .quiet")  # a new chat
    assert page.texts("article") == []
    page.ask("Hi")
    assert page.shown() == first


def test_the_keyboard_is_enough(page):
    browser = page.browser
    focused = "return document.activeElement.className + document.activeElement.tagName"
    assert browser.run(focused) == "TEXTAREA"
    browser.type("Hi", ENTER)
    page.wait("document.querySelector('.again')")
    page.finish()
    browser.type(UP)
    page.settle()
    assert browser.run("return document.activeElement.value") == "Hi"
    for expected in ("button quietBUTTON", "button quiet againBUTTON", "answer shadedDIV"):
        shift = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9, "modifiers": 8}
        browser.devtools("Input.dispatchKeyEvent", type="keyDown", **shift)
        browser.devtools("Input.dispatchKeyEvent", type="keyUp", **shift)
        assert browser.run(focused) == expected
    browser.type(RIGHT, RIGHT, LEFT)
    page.settle()
    assert page.texts(".answer .at") == page.texts(".answer span")[:1]
    heard = page.texts("#app > [aria-live]")[-1]
    assert page.texts(".popover b")[0] + ": " in heard
    browser.type(TAB, ENTER)
    page.finish()
    assert "2 / 2" in page.texts(".under")[0]
    assert page.texts(".spoken span")


def test_pointing_opens_and_a_click_pins(page):
    page.ask("Hi")
    over = ".dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    point = f"document.querySelectorAll('.answer span')[arguments[0]]{over}"
    page.browser.run(point, 1)
    page.settle()
    first = page.texts(".popover")
    page.click(".answer span", 1)
    page.browser.run(point, 2)
    page.settle()
    assert page.texts(".popover") == first != []
    page.browser.run("document.querySelector('.log').dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}))")
    page.settle()
    assert page.texts(".popover") == []


@pytest.mark.parametrize("lang", TEXTS)
def test_both_languages_fit_a_telephone(page, lang):
    agent = page.browser.run("return navigator.userAgent")
    page.browser.devtools("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=lang)
    page.browser.look(360, 640, prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    try:
        page.open()
        assert page.browser.run("return document.documentElement.lang") == lang
        for opened in (False, True):
            page.click(".again") if opened else page.ask("Hi")
            page.finish()
            said = page.browser.run("return document.body.innerText + document.querySelector('textarea').placeholder")
            assert all(text in said for text in TEXTS[lang])
            page.browser.run("document.querySelector('.answer').focus()")
            page.browser.type(RIGHT)
            page.settle()
            script = "return [...document.querySelectorAll('#app :not(.unseen, .unseen *)')]"
            wide = script + ".filter((e) => e.getBoundingClientRect().right > 360).length"
            assert page.browser.run("return document.documentElement.scrollWidth") == 360
            assert page.browser.run(wide) == 0
            if not opened:
                page.click(".opens")
    finally:
        page.browser.devtools("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage="en-US")
    page.click("header [lang]")
    other = next(each for each in TEXTS if each != lang)
    page.open()
    assert page.browser.run("return document.documentElement.lang") == other  # as it was switched to


def test_dark_and_light(page):
    paper = "return getComputedStyle(document.body).backgroundColor"
    page.browser.look(prefers_color_scheme="dark")
    dark = page.browser.run(paper)
    page.click("header button:last-child")
    light = page.browser.run(paper)
    assert light != dark
    page.open()
    assert page.browser.run(paper) == light
    page.click("header button:last-child")
    assert page.browser.run(paper) == dark


def test_a_key_is_asked_for(browser):
    with chat(browser, Access(KEY)) as page:
        assert "This server needs its API key." in page.texts(".notice")[0]
        browser.run("document.querySelector('.notice input').focus()")
        browser.type("wrong-key", ENTER)
        page.wait("document.querySelector('.notice')")
        browser.run("const e = document.querySelector('.notice input'); e.value = ''; e.focus()")
        browser.type(KEY, ENTER)
        page.wait("document.querySelector('.name').textContent === 'small' && !document.querySelector('.notice')")
        page.ask("Hi")
        assert page.shown()
    browser.complaints()  # 401 is among them


def stream(*chunks, ends="controller.close()"):
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    source = f"new TextEncoder().encode({json.dumps(text)})"
    return (
        f"new Response(new ReadableStream({{ pull(controller) {{ if (this.given) {{ {ends}; return; }}"
        f" this.given = true; controller.enqueue({source}); }} }}))"
    )


def chunk(text, **more):
    token = {"token": text, "logprob": -1.0, "bytes": list(text.encode()), "top_logprobs": []}
    choice = {"index": 0, "delta": {"content": text}, "logprobs": {"content": [token]}, "finish_reason": None}
    return {"choices": [choice], "system_fingerprint": "step-00000001"} | more


def refused(status, code):
    return f"Response.json({{error: {{code: '{code}', message: 'Sorry.'}}}}, {{status: {status}}})"


ERRORS = {
    "busy": (refused(429, "queue_full"), "The server is busy", ""),
    "gone": ("{ throw new TypeError('Failed to fetch') }", "The connection to the server was lost.", ""),
    "broken": (stream(chunk("Half")), "The connection to the server was lost.", "Half"),
    "cut": (stream(chunk("Half"), ends="controller.error(new Error())"), "connection to the server", "Half"),
    "failed": (stream(chunk("Half"), {"error": {"message": "no time"}}), "The server says: no time", "Half"),
    "defect": (refused(500, "x"), "The server says: Sorry.", ""),
}


@pytest.mark.parametrize(("answer", "said", "text"), ERRORS.values(), ids=ERRORS)
def test_what_failed_is_said_and_tried_again(page, answer, said, text):
    page.pretend(answer)
    page.ask("Hi")
    assert said in page.texts(".notice span")[0]
    assert page.shown() == text
    page.honest()
    page.click(".notice button")
    page.finish()
    assert page.texts(".notice") == []
    seed = 2 if text else 1  # half an answer stays, as a version
    assert page.shown() == spelled(page.api([user("Hi")], seed=seed)["logprobs"]["content"])


def test_a_busy_server_is_asked_again_when_it_says(page):
    page.pretend(refused(429, "queue_full").replace("429", "429, headers: {'retry-after': '0.3'}"))
    page.ask("Hi")
    assert page.browser.run("return document.querySelector('.notice button').disabled")
    page.wait("!document.querySelector('.notice button').disabled")
    page.honest()
    page.click(".notice button")
    page.finish()
    assert page.shown()


def test_turns_that_are_kept_as_they_were_drawn_change_when_they_must(page):
    for question in ("One", "Two"):
        page.pretend(stream(chunk("Yes.")))
        page.ask(question)
    page.pretend(stream(chunk("No."), ends="controller.close()").replace("]}\\n", "]}\\n\\ndata: [DONE]\\n"))
    page.click(".again")
    page.finish()
    page.click("header [lang]")
    assert all("版本" in each or "连接" in each for each in page.texts("article"))
    page.browser.run("document.querySelector('.answer').focus()")
    page.browser.type(RIGHT)
    page.settle()
    assert page.texts(".answer .at") == ["No."]
    page.click(".opens")
    page.click(".settings [type=checkbox]")
    assert page.texts(".shaded") == []
    page.click(".settings [type=checkbox]")
    page.click("header [lang]")


def test_a_full_context_forgets_on_demand(page):
    page.browser.type("x" * 60, ENTER)
    page.wait("document.querySelector('.notice')")
    assert page.texts(".notice span") == ["This question alone is longer than the model's context."]
    page.click(".notice button")
    assert page.browser.run("return document.querySelector('textarea').value") == "x" * 60
    page.browser.run("document.querySelector('textarea').select()")
    page.ask("Hi")
    assert "context full" in page.texts(".under")[0]
    page.ask("And?")
    assert page.texts(".notice span") == ["The conversation no longer fits into the model's context."]
    page.click(".notice button")
    page.finish()
    assert page.shown() == spelled(page.api([user("And?")], seed=2)["logprobs"]["content"])
    page.browser.complaints()  # 400 is among them


def test_a_newer_checkpoint_is_told(page):
    page.ask("Hi")
    page.service.served = replace(page.service.served, version="step-00000002")
    page.click(".again")
    page.finish()
    assert "The model was reloaded: this answer is by step-00000002." in page.texts("article")[0]


def test_nothing_that_a_model_says_is_html(page):
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script><b>&amp;'
    page.pretend(stream(chunk(hostile, system_fingerprint=hostile), {"error": {"message": hostile}}))
    page.browser.type("<i>Hi</i>", ENTER)
    page.wait("document.querySelector('.answer span')")
    page.browser.run("document.querySelector('.answer').focus()")
    page.browser.type(RIGHT)
    page.finish()
    assert page.shown() == hostile
    assert page.texts(".notice span") == [f"The server says: {hostile}"]
    assert page.texts(".popover b") == [hostile.replace(" ", "␣")]
    assert (
        page.browser.run("return document.querySelectorAll('article :is(i, b, img, script), .popover img').length")
        == 0
    )


CUTS = [
    ([[228], [189], [160]], "你", [["你", 0, 3]]),
    ([[97, 228], [189, 160, 33]], "a你!", [["a你!", 0, 2]]),
    ([[228], [97]], "\ufffda", [["⟨e4⟩", 0, 1], ["a", 1, 1]]),
    ([[228], [228], [189], [160]], "\ufffd你", [["⟨e4⟩", 0, 1], ["你", 1, 3]]),
    ([[255, 97], [240, 159]], "\ufffda\ufffd", [["⟨ff⟩a", 0, 1], ["⟨f0⟩⟨9f⟩", 1, 1]]),
    ([[32, 97], [32, 98]], "a b", [["a", 0, 1], [" b", 1, 1]]),  # a space that the first token has alone
    ([[97], [98, 99]], "ab", [["a", 0, 1], ["b", 1, 1]]),  # a stop text began at c
    ([[97], []], "a", [["a", 0, 1], ["", 1, 1]]),
    ([[228], None, [97]], "\ufffda", [["⟨e4⟩", 0, 1], ["a", 1, 2]]),  # one without bytes
]


@pytest.mark.parametrize(("given", "text", "expected"), CUTS)
def test_tokens_become_whole_characters(page, given, text, expected):
    tokens = [{"token": "t", "logprob": -1, "bytes": each} for each in given]
    found = page.browser.later(
        f"""import("/web/tokens.js").then(({{ Pieces }}) => {{
            const pieces = new Pieces();
            for (const token of {json.dumps(tokens)}) pieces.add(token, {json.dumps(text)});
            pieces.end({json.dumps(text)});
            done(pieces.list.map(({{ text, first, count }}) => [text, first, count]));
        }})"""
    )
    assert found == expected
