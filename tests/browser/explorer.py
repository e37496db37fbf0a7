"""The explorer's page in a browser: a server of a small model, and what the tests ask of the page."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from browser.webdriver import Browser
from byhand import ModelConfig, TinyGPT
from byhand.exploring.view import Subject, View
from byhand.serving.explorer import Explorer
from byhand.serving.guard import Access
from byhand.tokenizers.byte import BYTES
from serving.house import listening

PROMPT, NEXT = "to be or", " n"
SMALL = ModelConfig(vocab_size=256, seq_len=32, d_model=16, n_layers=2, n_heads=2)
LLAMA = replace(
    SMALL, n_heads=4, n_kv_heads=2, positions="rotary", norm="rms", norm_affine=True, activation="swiglu",
    attention_bias="none", mlp_bias=False, lm_head_bias=False, tied_embeddings=True,
)  # fmt: skip
MODELS = {"seeds": SMALL, "llama": LLAMA, "lora": replace(LLAMA, lora=2)}


def subject(config: ModelConfig = SMALL) -> Subject:
    """A model with random weights, large enough that some tokens are likelier than others."""
    model = TinyGPT(config, seed=3)
    for name, parameter in model.parameters().items():
        if not name.endswith("gain"):
            parameter.data = (parameter.data if parameter.data.any() else parameter.data + 0.01) * 3
    return Subject("small", 7, model, BYTES.encode, BYTES.token_bytes, "byte")


class Page:
    """The page of a server."""

    def __init__(self, browser: Browser, explorer: Explorer, port: int) -> None:
        self.browser, self.explorer, self.port = browser, explorer, port
        self.url = f"http://127.0.0.1:{port}/explore"
        self.view: View = explorer.view(explorer.subject, explorer.prompt, explorer.next)

    def wait(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.browser.run(f"return Boolean({condition})"):
            assert time.monotonic() < deadline, f"{condition} at {self.at()}: {self.texts('.notice')}"
            time.sleep(0.01)

    def open(self, address: str = "") -> None:
        """Open an address anew."""
        self.browser.open("about:blank")
        self.browser.open(self.url + address)
        self.ready()

    def go(self, target: str, settings: str = "") -> None:
        """Choose a number by the address."""
        self.browser.run("location.hash = arguments[0]", f"#/{target.replace('d ', 'grad/')}{settings}")
        self.there(target)

    def ready(self) -> None:
        """Wait until a number is opened, of the pass that was asked for."""
        self.wait("['.app', '.cell'].every((at) => document.querySelector(at)?.ariaBusy === 'false')")
        self.settle()

    def there(self, target: str) -> None:
        """Wait until this number is opened."""
        name = json.dumps(target.replace("d ", "∂loss/∂"))
        self.wait(f"document.querySelector('.cell .name')?.textContent === {name}")
        self.ready()

    def settle(self) -> None:
        """Wait for two frames, in which the page has drawn."""
        self.browser.later("requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def at(self) -> str:
        """The part of the address that the page writes, once it has."""
        return self.browser.run("return decodeURIComponent(location.hash)")

    def texts(self, selector: str) -> list[str]:
        """The texts of elements."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent.trim())"
        return self.browser.run(script, selector)

    def click(self, selector: str, i: int = 0) -> None:
        """Click the i-th of some elements."""
        self.browser.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, i)
        self.settle()

    def press(self, *keys: str) -> None:
        """Type where no control has the focus."""
        self.browser.run("document.activeElement.blur()")
        self.browser.type(*keys)
        self.settle()

    def answer(self, name: str, index: tuple[int, ...], gradient: bool, terms: int = 8) -> dict[str, Any]:
        """What `byhand explain --json` prints of the same number."""
        return json.loads(json.dumps(self.view.answer(name, index, gradient, terms)))


@contextmanager
def exploring(browser: Browser, config: ModelConfig = SMALL, access: Access | None = None) -> Iterator[Page]:
    """Serve a model; yield its page, opened."""
    explorer = Explorer(subject(config), PROMPT, NEXT)
    with listening(None, access, explorer) as port:
        browser.look(prefers_reduced_motion="reduce")
        yield Page(browser, explorer, port)
        browser.open("about:blank")  # it asks no more


def number(text: str) -> float:
    """A number as the page writes it."""
    plain, _, power = text.replace("−", "-").replace("∞", "inf").partition("·10")
    return float(plain) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def cells(view: View, count: int, seed: int = 0) -> list[tuple[str, tuple[int, ...], bool]]:
    """Random elements of random places and parameters, each with whether its gradient is meant."""
    draw, shapes = random.Random(seed), view.summary()["shapes"]
    names = [name for name in shapes if name not in ("tokens", "targets")]
    found = []
    for k in range(count):
        name = draw.choice(names)
        found.append((name, tuple(draw.randrange(n) for n in shapes[name]), bool(k % 2)))
    return found


def leaves(term: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The numbers of a tree that were read from arrays by name."""
    if term is None:
        return
    if "name" in term.get("source", {}):
        yield term
    for part in term.get("parts", ()):
        yield from leaves(part)
