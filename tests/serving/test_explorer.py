"""The explorer's routes: what they answer is what the view gives, and wrong questions are refused in a line."""

import asyncio
import json
import threading

import httpx
import numpy as np
import pytest

from byhand.book.port.theirs import Theirs
from byhand.exploring import paper
from byhand.exploring.view import View
from byhand.serving.app import application
from byhand.serving.explorer import KEPT, ChangeAsked, Explorer, PassAsked
from byhand.serving.guard import Access
from byhand.serving.page import FILES
from cli.process import PATIENCE


def asked(ask, explorer=None, **how):
    explorer = explorer or Explorer(paper.subject(), paper.PROMPT, paper.NEXT)

    async def with_client():
        transport = httpx.ASGITransport(application(None, Access(**how), explorer))  # pyright: ignore
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await ask(client)

    return asyncio.run(with_client())


def view(prompt="no pain no", targets=(1, 0, 2)):
    subject = paper.subject()
    return View(subject, subject.encode(prompt.encode()), targets)


def test_every_number_of_a_pass_is_had_by_its_address():
    here = view()

    async def ask(client):
        begun = (await client.post("/explore/pass", json={})).json()
        assert (begun["prompt"], begun["next"], begun["texts"]) == (
            "no pain no",
            "gain",
            {"0": "no", "1": "pain", "2": "gain"},
        )
        root = f"/explore/{begun['id']}"
        for name in here.places:
            for grad in (False, True):
                got = await client.get(f"{root}/array", params={"name": name, "grad": grad})
                expected = here.matrix(name, grad, 0, None, None)
                shape = tuple(map(int, got.headers["x-shape"].split(",")))
                assert np.array_equal(np.frombuffer(got.content, "<f4").reshape(shape), expected.part)
        target = "d blocks.0.attn.weights[0,0,2,1]"
        answer = (await client.get(f"{root}/answer", params={"target": target, "terms": 3})).json()
        assert answer == json.loads(json.dumps(here.answer("blocks.0.attn.weights", (0, 0, 2, 1), True, 3)))
        difference = (await client.get(f"{root}/difference", params={"target": target})).json()
        assert difference["value"] == pytest.approx(answer["value"], rel=1e-5)
        assert (await client.get(f"{root}/stages")).json() == json.loads(json.dumps(here.stages()))
        equations = (await client.get(f"{root}/equations")).json()
        assert equations["layer_norm"]["title"]["zh"]
        assert equations["linear"]["forward"].startswith("<math")
        assert "def vjp" in equations["causal_softmax"]["derivative_lines"]["text"][0]
        reads = (await client.get(f"{root}/reads", params={"name": "logits"})).json()["reads"]
        assert reads[0] == {
            "name": "ln_f",
            "gradient": False,
            "divided": [],
            "axes": [[[0, 0, 0, 0]] * 2, [[0, 0, 1, 0]] * 2, [[0] * 4, [3, 0, 0, 0]]],
        }
        assert (await client.post(f"{root}/texts", json={"ids": [2, 2]})).json() == {"2": "gain"}

    asked(ask)


def test_a_change_is_a_pass_of_its_own():
    async def ask(client):
        begun = (await client.post("/explore/pass", json={})).json()
        change = {"target": "wte[0,0]", "value": 1.001}
        changed = (await client.post("/explore/pass", json={"changes": [change]})).json()
        assert changed["base"] == begun["id"]
        assert changed["loss"] != begun["loss"]
        found = (await client.get(f"/explore/{changed['id']}/predicted")).json()
        assert found["predicted"] == pytest.approx(found["after"], abs=1e-5)
        assert found["before"] == begun["loss"]
        compared = await client.get(f"/explore/{begun['id']}/compare", params={"with": changed["id"]})
        assert compared.json()["first"] == "wte"
        along = await client.get(f"/explore/{begun['id']}/along", params={"target": "wte[0,0]", "points": 5})
        assert len(along.json()["losses"]) == 5

    asked(ask)


def test_a_ports_first_wrong_array_is_named():
    here = view()
    arrays = {
        name: here.questions.array(name).copy() for name in ("blocks.0.attn.q", "blocks.0.attn.mixed", "logits")
    }
    arrays["grad/logits"] = here.questions.array("logits", True).copy()

    async def ask(client):
        explorer.theirs = {name: Theirs(array.shape, array.copy) for name, array in arrays.items()}
        begun = (await client.post("/explore/pass", json={})).json()
        assert begun["theirs"]
        found = []
        for name, index in ((None, ()), ("grad/logits", (0, 1, 2)), ("blocks.0.attn.mixed", (0, 0, 2, 1))):
            if name:
                arrays[name][index] += 0.5
            got = (await client.get(f"/explore/{begun['id']}/compare", params={"with": "theirs"})).json()
            found.append([(each["name"], each["gradient"], each["index"]) for each in got["places"]])
        assert found[0] == []
        assert found[1] == [("logits", True, [0, 1, 2])]
        assert found[2] == [("blocks.0.attn.mixed", False, [0, 0, 2, 1]), *found[1]]

    explorer = Explorer(paper.subject(), paper.PROMPT, paper.NEXT)
    asked(ask, explorer)


