"""`byhand break`: one mistake, an equation's or all, in both languages and as JSON."""

import json

import pytest

from byhand.book.practice.effects import KINDS, effects
from byhand.cli.main import main


def run(capsys, *arguments):
    code = main(["break", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_a_name_it_lists_all_by_effect(capsys, lang):
    code, said, _ = run(capsys, "--lang", lang)
    assert code == 0
    for effect in effects():
        assert effect.mistake.name in said
        assert effect.mistake.said(lang) in said
        assert KINDS[effect.kind].said(lang) in said


@pytest.mark.parametrize(("lang", "right", "wrong"), [("en", "right", "wrong"), ("zh", "正确", "错误")])
def test_a_mistake_has_its_lines_and_both_curves(capsys, lang, right, wrong):
    code, said, _ = run(capsys, "layer_norm.no_gain", "--lang", lang)
    lines = said.splitlines()
    assert (code, "\x1b" in said) == (0, False)
    assert any(line.strip().startswith(right) and "return gain * xhat + bias" in line for line in lines)
    assert any(line.strip().startswith(wrong) and "return xhat + bias" in line for line in lines)
    assert sum(line.count("\t") == 2 for line in lines) == 21
    assert any(lines[-1].startswith(words.said(lang)) for words in KINDS.values())


def test_on_a_terminal_it_draws_without_colour(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _, said, _ = run(capsys, "no_mask", "--lang", "en")
    assert "+" in said
    assert "o" in said
    assert "\x1b" not in said
    assert not any(line.count("\t") for line in said.splitlines())


def test_each_mistake_can_be_shown(capsys):
    for effect in effects():
        assert run(capsys, effect.mistake.name, "--lang", "zh")[0] == 0


def test_json_has_curves(capsys):
    _, said, _ = run(capsys, "causal_softmax.no_mask", "--json")
    (row,) = json.loads(said)
    assert (row["name"], row["effect"]) == ("causal_softmax.no_mask", "low")
    assert len(row["curve"]["losses"]) == len(row["right_curve"]["losses"]) == 20


def test_an_unknown_name_is_an_error_in_one_line(capsys):
    code, _, said = run(capsys, "no_masc")
    assert (code, said.count("\n")) == (2, 1)
    assert "no_mask" in said
