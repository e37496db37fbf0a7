"""A page without a server has the numbers that a server gives, and is not written over something else."""

import json

import numpy as np
import pytest

from byhand.errors import DataError
from byhand.exploring import paper, static
from byhand.exploring.view import View
from exploring.test_view import view_of


def test_every_answer_is_the_views(tmp_path):
    subject = paper.subject()
    view = View(subject, subject.encode(paper.PROMPT.encode()), [1, 0, 2])
    data = tmp_path / "data"
    data.mkdir()
    (data / "pass.json").write_text("{}")  # a page may be written anew
    count = static.write(view, tmp_path, paper.PROMPT, paper.NEXT)
    answers = {path.stem: json.loads(path.read_text()) for path in (data / "answer").iterdir()}
    assert count == sum(map(len, answers.values()))
    for key, found in answers.items():
        name, gradient = key.removeprefix("d-"), key.startswith("d-")
        array = np.fromfile(data / "array" / f"{key}.bin", "<f4")
        assert array.tolist() == view.questions.array(name, gradient).astype(np.float32).ravel().tolist()
        index = list(found)[-1]
        expected = view.answer(name, tuple(map(int, filter(None, index.split(",")))), gradient, static.TERMS)
        assert found[index]["value"] == expected["value"]
        assert found[index].get("terms") == expected["terms"]
    begun = json.loads((data / "pass.json").read_text())
    assert (begun["prompt"], begun["next"]) == (paper.PROMPT, paper.NEXT)
    assert "/web/" not in (tmp_path / "index.html").read_text().replace('"web/', "")


def test_a_page_of_many_numbers_has_short_sums_and_no_central_differences(tmp_path, monkeypatch):
    monkeypatch.setattr(static, "_names", lambda _: ["logits"])
    monkeypatch.setattr(static, "DETAILED", 1)
    monkeypatch.setattr(static, "FEWER", 1)
    view = View(paper.subject(), [0, 1], [1, 2])
    static.write(view, tmp_path, "", "")
    found, back = (json.loads((tmp_path / f"data/answer/{key}logits.json").read_text()) for key in ("", "d-"))
    assert found["0,0,0"]["terms"] == view.answer("logits", (0, 0, 0), False, 1)["terms"]
    assert not any("central_difference" in each for each in back.values())


def test_a_folder_with_something_else_and_a_large_model_are_refused(tmp_path, monkeypatch):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="holds something else"):
        static.write(view_of(0), tmp_path, "", "")
    monkeypatch.setattr(static, "MOST", 10)
    with pytest.raises(DataError, match="at most 10"):
        static.write(view_of(0), tmp_path / "new", "", "")


def test_a_model_whose_parts_do_not_add_up_has_a_page_without_shares(tmp_path, monkeypatch):
    def refused(*_):
        raise DataError("its parts do not add up.")

    monkeypatch.setattr(View, "shares", refused)
    monkeypatch.setattr(static, "_answers", lambda *_: ())
    subject = paper.subject()
    assert static.write(View(subject, [0, 1], [1, 2]), tmp_path, "no pain", "gain") > 0
    assert not (tmp_path / "data" / "shares.json").exists()
