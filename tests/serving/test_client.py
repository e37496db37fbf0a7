"""Every call and every field that OpenAI's client tests of itself, against this server."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("openai")

import openai
from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from serving.house import listening, service

pytestmark = pytest.mark.oracle

DEVELOPER = [{"role": "developer", "content": "string", "name": "name"}]
SAMPLED = {
    "frequency_penalty": -2, "presence_penalty": -2, "logit_bias": {"97": 0}, "n": 1, "seed": -9007199254740991,
    "stop": "\n", "temperature": 1, "top_p": 1, "user": "user-1234", "max_tokens": 0,
}  # fmt: skip
COMPLETION = {"prompt": "This is a test.", "best_of": 0, "echo": True, "logprobs": 0, **SAMPLED}
CHAT = {
    "messages": DEVELOPER, "logprobs": True, "top_logprobs": 0, "max_completion_tokens": 0, **SAMPLED,
    "function_call": "none", "tool_choice": "none", "metadata": {"foo": "string"}, "modalities": ["text"],
    "parallel_tool_calls": True, "prompt_cache_key": "key", "prompt_cache_retention": "in_memory",
    "reasoning_effort": "none", "response_format": {"type": "text"}, "safety_identifier": "id",
    "service_tier": "auto", "store": True, "verbosity": "low",
}  # fmt: skip
FUNCTION = {"name": "name", "parameters": {"foo": "bar"}}
MISSING = {
    "audio": {"format": "wav", "voice": "alloy"}, "functions": [FUNCTION],
    "prediction": {"content": "string", "type": "content"}, "tools": [{"type": "function", "function": FUNCTION}],
    "web_search_options": {"search_context_size": "low"}, "response_format": {"type": "json_object"},
}  # fmt: skip
CALLS = [
    ("completions", {"prompt": "This is a test."}, Completion),
    ("completions", COMPLETION, Completion),
    ("completions", COMPLETION | {"max_tokens": 16}, Completion),
    ("chat.completions", {"messages": DEVELOPER}, ChatCompletion),
    ("chat.completions", CHAT, ChatCompletion),
]
STREAMED = {"stream": True, "stream_options": {"include_obfuscation": True, "include_usage": True}}


@pytest.fixture(scope="module")
def port():
    with listening(service()) as found:
        yield found


def client_of(port, kind=openai.OpenAI):
    return kind(base_url=f"http://127.0.0.1:{port}/v1", api_key="any", max_retries=0)


def texts(found):
    """By choice: its text and its reason; of an answer, or of the chunks of one."""
    made = {}
    for each in [found] if hasattr(found, "usage") else found:
        for choice in each.choices:
            said = getattr(choice, "message", None) or getattr(choice, "delta", None)
            text, finish = made.get(choice.index, ("", None))
            made[choice.index] = (
                text + ((said.content if said else choice.text) or ""),
                choice.finish_reason or finish,
            )
    return made


@pytest.mark.parametrize(("path", "body", "kind"), CALLS)
def test_a_text_whole_raw_and_streamed(port, path, body, kind):
    seeded = {"model": "any", "seed": 0, **body}
    with client_of(port) as client:
        endpoint = client.chat.completions if "chat" in path else client.completions
        whole = endpoint.create(**seeded)
        raw = endpoint.with_raw_response.create(**seeded)
        if not body.get("echo"):  # whose first token has no log-probability, though the schema says a number
            assert kind.model_validate_json(raw.content, strict=True).model_extra == {}
        with endpoint.with_streaming_response.create(**seeded) as response:
            later = response.parse()
        chunks = list(endpoint.create(**seeded, **STREAMED))
        raw_stream = list(endpoint.with_raw_response.create(**seeded, stream=True).parse())
        with endpoint.with_streaming_response.create(**seeded, stream=True) as response:
            lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    if kind is ChatCompletion:
        assert all(ChatCompletionChunk.model_validate_json(line, strict=True).model_extra == {} for line in lines)
    for other in (raw.parse(), later, chunks, raw_stream):
        assert texts(other) == texts(whole)
    assert chunks[-1].usage == whole.usage
    assert whole.usage.prompt_tokens + whole.usage.completion_tokens == whole.usage.total_tokens


@pytest.mark.parametrize(("path", "body", "kind"), CALLS)
def test_a_text_of_the_asynchronous_client(port, path, body, kind):
    seeded = {"model": "any", "seed": 0, **body}

    async def ask():
        async with client_of(port, openai.AsyncOpenAI) as client:
            endpoint = client.chat.completions if "chat" in path else client.completions
            chunks = [each async for each in await endpoint.create(**seeded, **STREAMED)]
            closed = await endpoint.create(**seeded, stream=True)
            await closed.response.aclose()
            raw = (await endpoint.with_raw_response.create(**seeded)).parse()
            async with endpoint.with_streaming_response.create(**seeded) as response:
                return await endpoint.create(**seeded), raw, await response.parse(), chunks

    whole, *others = asyncio.run(ask())
    for other in others:
        assert texts(other) == texts(whole)


def test_what_is_missing_is_refused_by_name(port):
    with client_of(port) as client:
        for create, asked, fields in (
            (client.completions.create, {"prompt": "a"}, {"suffix": "test."}),
            (client.chat.completions.create, {"messages": DEVELOPER}, MISSING),
        ):
            for name, value in fields.items():
                with pytest.raises(openai.BadRequestError, match=name):
                    create(model="any", **asked, **{name: value})
        with pytest.raises(openai.BadRequestError, match="'foo'"):
            client.completions.create(model="any", prompt="a", logit_bias={"foo": 0})
        with pytest.raises(openai.BadRequestError, match="stream"):
            client.completions.create(model="any", prompt="a", stream_options={"include_usage": True})
        stored = client.chat.completions
        for call in (
            stored.list,
            lambda: stored.retrieve("id"),
            lambda: stored.delete("id"),
            lambda: client.models.delete("id"),
        ):
            with pytest.raises(openai.APIStatusError, match=r"there is no (GET|DELETE)"):
                call()


def test_models_and_the_helper_that_collects_a_stream(port):
    with client_of(port) as client:
        assert Model.model_validate_json(client.models.with_raw_response.retrieve("small").content).id == "small"
        assert client.models.with_raw_response.list().parse().data[0].id == "small"
        ask = {"model": "any", "messages": DEVELOPER, "seed": 3, "max_tokens": 7, "logprobs": True, "n": 2}
        with client.chat.completions.stream(**ask) as stream:
            events = list(stream)
            with pytest.raises(openai.LengthFinishReasonError) as found:  # as it says of OpenAI's answers
                stream.get_final_completion()
        whole = client.chat.completions.create(**ask)
    final = found.value.completion
    assert texts(final) == texts(whole)
    assert final.choices[1].logprobs.content == whole.choices[1].logprobs.content
    assert {"chunk", "content.delta", "content.done", "logprobs.content.delta"} <= {each.type for each in events}
