"""`byhand where` as a reader types it."""

import json

import pytest

from byhand.book.words.language import preferred
from byhand.cli.learn.where import CHINESE, Options
from byhand.cli.main import main
from where.others import absent as absent_ones


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


@pytest.mark.parametrize("query", ["∂L/∂z", "ｃｒｏｓｓ＿ｅｎｔｒｏｐｙ"])
def test_derivatives_and_full_width_letters(query, capsys):
    assert main(["where", query]) == 0
    assert "(cross_entropy)" in capsys.readouterr().out.splitlines()[0]


def test_json(capsys):
    assert main(["where", "self-attention", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found[0]["name"] == "causal_self_attention"
    assert found[0]["symbols"][0]["shape"] == "(B, T, C)"


def test_everything(capsys):
    assert main(["where"]) == 0
    said = capsys.readouterr().out
    assert said.index("embedding") < said.index("layer_norm") < said.index("cross_entropy")
    assert said.index("n_heads") < said.index("learn-by-hand") < said.index("work paper-gpt") < said.index("dropout")
    assert all(line == line.rstrip() for line in said.splitlines())


@pytest.mark.parametrize(("lang", "lacks"), [("en", "not in this model"), ("zh", "本模型没有")])
def test_what_the_model_lacks_says_so_and_what_stands_in_its_place(lang, lacks, capsys):
    absent = absent_ones()[0]
    assert main(["where", absent.name, "--lang", lang]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].endswith(f"({absent.name}): {lacks}" if lang == "en" else lacks)
    assert all(f"({name})" in said for name in absent.see)


def test_a_setting_shows_its_flag_a_lesson_its_command_and_a_guide_its_pages(capsys):
    for query, shown in (
        ("n_head", "byhand train --n-heads 1\n"),
        ("work kv-cache", "byhand work kv-cache\n"),
        (
            "how does backward work",
            "guides/autograd-and-memory.md:1  docs/guides/autograd-and-memory.zh-CN.md:1\n",
        ),
    ):
        assert main(["where", query, "--limit", "1"]) == 0
        assert shown in capsys.readouterr().out


def test_json_of_what_the_model_lacks(capsys):
    assert main(["where", "dropout", "--json", "--limit", "1"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["name"], found["forward"]) == ("absent", "dropout", None)
    assert len(found["says"]) == len(found["says_zh"]) == 2
    assert "--weight-decay" in found["see"]


def test_no_match_names_the_nearest_and_exits_with_1(capsys):
    assert main(["where", "sftmxxx"]) == 1
    assert "softmax" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["softmax", "--lang", "fr"], ["softmax", "--limits", "3"], ["softmax", "--limit", "0"]]
)
def test_bad_flags(arguments, refusal):
    refusal("where", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-log p_y"],
        ["--", "-log p_y"],
        ["-log", "p_y"],
        ["-log p_y", "--limit", "1"],
        ["--limit=1", "-log p_y"],
        ["--log p_y"],
        ["-sum y log p"],
        ["--", "-log", "p"],
        ["--lang", "zh", "-sum y log p"],
        ["\u2212log p_y"],
    ],
)
def test_a_query_may_begin_with_a_minus(arguments, capsys):
    assert main(["where", *arguments]) == 0
    assert "(cross_entropy)" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("query", [["--", "--limit"], ["--", "--json", "--limit=9", "--help"]])
def test_all_behind_two_hyphens_is_the_query(query, capsys):
    main(["where", *query])
    said = capsys.readouterr()
    assert "error" not in said.err
    assert "usage" not in said.out


@pytest.mark.parametrize("query", ["-∂L", "-", "--", "-1", "-h2", "--qq zz"])
def test_no_query_is_a_flag_unless_it_looks_like_one(query, capsys):
    first = (main(["where", "--", query]), capsys.readouterr())
    assert first[0] in (0, 1)
    assert query == "--" or (main(["where", query]), capsys.readouterr()) == first


@pytest.mark.parametrize("query", ["x" * 120_000, "\udcff\udcfe" * 40_000, "\0" * 1001])
def test_a_query_of_any_length_is_one_short_line(query, refusal):
    assert refusal("where", query).startswith("error: the query has ")


def test_what_nothing_answers_is_shown_without_steering_the_terminal(capsys):
    assert main(["where", "\x1b[31mxyzzy\n\u202e"]) == 1
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert said.count("\n") == 1


def test_a_question_is_answered_in_its_language(capsys):
    assert main(["where", "交叉熵"]) == 0
    assert "前向" in capsys.readouterr().out
    assert main(["where", "交叉熵", "--lang", "en"]) == 0
    assert "forward" in capsys.readouterr().out
    assert main(["where", "cross-entropy"]) == 0
    assert "forward" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("environment", "lang"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.UTF-8", "LC_MESSAGES": "en_GB.UTF-8"}, "en"),
        ({"LANG": "en_GB.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LC_MESSAGES": "zh_CN.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "zh"),
    ],
)
def test_each_command_of_two_languages_speaks_that_of_the_environment(environment, lang, monkeypatch, capsys):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for command in (["where", "softmax"], ["work"], ["work", "top-p"], ["worksheet"]):
        main(command)
        assert bool(CHINESE.search(capsys.readouterr().out)) == (lang == "zh"), command
    assert (preferred(), Options().lang) == (lang, None)
    main(["where", "softmax", "--lang", "en"])
    assert not CHINESE.search(capsys.readouterr().out)
