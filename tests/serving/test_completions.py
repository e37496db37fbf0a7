"""Texts that continue prompts, and answers: what they hold, streamed or whole."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from byhand.choices import Chooser, answered
from byhand.corpus.questions import Question
from byhand.evaluate import evaluating
from byhand.generation import Sampling, generate
from byhand.runtimes.protocol import Request
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.training import train
from serving import house
from serving.house import asking, events, posted

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
BPE = train([b"the fox and the dog said that the fox is the dog\n" * 4], 262, "gpt4", ("<|endoftext|>",), 15)
HELLO = [{"role": "user", "content": "Hi"}]


def log_softmax(prompt):
    logits = house.model().forward_logits([list(prompt)]).data[0].astype(np.float64)
    return (
        logits
        - np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1, keepdims=True))
        - logits.max(-1, keepdims=True)
    )


def test_echo_scores_a_prompt_as_a_forward_pass_does():
    prompt = "To be 或 not"
    content, expected = prompt.encode(), log_softmax(prompt.encode())
    body = {"prompt": prompt, "max_tokens": 0, "echo": True, "logprobs": 3}
    found = posted(COMPLETIONS, body).json()
    (choice,) = found["choices"]
    scores = choice["logprobs"]
    assert choice["text"] == prompt
    assert choice["finish_reason"] == "length"
    assert found["usage"] == {"prompt_tokens": len(content), "completion_tokens": 0, "total_tokens": len(content)}
    assert scores["token_logprobs"][0] is None
    assert scores["top_logprobs"][0] is None
    due = [expected[i, token] for i, token in enumerate(content[1:])]
    np.testing.assert_allclose(scores["token_logprobs"][1:], due, atol=1e-5)
    assert scores["tokens"][6:10] == ["bytes:\\xe6", "bytes:\\x88", "bytes:\\x96", " "]
    assert scores["text_offset"] == [len(content[:i].decode("utf-8", "replace")) for i in range(len(content))]
    for i, (token, logp, top) in enumerate(
        zip(scores["tokens"][1:], scores["token_logprobs"][1:], scores["top_logprobs"][1:], strict=True)
    ):
        assert top[token] == logp  # the same float
        np.testing.assert_allclose(sorted(top.values())[-3:], sorted(expected[i])[-3:], atol=1e-5)
        assert 3 <= len(top) <= 4


@pytest.mark.parametrize("tokenizer", [BYTES, BPE])
def test_endings_score_as_eval_choices_does(tokenizer):
    # as lm_eval asks: one token more is drawn, and the ending's tokens are those between the context's and it
    model = house.model(tokenizer.vocab_size)
    chooser = Chooser(model, tokenizer)
    questions = [
        ("To be, or", ["not to be", "to bee"]),
        ("the fox", ["said that", "is the dog"]),
        ("你", ["好", "x"]),
    ]
    asked = [chooser.encoded(context, ending) for context, endings in questions for ending in endings]

    async def ask(client):
        body = {"prompt": [ids for ids, _ in asked], "temperature": 0, "max_tokens": 1, "logprobs": 1, "echo": True}
        return (await client.post(COMPLETIONS, json=body)).json()["choices"]

    scores = [choice["logprobs"]["token_logprobs"] for choice in asking(ask, tokenizer=tokenizer)]
    found = [sum(each[len(ids) - own : -1]) for each, (ids, own) in zip(scores, asked, strict=True)]
    given = [Question(context, tuple(endings), 0, "") for context, endings in questions]
    request = Request("evaluate", model.config, "numpy", str(model.dtype))
    with evaluating(model, request, lambda session: None) as (session, _):
        sums = {each.question.context: each.sums for each in answered(session, given, chooser)}
    expected = [score for context, _ in questions for score in sums[context]]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_texts_are_those_of_the_same_seeds():
    body = {"prompt": [[97, 98], [99, 100]], "n": 2, "best_of": 2, "seed": 5, "temperature": 1.3, "max_tokens": 12}
    found = posted(COMPLETIONS, body).json()
    assert [choice["index"] for choice in found["choices"]] == [0, 1, 2, 3]
    for choice, (prompt, seed) in zip(
        found["choices"], [(b"ab", 5), (b"ab", 6), (b"cd", 5), (b"cd", 6)], strict=True
    ):
        ids = generate(house.model(), prompt, 12, Sampling(1.3, seed=seed), runtime="numpy")
        assert choice["text"] == bytes(ids).decode(errors="replace")
    assert found["usage"] == {"prompt_tokens": 4, "completion_tokens": 48, "total_tokens": 52}


def test_the_best_candidates_are_those_of_the_largest_mean():
    body = {"prompt": "a", "seed": 1, "max_tokens": 6, "logprobs": 0, "n": 4}
    every = posted(COMPLETIONS, body).json()["choices"]
    body = {"prompt": "a", "seed": 1, "max_tokens": 6, "logprobs": 0, "n": 2, "best_of": 4}
    found = posted(COMPLETIONS, body).json()
    means = {choice["text"]: np.mean(choice["logprobs"]["token_logprobs"]) for choice in every}
    assert [choice["text"] for choice in found["choices"]] == sorted(means, key=means.get, reverse=True)[:2]
    assert found["usage"]["completion_tokens"] == 24


def test_an_echoed_prompt_does_not_count_for_the_best_candidate():
    body = {"prompt": "abcdefgh", "echo": True, "seed": 2, "max_tokens": 12, "logprobs": 0, "stop": "e"}
    body["logit_bias"] = {"101": 3}
    unscored = {name: value for name, value in body.items() if name != "logprobs"}
    every = posted(COMPLETIONS, {**body, "n": 8}).json()["choices"]
    drawn = [choice["logprobs"]["token_logprobs"][8:] for choice in every]
    assert len({*map(len, drawn)}) > 1
    best = max(range(8), key=lambda i: sum(drawn[i]) / max(1, len(drawn[i])) if drawn[i] else 0.0)
    (found,) = posted(COMPLETIONS, {**body, "best_of": 8}).json()["choices"]
    assert found["text"] == every[best]["text"]
    (found,) = posted(COMPLETIONS, {**unscored, "best_of": 8}).json()["choices"]
    assert (found["text"], found["logprobs"]) == (every[best]["text"], None)


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "To be", "n": 2},
        {"prompt": "你", "echo": True, "logprobs": 2, "n": 2},
        {"prompt": [7, 8], "stop": ["a", "bc"], "logprobs": 0, "echo": True},
        {"prompt": ["x", "y"], "temperature": 0, "stop": None, "logprobs": 1},
        {"prompt": "a", "max_tokens": 0, "echo": True},
        {"prompt": "a", "max_tokens": 0},
        {"prompt": "ab", "logit_bias": {"97": 50}, "presence_penalty": 1.5, "frequency_penalty": -1, "top_p": 0.9},
    ],
)
def test_a_stream_is_the_text_in_pieces(body):
    body = {"seed": 3, "max_tokens": 20, **body}

    async def both(client):
        one = client.post(COMPLETIONS, json=body)
        options = {"stream": True, "stream_options": {"include_usage": True}}
        return await asyncio.gather(one, client.post(COMPLETIONS, json=body | options))

    whole, streamed = asking(both)
    whole, chunks = whole.json(), events(streamed)
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    for choice in whole["choices"]:
        own = [each for chunk in chunks for each in chunk["choices"] if each["index"] == choice["index"]]
        assert "".join(each["text"] for each in own) == choice["text"]
        assert [each["finish_reason"] for each in own] == [None] * (len(own) - 1) + [choice["finish_reason"]]
        if choice["logprobs"]:
            for name, values in choice["logprobs"].items():
                assert [value for each in own for value in each["logprobs"][name]] == values


def test_a_stop_text_is_left_out_and_counted():
    body = {"prompt": "a", "seed": 2, "max_tokens": 30, "logprobs": 0}
    (whole,) = posted(COMPLETIONS, body).json()["choices"]
    tokens = whole["logprobs"]["tokens"]
    first = next(i for i in range(3, 30) if tokens[i].isalnum() and tokens[i] not in tokens[:i])
    found = posted(COMPLETIONS, body | {"stop": ["never there", tokens[first]]}).json()
    (choice,) = found["choices"]
    assert choice["text"] == whole["text"][: whole["logprobs"]["text_offset"][first]]
    assert choice["finish_reason"] == "stop"
    assert choice["logprobs"]["tokens"] == tokens[:first]
    assert found["usage"]["completion_tokens"] == first + 1


def test_the_end_token_is_scored_and_counted_without_text():
    ends = frozenset(range(128, 256))  # of which one comes soon
    body = {"prompt": "a", "seed": 1, "max_tokens": 40, "logprobs": 1}
    found = posted(COMPLETIONS, body, ends=ends).json()
    (choice,) = found["choices"]
    scores = choice["logprobs"]
    assert choice["finish_reason"] == "stop"
    assert found["usage"]["completion_tokens"] == len(scores["tokens"]) == len(choice["text"]) + 1
    assert scores["text_offset"][-1] == len(choice["text"])
    assert scores["tokens"][-1].startswith("bytes:")
    assert scores["top_logprobs"][-1][scores["tokens"][-1]] == scores["token_logprobs"][-1]
    body = {"messages": HELLO, "seed": 1, "logprobs": True}
    (choice,) = posted(CHAT, body, ends=ends).json()["choices"]
    assert (
        bytes(byte for each in choice["logprobs"]["content"] for byte in each["bytes"]).decode()
        == choice["message"]["content"]
    )
    assert choice["logprobs"]["content"][-1]["bytes"] == []
    assert choice.keys() == {"index", "message", "logprobs", "finish_reason"}


def test_an_answer_streamed_or_whole():
    body = {"messages": [{"role": "system", "content": [{"type": "text", "text": "Be"}]}, *HELLO], "seed": 4, "n": 2}
    body |= {"max_completion_tokens": 9, "logprobs": True, "top_logprobs": 2, "response_format": {"type": "text"}}

    async def both(client):
        return await asyncio.gather(client.post(CHAT, json=body), client.post(CHAT, json=body | {"stream": True}))

    whole, streamed = asking(both)
    whole, chunks = whole.json(), events(streamed)
    for choice in whole["choices"]:
        own = [each for chunk in chunks for each in chunk["choices"] if each["index"] == choice["index"]]
        assert own[0]["delta"] == {"role": "assistant", "content": ""}
        assert "".join(each["delta"].get("content", "") for each in own) == choice["message"]["content"]
        assert [each["finish_reason"] for each in own if each["finish_reason"]] == [choice["finish_reason"]]
        scores = choice["logprobs"]["content"]
        assert [each for chunk in own if chunk["logprobs"] for each in chunk["logprobs"]["content"]] == scores
        assert len(scores) == 9
        for each in scores:
            assert len(each["top_logprobs"]) == 2
            assert len(each["bytes"]) == 1
            for other in each["top_logprobs"]:
                assert other["token"] != each["token"] or other["logprob"] == each["logprob"]
    assert whole["object"] == "chat.completion"
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}


@pytest.mark.parametrize(
    ("path", "field", "said"),
    [
        (COMPLETIONS, {"response_format": {"type": "json_object"}}, "response_format"),
        (COMPLETIONS, {"guided_regex": "a+"}, "guided_regex"),
        (COMPLETIONS, {"prompt_logprobs": 1}, "prompt_logprobs"),
        (COMPLETIONS, {"min_tokens": 0, "use_beam_search": False, "response_format": {"type": "text"}}, ""),
        (COMPLETIONS, {"logit_bias": {"foo": 1}}, "'foo'"),
        (COMPLETIONS, {"best_of": -1}, "not -1"),
        (COMPLETIONS, {"best_of": 0}, ""),
        (CHAT, {"echo": True}, "echo"),
        (CHAT, {"add_generation_prompt": False}, "add_generation_prompt"),
        (CHAT, {"echo": False, "top_logprobs": 0, "continue_final_message": False}, ""),
        (CHAT, {"messages": [{"role": "user", "content": "Hi", "name": "Ann"}]}, ""),
    ],
)
def test_what_would_change_a_text_and_is_missing_is_refused(path, field, said):
    found = posted(
        path, {**({"prompt": "a"} if path == COMPLETIONS else {"messages": HELLO}), "max_tokens": 1, **field}
    )
    assert found.status_code == (400 if said else 200)
    assert not said or said in found.json()["error"]["message"]


def test_a_text_that_reaches_the_end_of_the_context_ends_there():
    found = posted(COMPLETIONS, {"prompt": "x" * 40, "max_tokens": 1000, "seed": 1}).json()
    assert (found["choices"][0]["finish_reason"], found["usage"]["completion_tokens"]) == ("length", 8)
    full = posted(COMPLETIONS, {"prompt": "x" * house.CONTEXT, "max_tokens": 5, "logprobs": 0, "echo": True})
    assert (full.status_code, full.json()["choices"][0]["finish_reason"]) == (200, "length")
    long = posted(COMPLETIONS, {"prompt": "x" * (house.CONTEXT + 1)})
    assert (long.status_code, long.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_tokens_of_several_bytes():
    prompt = "the fox said 你"

    async def ask(client):
        info = (await client.get("/tokenizer_info")).json()
        tokens = (await client.post("/tokenize", json={"prompt": prompt, "add_special_tokens": False})).json()
        back = (await client.post("/detokenize", json={"tokens": tokens["tokens"]})).json()
        by_ids = await client.post(
            COMPLETIONS, json={"prompt": tokens["tokens"], "max_tokens": 0, "echo": True, "logprobs": 0}
        )
        by_text = await client.post(
            COMPLETIONS, json={"prompt": prompt, "max_tokens": 0, "echo": True, "logprobs": 0}
        )
        return info, tokens, back, by_ids.json()["choices"], by_text.json()["choices"]

    info, tokens, back, by_ids, by_text = asking(ask, tokenizer=BPE)
    assert tokens["tokens"] == BPE.encode(prompt)
    assert (tokens["count"], tokens["max_model_len"]) == (len(tokens["tokens"]), house.CONTEXT)
    assert back["prompt"] == prompt
    assert info["eos_token"] == "<|endoftext|>"
    assert by_ids == by_text
    assert by_ids[0]["logprobs"]["tokens"][:2] == ["th", "e"]


def request(rng):
    """A random request."""
    body = {
        "prompt": bytes(rng.choices(range(32, 127), k=rng.randint(1, 20))).decode(),
        "max_tokens": rng.randint(0, 20),
    }
    body |= {"seed": rng.randint(0, 9), "temperature": rng.choice((0, 0.5, 1, 1.7)), "n": rng.choice((1, 1, 2))}
    if rng.random() < 0.3:
        body |= {"logprobs": rng.randint(0, 5), "echo": rng.random() < 0.5}
    if rng.random() < 0.3:
        body |= {"stop": [chr(rng.randrange(32, 127))]}
    for name, values in {
        "top_p": (0, 0.5, 0.9), "top_k": (-1, 1, 20), "min_p": (0, 0.05), "repetition_penalty": (1, 1.3),
        "presence_penalty": (-2, 1), "frequency_penalty": (0.5, 2), "logit_bias": ({"65": 5, "66": -100},),
    }.items():  # fmt: skip
        if rng.random() < 0.25:
            body[name] = rng.choice(values)
    return body


def test_each_text_under_load_is_the_one_that_it_is_alone():
    bodies = [request(random.Random(i)) for i in range(24)]

    async def both(client):
        alone = [(await client.post(COMPLETIONS, json=body)).json() for body in bodies]
        return alone, [
            r.json() for r in await asyncio.gather(*(client.post(COMPLETIONS, json=body) for body in bodies))
        ]

    for one, other in zip(*asking(both), strict=True):
        assert one["choices"] == other["choices"]
        assert one["usage"] == other["usage"]


def test_models_health_metrics_and_explain():
    async def ask(client):
        paths = (
            "/v1/models",
            "/v1/models/small",
            "/v1/models/large",
            "/health",
            "/healthz",
            "/metrics",
            "/",
            "/favicon.ico",
        )
        await client.post(COMPLETIONS, json={"prompt": "a", "model": "another", "max_tokens": 3, "stream": False})
        return [await client.get(path) for path in paths], await client.post("/v1/explain", json={"target": "loss"})

    found, explained = asking(ask)
    assert [response.status_code for response in found] == [200, 200, 404, 200, 200, 200, 200, 204]
    assert found[0].json()["data"] == [found[1].json()]
    assert found[1].json()["id"] == "small"
    assert found[2].json()["error"]["code"] == "model_not_found"
    assert 'byhand_requests_total{path="/v1/completions",status="200"} 1.0' in found[5].text
    assert "byhand_generated_tokens_total 3.0" in found[5].text
    assert explained.json() == house.EXPLAINED
