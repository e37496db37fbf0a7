"""A run in front of someone is the run of `byhand train`, also after going back; and its reasons are its numbers."""

import asyncio
import json
import shutil
from contextlib import contextmanager, nullcontext
from pathlib import Path

import httpx
import numpy as np
import pytest

import byhand as bh
from byhand.api.settings import named
from byhand.cli.runs import train
from byhand.corpus.texts import MEMORY
from byhand.errors import CheckpointError, DataError
from byhand.exploring import paper
from byhand.exploring.training import Training
from byhand.runs import checkpoint
from byhand.runs.lock import locked
from byhand.serving.app import application
from byhand.serving.explorer import Explorer
from byhand.serving.guard import Access
from byhand.serving.train import TrainAsked, Trainings
from cli.process import PATIENCE

TEXT = "no pain no gain, no rain no grain. " * 40
SETTINGS = {
    "preset": "tiny",
    "steps": 6,
    "d_model": 16,
    "n_heads": 2,
    "seq_len": 16,
    "runtime": "numpy",
    "eval_windows": 4,
}


@contextmanager
def opening(settings, text):
    with train.opened(named(train.Options, "train", {"data": MEMORY, **settings}), text) as (run, promise):
        yield run, promise and promise.pace


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_going_back_and_on_makes_the_run_that_train_makes():
    training = Training(opening(SETTINGS, TEXT))
    training.watch("wte", (ord("n"), 3))
    seen = [training.forward()["loss"] for _ in range(4)]
    for _ in range(3):
        training.back()
    assert training.state()["step"] == 1
    assert [step for step, _ in training.path] == [0, 1]
    assert training.forward()["loss"] == seen[1]
    training.back()
    training.close()
    kept = checkpoint.load(training.run.folder)
    assert kept.step == 1
    assert kept.parameters["wte"][ord("n"), 3] == np.float32(training.path[-1][1])
    bh.train(resume=training.run.folder, progress=False)
    bh.train(text=TEXT, out="whole", progress=False, **SETTINGS)
    ours, whole = checkpoint.load(training.run.folder), checkpoint.load(Path("whole"))
    assert ours.step == whole.step == 6
    assert all(np.array_equal(ours.parameters[name], array) for name, array in whole.parameters.items())
    lines = [json.loads(line)["step"] for line in (training.run.folder / "metrics.jsonl").read_text().splitlines()]
    assert lines == [1, 2, 3, 4, 5, 6]


def test_an_update_is_explained_by_the_numbers_that_it_made():
    training = Training(opening(SETTINGS | {"grad_accum": 2}, TEXT))
    with pytest.raises(DataError, match="no update yet"):
        training.why()
    for _ in range(2):
        progress = training.forward()
    view, after = training.why(), training.trainer.model.parameters()
    assert float(view.questions.trace.result.data) == pytest.approx(progress["loss"], rel=1e-6)
    for name in ("wte", "blocks.0.attn.w_qkv", "lm_head.b"):
        index = tuple(n // 2 for n in after[name].shape)
        found = view.answer(f"{name}.theta", index, False, 4)
        assert found["value"] == pytest.approx(float(after[name].data[index]), rel=1e-5, abs=1e-8)
    training.close()


def test_training_by_routes_pauses_steps_back_and_saves():
    explorer = Explorer(paper.subject(), paper.PROMPT, paper.NEXT)
    Trainings(explorer, lambda settings, text: opening(SETTINGS | {"seed": settings["seed"]}, text))

    async def run():
        transport = httpx.ASGITransport(application(None, Access(), explorer))  # pyright: ignore
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=PATIENCE) as client:

            async def post(path, body=None):
                return await client.post(f"/explore/train{path}", json=body)

            assert (await post("/step", {"by": 1})).status_code == 404
            assert (await post("", {"text": "short"})).status_code == 400
            assert (await post("", {"text": TEXT, "out": "/tmp"})).status_code == 400
            assert (await post("", {"text": TEXT, "steps": 5, "minutes": 1.0})).status_code == 400
            begun = (await post("", {"text": TEXT})).json()
            assert (begun["step"], begun["running"], begun["seen"]) == (0, False, [])
            assert (await post("/watch", {"target": "nothing[0]"})).status_code == 400
            await post("/watch", {"target": "wte[110,0]"})
            await post("/go", {"running": True})
            while not (state := (await client.get("/explore/train")).json())["complete"]:
                await asyncio.sleep(0.01)
            assert [each["step"] for each in state["seen"]] == [1, 2, 3, 4, 5, 6]
            assert len(state["path"]) == 7
            back = (await post("/step", {"by": -1})).json()
            assert back["step"] == 5
            assert len(back["path"]) == 6
            now = (await post("/pass", {"prompt": "no pain", "next": " "})).json()
            assert now["model"]["step"] == 5
            why = (await post("/why")).json()
            target = {"target": "wte.update[110,0]"}
            answer = (await client.get(f"/explore/{why['id']}/answer", params=target)).json()
            assert answer["value"] == pytest.approx(back["path"][-1][1] - back["path"][-2][1], rel=1e-3, abs=1e-8)
            assert (await post("/sample", {"prompt": "no"})).json()["text"].startswith("no")
            folder = (await post("/end")).json()["folder"]
            assert checkpoint.load(Path(folder)).step == 6  # as it was saved when it was complete

    asyncio.run(run())


