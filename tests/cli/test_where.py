"""`byhand where` as a reader types it."""

import json

import pytest

from byhand.cli.main import main


def test_answer_in_english(capsys):
    assert main(["where", "causal", "mask"]) == 0
    said = capsys.readouterr().out
    assert "Causal softmax" in said
    assert "equations/causal_softmax.py:" in said
    assert "LaTeX" in said


def test_answer_in_chinese(capsys):
    assert main(["where", "注意力", "--lang", "zh"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("因果自注意力")
    assert "前向" in said


def test_json(capsys):
    assert main(["where", "w_qkv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0]["name"] == "causal_self_attention"
    assert found[0]["symbols"][0]["shape"] == "(B, T, C)"


def test_everything(capsys):
    assert main(["where"]) == 0
    said = capsys.readouterr().out
    assert said.index("embedding") < said.index("layer_norm") < said.index("cross_entropy")


def test_no_match_names_the_nearest_and_exits_with_1(capsys):
    assert main(["where", "sftmxxx"]) == 1
    assert "softmax" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["softmax", "--lang", "fr"], ["softmax", "--limits", "3"], ["softmax", "--limit", "0"]]
)
def test_bad_flags(arguments, capsys):
    assert main(["where", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
