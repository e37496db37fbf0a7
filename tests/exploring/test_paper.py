"""A lesson's GPT is explored with the lesson's numbers; a lesson without one says where it is worked."""

import numpy as np
import pytest

from byhand.book.lessons.examples import TITLES, make
from byhand.book.lessons.naming import short, squeezed
from byhand.cli.main import main
from byhand.exploring import paper
from byhand.exploring.view import View

GPTS = {name: found for name in TITLES if (found := paper.of_lesson(name))}


@pytest.mark.parametrize("name", GPTS)
def test_a_lesson_is_explored_with_its_own_numbers(name):
    subject, prompt, after = GPTS[name]
    tokens = subject.encode(f"{prompt} {after}".encode())
    values = View(subject, tokens[:-1], tokens[1:]).questions.trace.values
    own = {short(each): squeezed(array) for each, array in values.items()}
    worked = {x.name.removeprefix("all."): x.data for step in make(name).steps for x in step.arrays}
    both = own.keys() & worked.keys()
    assert {"attn.weights", "logits"} <= both
    for each in both:
        np.testing.assert_allclose(own[each], worked[each], rtol=1e-12, atol=1e-14, err_msg=each)


@pytest.mark.parametrize("name", [name for name in TITLES if name not in GPTS])
def test_a_lesson_without_a_model_is_refused_with_its_command(name, tmp_path, capsys):
    assert main(["explore", name, "--static", str(tmp_path / "page")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"`byhand work {name}`" in said
    assert ("docs/guides/update.md" in said) == (name == "matrix-core")
    assert not (tmp_path / "page").exists()


@pytest.mark.parametrize("name", ["softmax", "paper"])
def test_a_folder_called_like_a_lesson_is_a_run(name, tmp_path, capsys, monkeypatch):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["explore", name, "--static", "page"]) == 2
    assert "holds no checkpoint" in capsys.readouterr().err