WRONG = [
    ("POST", "/explore/pass", {"prompt": "", "next": "no"}, 400, "needs two tokens"),
    ("POST", "/explore/pass", {"changes": [{"target": "wte[0,0]", "value": "1"}]}, 400, "valid number"),
    ("POST", "/explore/pass", {"changes": [{"target": "", "value": 1}]}, 400, "'' is not a parameter"),
    ("POST", "/explore/pass", {"changes": [{"mask": "no"}]}, 400, "valid boolean"),
    ("POST", "/explore/pass", {"prompt": "yes"}, 400, "knows no, pain, gain"),
    ("POST", "/explore/pass", {"prompt": "no " * 9}, 400, "at most 3 are explored"),
    ("POST", "/explore/pass", {"prompt": ""}, 400, "needs two tokens"),
    ("POST", "/explore/pass", {"promt": "no"}, 400, "promt"),
    ("POST", "/explore/pass", {"changes": [{"target": "logits[0,0,0]", "value": 1}]}, 400, "not a parameter"),
    ("POST", "/explore/pass", {"changes": [{"target": "wte[9,0]", "value": 1}]}, 400, "does not exist"),
    ("POST", "/explore/pass", {"changes": [{"target": "wte[0,0]", "value": 1, "mask": False}]}, 400, "a change has"),
    ("POST", "/explore/pass", {"changes": [{"head": [0, 7]}]}, 400, "there is no head"),
    ("POST", "/explore/pass", {"changes": [{"target": "wte[0,0]", "value": 1e31}]}, 400, "less than"),
    ("GET", "/explore/0/stages", None, 404, "no longer kept"),
    ("GET", "/explore/ID/answer?target=loss[", None, 400, "not an element"),
    ("GET", "/explore/ID/answer?target=no[0]", None, 400, "nothing is called"),
    ("GET", "/explore/ID/answer?target=logits[0,0,9]", None, 400, "does not exist"),
    ("GET", "/explore/ID/answer?target=loss&terms=0", None, 400, "terms: "),
    ("GET", "/explore/ID/array?name=logits&rows=0-x", None, 400, "match pattern"),
    ("GET", "/explore/ID/array?name=logits&head=3", None, 400, "no number 3"),
    ("GET", "/explore/ID/array?name=tokens&grad=1", None, 400, "no gradient"),
    ("GET", "/explore/ID/shares?position=9&token=0", None, 400, "there is no logit"),
    ("GET", "/explore/ID/predicted", None, 400, "nothing is changed"),
    ("GET", "/explore/ID/along?target=tokens[0,0]", None, 400, "no gradient"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "said"), WRONG)
def test_a_wrong_question_is_refused_in_a_line(method, path, body, status, said):
    async def ask(client):
        begun = (await client.post("/explore/pass", json={})).json()
        return await client.request(method, path.replace("ID", begun["id"]), json=body)

    found = asked(ask)
    assert found.status_code == status
    assert said in found.json()["error"]["message"]


def test_the_passes_asked_for_last_are_kept():
    async def ask(client):
        ids = []
        for k in range(KEPT + 1):
            change = {"target": "wte[0,0]", "value": k}
            ids.append((await client.post("/explore/pass", json={"changes": [change]})).json()["id"])
        return [(await client.get(f"/explore/{i}/norms")).status_code for i in ids]

    statuses = asked(ask)
    assert statuses[0] == 404
    assert statuses[-1] == 200


def test_without_a_model_to_chat_with_there_is_only_the_explorer():
    async def ask(client):
        pages = [(await client.get(path)).status_code for path in ("/explore", "/", "/web/vendor/lit-html.js")]
        locked = (await client.get("/explore/x/stages")).status_code
        return pages, locked

    assert asked(ask, key="12345678") == ([200, 404, 200], 401)
    assert "/explore" in FILES


def test_what_takes_long_stands_in_no_answers_way():
    explorer = Explorer(paper.subject(), paper.PROMPT, paper.NEXT)
    done = threading.Event()

    async def ask():
        begun = await explorer.begin(PassAsked())
        waiting = [explorer.asked(begun["id"], lambda view: done.wait(PATIENCE), later=True) for _ in range(2)]
        tasks = [asyncio.create_task(each) for each in waiting]
        target = ("loss", (), True, 8)
        answer = await explorer.asked(begun["id"], lambda view: view.answer(*target), gradient=True)
        assert not any(task.done() for task in tasks)
        done.set()
        await asyncio.gather(*tasks)
        await explorer.close()
        return answer

    assert asyncio.run(ask())["value"] == 1


def test_only_one_pass_has_its_gradients_and_passes_are_bounded_in_memory(monkeypatch):
    explorer = Explorer(paper.subject(), paper.PROMPT, paper.NEXT)

    async def ask():
        changed = PassAsked(changes=[ChangeAsked(target="wte[0,0]", value=2.0)])
        ids = [(await explorer.begin(asked))["id"] for asked in (PassAsked(), changed)]
        for each in ids:
            await explorer.asked(each, lambda view: view.norms(True), gradient=True)
            assert [view.id for view in explorer.views.values() if view.has_gradients] == [each]
        assert (await explorer.predicted(ids[1]))["after"] == explorer.views[ids[1]].summary()["loss"]
        first = explorer.views[ids[0]]
        assert (await explorer.begin(PassAsked()))["id"] == ids[0]
        assert explorer.views[ids[0]] is first  # not computed again
        monkeypatch.setattr("byhand.serving.explorer.KEPT_BYTES", 1)
        await explorer.begin(changed)
        assert list(explorer.views) == ids[1:]
        await explorer.close()

    asyncio.run(ask())
