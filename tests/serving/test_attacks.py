"""What others may try at the server, and its answer to each: an error in OpenAI's shape, and never a traceback."""

from __future__ import annotations

import asyncio
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from pydantic import ValidationError

from byhand.serving.guard import Access
from byhand.serving.limits import Limits
from byhand.serving.protocol import Completion, Detokenize
from serving.house import asking, client, service

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
JSON = {"content-type": "application/json"}
KEY = "a key of sixteen"


def body(**values):
    return json.dumps({"prompt": "a", "max_tokens": 1, **values}).encode()


def chat(**values):
    return json.dumps({"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, **values}).encode()


# method, path, headers, body: status
ATTACKS = {
    "fine": ("POST", COMPLETIONS, JSON, body(), 200),
    "fine chat": ("POST", CHAT, JSON, chat(), 200),
    "traversal": ("GET", "/../../etc/passwd", {}, b"", 404),
    "encoded traversal": ("GET", "/%2e%2e/%2e%2e/etc/passwd", {}, b"", 404),
    "traversal of models": ("GET", "/v1/models/../../etc/passwd", {}, b"", 404),
    "encoded traversal of models": ("GET", "/v1/models/%2e%2e%2fetc%2fpasswd", {}, b"", 404),
    "double slash": ("POST", "//v1/completions", JSON, body(), 404),
    "another case": ("POST", "/V1/completions", JSON, body(), 404),
    "slash at the end": ("POST", "/v1/completions/", JSON, body(), 404),
    "nothing there": ("GET", "/v1/files", {}, b"", 404),
    "docs": ("GET", "/docs", {}, b"", 404),
    "another method": ("GET", COMPLETIONS, {}, b"", 405),
    "delete": ("DELETE", "/v1/models/small", {}, b"", 405),
    "unknown method": ("BREW", "/v1/models", {}, b"", 405),
    "rebinding": ("GET", "/v1/models", {"host": "evil.example"}, b"", 403),
    "rebinding of the page": ("GET", "/", {"host": "evil.example:8000"}, b"", 403),
    "rebinding of health": ("GET", "/health", {"host": "127.0.0.1.evil.example"}, b"", 403),
    "host with a path": ("GET", "/v1/models", {"host": "localhost/evil"}, b"", 403),
    "host with a user": ("GET", "/v1/models", {"host": "localhost@evil.example"}, b"", 403),
    "empty host": ("GET", "/v1/models", {"host": ""}, b"", 403),
    "host of another machine": ("GET", "/v1/models", {"host": "192.168.0.7"}, b"", 403),
    "other page": ("POST", COMPLETIONS, JSON | {"origin": "https://evil.example"}, body(), 403),
    "other page on this machine": ("POST", COMPLETIONS, JSON | {"origin": "http://localhost:3000"}, body(), 403),
    "sandboxed page": ("POST", COMPLETIONS, JSON | {"origin": "null"}, body(), 403),
    "preflight": ("OPTIONS", COMPLETIONS, {"origin": "https://evil.example"}, b"", 403),
    "own page": ("POST", COMPLETIONS, JSON | {"origin": "http://localhost"}, body(), 200),
    "simple form": ("POST", COMPLETIONS, {"content-type": "text/plain"}, body(), 400),
    "form": ("POST", COMPLETIONS, {"content-type": "application/x-www-form-urlencoded"}, b"prompt=a", 400),
    "without a type": ("POST", COMPLETIONS, {}, body(), 400),
    "empty body": ("POST", COMPLETIONS, JSON, b"", 400),
    "not JSON": ("POST", COMPLETIONS, JSON, b"{", 400),
    "not UTF-8": ("POST", COMPLETIONS, JSON, b'{"prompt": "\xff"}', 400),
    "UTF-16": ("POST", COMPLETIONS, JSON, body().decode().encode("utf-16"), 400),
    "two lengths": ("POST", COMPLETIONS, JSON | {"transfer-encoding": "chunked", "content-length": "1"}, body(), 400),
    "a list": ("POST", COMPLETIONS, JSON, b"[]", 400),
    "a number": ("POST", COMPLETIONS, JSON, b"1", 400),
    "deep": ("POST", COMPLETIONS, JSON, b'{"prompt": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", 400),
    "deep object": ("POST", CHAT, JSON, b'{"a": ' * 10**4 + b"1" + b"}" * 10**4, 400),
    "key twice": ("POST", COMPLETIONS, JSON, b'{"prompt": "a", "prompt": "b"}', 400),
    "NaN": ("POST", COMPLETIONS, JSON, b'{"prompt": "a", "temperature": NaN}', 400),
    "infinity": ("POST", COMPLETIONS, JSON, b'{"prompt": "a", "temperature": 1e999}', 400),
    "long number": ("POST", COMPLETIONS, JSON, b'{"prompt": "a", "seed": ' + b"9" * 10**5 + b"}", 400),
    "oversized": ("POST", COMPLETIONS, JSON, body(prompt="a" * (1 << 21)), 413),
    "large prompt": ("POST", COMPLETIONS, JSON, body(prompt="a" * 10**6), 400),
    "many prompts": ("POST", COMPLETIONS, JSON, body(prompt=["a"] * 10**4), 400),
    "many tokens": ("POST", COMPLETIONS, JSON, body(prompt=[1] * 10**5), 400),
    "unknown token": ("POST", COMPLETIONS, JSON, body(prompt=[256]), 400),
    "negative token": ("POST", COMPLETIONS, JSON, body(prompt=[-1]), 400),
    "token as a number": ("POST", COMPLETIONS, JSON, body(prompt=[1.5]), 400),
    "tokens and texts": ("POST", COMPLETIONS, JSON, body(prompt=[1, "a"]), 400),
    "no prompts": ("POST", COMPLETIONS, JSON, body(prompt=[]), 400),
    "an empty prompt of ids": ("POST", COMPLETIONS, JSON, body(prompt=[[]]), 400),
    "huge n": ("POST", COMPLETIONS, JSON, body(n=10**9), 400),
    "n of zero": ("POST", COMPLETIONS, JSON, body(n=0), 400),
    "n as text": ("POST", COMPLETIONS, JSON, body(n="1"), 400),
    "n as truth": ("POST", COMPLETIONS, JSON, body(n=True), 400),
    "best below n": ("POST", COMPLETIONS, JSON, body(n=2, best_of=1), 400),
    "best streamed": ("POST", COMPLETIONS, JSON, body(best_of=2, stream=True), 400),
    "huge max_tokens": ("POST", COMPLETIONS, JSON, body(max_tokens=10**18), 400),
    "negative max_tokens": ("POST", COMPLETIONS, JSON, body(max_tokens=-1), 400),
    "two maxima": ("POST", COMPLETIONS, JSON, body(max_completion_tokens=2), 400),
    "hot": ("POST", COMPLETIONS, JSON, body(temperature=2.1), 400),
    "cold": ("POST", COMPLETIONS, JSON, body(temperature=-1), 400),
    "top_p": ("POST", COMPLETIONS, JSON, body(top_p=1.1), 400),
    "huge logprobs": ("POST", COMPLETIONS, JSON, body(logprobs=10**6), 400),
    "suffix": ("POST", COMPLETIONS, JSON, body(suffix="b"), 400),
    "empty stop": ("POST", COMPLETIONS, JSON, body(stop=["a", ""]), 400),
    "many stops": ("POST", COMPLETIONS, JSON, body(stop=["a"] * 1000), 400),
    "long stop": ("POST", COMPLETIONS, JSON, body(stop="a" * 10**5), 400),
    "half a character": ("POST", COMPLETIONS, JSON, b'{"prompt": "\\ud800"}', 400),
    "half a character in a stop": ("POST", COMPLETIONS, JSON, b'{"prompt": "a", "stop": "\\udc80"}', 400),
    "hostile unicode": ("POST", COMPLETIONS, JSON, body(prompt="\0\u202e\u200b\ufdd0\U0010ffff\x1b[2J"), 200),
    "bias of no token": ("POST", COMPLETIONS, JSON, body(logit_bias={"256": 1}), 400),
    "bias of a name": ("POST", COMPLETIONS, JSON, body(logit_bias={"a": 1}), 400),
    "bias of a token by two names": ("POST", COMPLETIONS, JSON, body(logit_bias={"1": 1, "01": 1}), 400),
    "huge bias": ("POST", COMPLETIONS, JSON, body(logit_bias={"1": 10**6}), 400),
    "stream options without stream": ("POST", COMPLETIONS, JSON, body(stream_options={"include_usage": True}), 400),
    "unknown field": ("POST", COMPLETIONS, JSON, body(__class__={"a": 1}), 200),
    "no messages": ("POST", CHAT, JSON, chat(messages=[]), 400),
    "messages as text": ("POST", CHAT, JSON, chat(messages="a"), 400),
    "message as text": ("POST", CHAT, JSON, chat(messages=["a"]), 400),
    "empty message": ("POST", CHAT, JSON, chat(messages=[{}]), 400),
    "unknown role": ("POST", CHAT, JSON, chat(messages=[{"role": "root", "content": "a"}]), 400),
    "a tool's message": ("POST", CHAT, JSON, chat(messages=[{"role": "tool", "content": "a"}]), 400),
    "image": ("POST", CHAT, JSON, chat(messages=[{"role": "user", "content": [{"type": "image_url"}]}]), 400),
    "content as a number": ("POST", CHAT, JSON, chat(messages=[{"role": "user", "content": 1}]), 400),
    "tools": ("POST", CHAT, JSON, chat(tools=[{"type": "function"}]), 400),
    "schema": ("POST", CHAT, JSON, chat(response_format={"type": "json_object"}), 400),
    "template": ("POST", CHAT, JSON, chat(chat_template="{{ 7 * 7 }}"), 400),
    "pattern": ("POST", CHAT, JSON, chat(guided_regex="(a+)+b"), 400),
    "top without logprobs": ("POST", CHAT, JSON, chat(top_logprobs=2), 400),
    "explain without a target": ("POST", "/v1/explain", JSON, b"{}", 400),
    "explain a long prompt": ("POST", "/v1/explain", JSON, b'{"target": "loss", "prompt": "%s"}' % (b"a" * 65), 400),
    "explain in depth": ("POST", "/v1/explain", JSON, b'{"target": "loss", "depth": 99}', 400),
    "detokenize nothing": ("POST", "/detokenize", JSON, b'{"tokens": [300]}', 400),
}  # fmt: skip


def sound(response):
    """The response is one of ours; an error has OpenAI's shape, and nothing of Python in it."""
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    if response.status_code >= 400:
        error = response.json()["error"]
        assert error.keys() == {"message", "type", "param", "code"}
        assert 5 < len(error["message"]) <= 500
        assert not re.search(r"Traceback|File \"|\.py|0x[0-9a-f]{6}", error["message"])


def test_attacks_have_their_answers():
    async def ask(made):
        found = {}
        for name, (method, path, headers, content, _) in ATTACKS.items():
            request = made.build_request(method, "http://localhost/", headers=headers, content=content)
            request.url = request.url.copy_with(raw_path=path.encode())
            found[name] = await made.send(request)
        return found

    found = asking(ask)
    for name, words in (("form", "must be a JSON object"), ("tools", "tools")):
        assert words in found[name].json()["error"]["message"]
    for name, response in found.items():
        assert (name, response.status_code) == (name, ATTACKS[name][-1]), response.text
        sound(response)


@pytest.mark.parametrize(
    ("kind", "given"),
    [(Completion, {"prompt": [1.5] * 1000}), (Completion, {"prompt": [[1.5]] * 1000}),
     (Completion, {"logit_bias": dict.fromkeys(map(str, range(2000)), "a")}), (Detokenize, {"tokens": [""] * 1000})],
)  # fmt: skip
def test_the_first_wrong_item_is_enough(kind, given):
    with pytest.raises(ValidationError) as found:
        kind.model_validate(given)
    assert found.value.error_count() < 8  # an error for each would hold up everybody's answers


def test_a_key_is_needed_everywhere_but_for_health_and_the_page():
    access = Access(key=KEY)
    right = [{"authorization": f"Bearer {KEY}"}, {"authorization": f"bearer {KEY}"}, {"x-api-key": KEY}]
    wrong = [{}, {"authorization": KEY}, {"authorization": f"Basic {KEY}"}, {"authorization": f"Bearer {KEY}x"}]
    wrong += [
        {"x-api-key": KEY[:-1]},
        {"x-api-key": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer \xff"},
    ]

    async def ask():
        async with client(service(), access) as made:
            for headers in right:
                assert (await made.get("/v1/models", headers=headers)).status_code == 200
            for headers in wrong:
                coded = {name: value.encode("latin-1") for name, value in headers.items()}
                response = await made.get("/v1/models", headers=coded)
                assert (response.status_code, response.json()["error"]["code"]) == (401, "invalid_api_key")
                sound(response)
            for path in ("/health", "/healthz", "/", "/favicon.ico"):
                assert (await made.get(path)).status_code in (200, 204)
            for path in ("/metrics", "/tokenizer_info", "/openapi.json", "/v1/models/small", "/health/", "/nothing"):
                assert (await made.get(path)).status_code == 401

    asyncio.run(ask())


def test_hosts_and_origins_that_are_allowed():
    access = Access(hosts={"model.example"}, origins={"http://localhost:3000"})

    async def ask():
        async with client(service(), access) as made:
            assert (await made.get("/v1/models", headers={"host": "Model.Example:8443"})).status_code == 200
            page = {"origin": "http://localhost:3000"}
            response = await made.get("/v1/models", headers=page)
            assert response.headers["access-control-allow-origin"] == "http://localhost:3000"
            assert (await made.options(COMPLETIONS, headers=page)).status_code == 204
            for host in ("[::1]:8000", "127.0.0.1:1", "LOCALHOST"):
                assert (await made.get("/v1/models", headers={"host": host})).status_code == 200

    asyncio.run(ask())


def test_a_body_is_counted_as_it_arrives():
    async def pieces():
        for _ in range(64):
            yield b" " * (1 << 15)

    async def ask(made):
        return await made.post(COMPLETIONS, content=pieces(), headers=JSON)

    response = asking(ask)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "body_too_large")


def test_a_body_that_does_not_come_ends():
    async def pieces():
        yield b"{"
        await asyncio.sleep(60)

    async def ask(made):
        return await made.post(COMPLETIONS, content=pieces(), headers=JSON)

    assert asking(ask, limits=Limits(body_seconds=0.05)).status_code == 408


def test_a_full_queue_is_said():
    async def ask(made):
        response = await made.post(COMPLETIONS, json={"prompt": ["a", "b", "c"], "max_tokens": 40})
        again = await made.post(COMPLETIONS, json={"prompt": "a", "max_tokens": 1})
        return response, again

    full, again = asking(ask, limits=Limits(slots=1, queue=2))
    assert (full.status_code, full.json()["error"]["code"], full.headers["retry-after"]) == (429, "queue_full", "2")
    assert again.status_code == 200


def test_a_request_that_takes_too_long_ends():
    found = service()
    step = found.served.engine.decoder.step

    def slow(most):
        time.sleep(0.02)
        step(most)

    found.served.engine.decoder.step = slow

    async def ask():
        async with client(found) as made:
            found.limits = Limits(seconds=0.1)  # of the answer; to begin it may take longer
            bodies = [{"prompt": "a", "max_tokens": 40, "stream": stream} for stream in (False, True)]
            return [await made.post(COMPLETIONS, json=body) for body in bodies]

    answers = asyncio.run(ask())
    assert [answer.status_code for answer in answers] == [504, 200]
    assert all('"code":"timeout"' in answer.text for answer in answers)


names = (
    "prompt",
    "max_tokens",
    "temperature",
    "n",
    "stop",
    "logprobs",
    "echo",
    "logit_bias",
    "messages",
    "stream",
    "seed",
)
scalars = st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.text(max_size=4)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


def test_no_body_makes_a_defect():
    bodies = []

    @given(
        st.sampled_from([COMPLETIONS, CHAT, "/tokenize", "/detokenize", "/v1/explain"]),
        st.dictionaries(st.sampled_from(names), values, max_size=4),
    )
    def draw(path, found):
        bodies.append((path, {"prompt": "a", "tokens": [1], "messages": [{"role": "user", "content": "a"}]} | found))

    draw()

    async def ask(made):
        return [await made.post(p, content=json.dumps(b).encode(errors="replace"), headers=JSON) for p, b in bodies]

    for (path, found), response in zip(bodies, asking(ask), strict=True):
        assert response.status_code < 500, (path, found)