def test_an_update_that_cannot_be_written_is_not_made_and_fails_again():
    training = Training(opening(SETTINGS, TEXT))
    training.forward()
    before = training.trainer.model.parameters()["wte"].data.copy()
    shutil.rmtree(training.run.folder)
    for _ in range(2):
        with pytest.raises(CheckpointError, match="no longer the folder"):
            training.forward()
        assert not training.run.folder.exists()
        assert training.state()["step"] == 1
        assert np.array_equal(training.trainer.model.parameters()["wte"].data, before)
    with pytest.raises(CheckpointError, match="no longer the folder"):
        training.close()
    Training(opening(SETTINGS | {"out": training.run.folder}, TEXT)).close()  # nothing holds it


def test_a_path_that_is_not_finite_is_text_and_is_bounded(monkeypatch):
    monkeypatch.setattr("byhand.exploring.training.SEEN", 3)
    training = Training(opening(SETTINGS, TEXT))
    training.watch("wte", (0, 0))
    for _ in range(4):
        training.forward()
    assert [step for step, _ in training.state()["path"]] == [2, 3, 4]
    assert [each["step"] for each in training.seen] == [2, 3, 4]
    training.path = [(4, float("nan"))]
    assert training.state()["path"] == [[4, "NaN"]]
    training.close()


def test_minutes_are_those_of_the_run_and_stand_still_while_it_waits():
    waited = []

    class Pace:
        def steps(self, step, steps):
            return steps

        def aside(self, what):
            return nullcontext()

        def pause(self, seconds):
            waited.append(seconds)

    @contextmanager
    def paced():
        with opening(SETTINGS, TEXT) as (run, _):
            yield run, Pace()

    training = Training(paced())
    training._since -= 10_000
    training.forward()
    training.forward()
    assert waited[0] >= 10_000 > waited[1]
    training.close()


def test_a_run_that_cannot_be_saved_stays_until_it_can(monkeypatch):
    def full(_):
        raise DataError("the disk is full.")

    async def run():
        explorer = Explorer(paper.subject(), paper.PROMPT)
        trainings = Trainings(explorer, lambda settings, text: opening(SETTINGS, text))
        await trainings.begin(TrainAsked(text=TEXT))
        await trainings.step(1)
        with monkeypatch.context() as broken:
            broken.setattr(Training, "save", full)
            with pytest.raises(DataError, match="full"):
                await trainings.end()
        folder = trainings.training.run.folder
        await trainings.end()
        assert checkpoint.load(folder).step == 1
        await trainings.close()

    asyncio.run(run())


def test_runs_begin_one_after_another_and_followers_are_let_go():
    explorer = Explorer(paper.subject(), paper.PROMPT, paper.NEXT)
    trainings = Trainings(explorer, lambda settings, text: opening(SETTINGS, text))

    async def run():
        held = []
        for _ in range(2):
            held.append(asyncio.create_task(trainings.begin(TrainAsked(text=TEXT))))
        await asyncio.gather(*held)
        followed = [asyncio.create_task(_all(trainings.events())) for _ in range(2)]
        for running in (True, True, False):  # two clients at once
            trainings.go(running)
        await trainings.ask(lambda training: None)
        step = trainings.training.trainer.step
        await asyncio.sleep(0.05)
        assert trainings.training.trainer.step == step
        explorer.stop()
        await asyncio.wait_for(asyncio.gather(*followed), PATIENCE)
        await explorer.close()

    asyncio.run(run())
    for folder in Path("runs").iterdir():  # each was let go
        with locked(folder):
            pass


async def _all(events):
    return [event async for event in events]
