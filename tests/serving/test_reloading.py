"""A newer checkpoint is served without dropping what runs; a defect of a step ends no server."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from dataclasses import replace

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from byhand import TrainConfig
from byhand.cli.runs import serve
from byhand.errors import CheckpointError
from byhand.interop import exchange
from byhand.serving import service as services
from byhand.serving.worker import ServedChoice
from cli.inside import write_run
from serving.house import CONTEXT, client, service

COMPLETIONS = "/v1/completions"
LONG = {"prompt": "a", "max_tokens": CONTEXT - 1, "seed": 1}


def test_a_newer_checkpoint_takes_new_requests_and_the_old_one_finishes(monkeypatch):
    monkeypatch.setattr(services, "WATCHED", 0.01)
    found, begun, calls = service(), asyncio.Event(), []
    alone = asyncio.run(asked(service()))
    newer = replace(service().served, version="step-00000002")

    def read(served):
        calls.append(served.version)
        if len(calls) == 1:
            raise CheckpointError("it is damaged.")  # is passed over
        return newer if begun.is_set() and served.version == "step-00000001" else None

    found.newer = read
    step = found.served.engine.decoder.step

    def slow(most):
        begun.set()
        while found.served is not newer and len(calls) < 500:
            time.sleep(0.002)
        step(most)

    found.served.engine.decoder.step = slow

    async def both():
        async with client(found) as made:
            old = asyncio.create_task(made.post(COMPLETIONS, json=LONG))
            while found.served is not newer:
                await asyncio.sleep(0.005)
            new = await made.post(COMPLETIONS, json=LONG)
            models = (await made.get("/v1/models")).json()["data"]
            return (await old).json(), new.json(), models, found.metrics.write().decode()

    old, new, models, metrics = asyncio.run(both())
    assert [each["system_fingerprint"] for each in (old, new)] == ["step-00000001", "step-00000002"]
    assert old["choices"] == new["choices"] == alone["choices"]  # the same weights here
    assert models[0]["version"] == "step-00000002"
    assert "byhand_reloads_total 1.0" in metrics


async def asked(found):
    async with client(found) as made:
        return (await made.post(COMPLETIONS, json=LONG)).json()


def test_a_run_is_watched_for_its_newest_checkpoint(tmp_path, monkeypatch):
    options = serve.Options(write_run(tmp_path / "run", TrainConfig(steps=10)), runtime="numpy", watch=True)
    served = serve._served(options)
    assert (served.name, served.version) == ("run", "step-00000004")
    read, before = serve._newer(options), replace(served, version="step-00000003")
    assert read(served) is None
    assert read(before).version == "step-00000004"
    broken = shutil.copytree(options.run / "step-00000004", options.run / "step-00000005")
    (broken / "model.safetensors").write_bytes(b"half")
    calls = []
    monkeypatch.setattr(serve, "_served", lambda options: calls.append(options) or served)  # as it passes over it
    assert [read(served), read(served)] == [None, None]
    assert len(calls) == 1
    (broken / "model.safetensors").write_bytes(b"some more")
    assert read(served) is None
    assert len(calls) == 2


def test_a_model_is_read_once_for_explanations_until_it_is_forgotten(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", TrainConfig(steps=10))
    explanations, read, reads = serve.Explanations(serve.Options(run)), exchange.model, []
    monkeypatch.setattr(exchange, "model", lambda path, **how: reads.append(path.name) or read(path, **how))
    asked = [{"target": "loss"}, {"target": "wte[32,0]", "grad": True}, {"target": "logits[0,1,3]", "prompt": "or"}]
    answers = [explanations("step-00000004", values) for values in asked]
    assert [answer["name"] for answer in answers] == ["loss", "wte", "logits"]
    assert reads == ["step-00000004"]
    assert len(json.dumps(explanations("step-00000004", {"target": "loss", "terms": 2}))) < 10_000
    explanations("step-00000004", None)
    assert explanations("step-00000004", asked[0]) == answers[0]
    assert len(reads) == 2


def test_a_step_that_fails_ends_its_requests_and_not_the_server():
    found = service()
    step = found.served.engine.decoder.step

    def broken(most):
        found.served.engine.decoder.step = step
        raise ZeroDivisionError("a defect")

    async def ask():
        async with client(found) as made:
            answers = []
            for stream in (False, True):
                found.served.engine.decoder.step = broken
                answers.append(await made.post(COMPLETIONS, json=LONG | {"stream": stream}))
            return [*answers, await made.post(COMPLETIONS, json=LONG)]

    whole, streamed, after = asyncio.run(ask())
    assert (whole.status_code, whole.json()["error"]["type"]) == (500, "server_error")
    assert '"type":"server_error"' in streamed.text
    assert "defect" not in whole.text
    assert after.json()["usage"]["completion_tokens"] == CONTEXT - 1


def test_a_defect_in_one_choice_ends_that_one_and_no_other(monkeypatch):
    found, more = service(), ServedChoice.more

    def broken(choice):
        if choice.stream.tokens[0] == ord("b"):
            raise ZeroDivisionError("a defect")
        return more(choice)

    async def ask():
        async with client(found) as made:
            alone = await made.post(COMPLETIONS, json=LONG)
            monkeypatch.setattr(ServedChoice, "more", broken)
            bodies = [LONG, LONG | {"prompt": "b"}, LONG]
            return alone, await asyncio.gather(*(made.post(COMPLETIONS, json=body) for body in bodies))

    alone, answers = asyncio.run(ask())
    assert [answer.status_code for answer in answers] == [200, 500, 200]
    assert answers[0].json()["choices"] == answers[2].json()["choices"] == alone.json()["choices"]
    assert not found.served.engine.running
