"""`byhand worksheet` and `byhand grade`, from printing to marks."""

import json
import os
import sys

import pytest

from byhand.book.practice.sheets import make
from byhand.cli.main import main
from hostile.outcome import soon


def filled(path, answers):
    """Write answers into the blanks of a sheet, as a person would."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        for number, answer in answers.items():
            if line.startswith(f"- **{number}**"):
                lines[i] = line.replace("____", answer)
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_from_sheet_to_marks(tmp_path, capsys):
    assert main(["worksheet", "--topic", "attention", "--seed", "7", "--out", str(tmp_path)]) == 0
    written = sorted(p.name for p in tmp_path.iterdir())
    assert written == [f"attention-7.en{end}" for end in (".html", ".key.html", ".key.md", ".md")]
    answers = {n: f"{q.value:.4g}" for n, q in make("attention", 7).questions().items()}
    answers["1.1"] = f"{2 * make('attention', 7).questions()['1.1'].value:.4g}"
    sheet = filled(tmp_path / "attention-7.en.md", answers)
    capsys.readouterr()
    assert main(["grade", sheet]) == 0
    said = capsys.readouterr().out
    assert "1. Scaled dot-product scores: 8 of 9" in said
    assert "forgot √D" in said
    assert "23 of 24 right" in said


def test_a_sheet_that_was_filled_in_is_not_written_over(tmp_path, capsys):
    arguments = ["worksheet", "--topic", "attention", "--seed", "7", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert main(arguments) == 0  # nothing would change
    sheet = tmp_path / "attention-7.en.md"
    filled(sheet, {"1.1": "0.5"})
    work = sheet.read_bytes()
    (tmp_path / "attention-7.en.key.md").unlink()
    assert main(arguments) == 2
    assert "attention-7.en.md exists already and differs" in capsys.readouterr().err
    assert sheet.read_bytes() == work
    assert not (tmp_path / "attention-7.en.key.md").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_a_sheet_is_not_written_through_a_link(tmp_path):
    (tmp_path / "attention-7.en.key.html").symlink_to(tmp_path / "elsewhere")
    assert main(["worksheet", "--topic", "attention", "--seed", "7", "--out", str(tmp_path)]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["attention-7.en.key.html"]


def test_chinese(tmp_path, capsys):
    assert main(["worksheet", "--topic", "adamw", "--lang", "zh", "--out", str(tmp_path)]) == 0
    sheet = filled(tmp_path / "adamw-1.zh.md", {"1.1": "99"})
    capsys.readouterr()
    assert main(["grade", sheet, "--lang", "zh"]) == 0
    said = capsys.readouterr().out
    assert "写的是 99" in said
    assert "答对 0 题" in said
    assert main(["grade", sheet]) == 0
    assert capsys.readouterr().out == said, "the sheet says its language"
    assert main(["grade", sheet, "--lang", "en"]) == 0
    assert "right (0 %)" in capsys.readouterr().out


def test_plain_answers_with_topic_and_seed(tmp_path, capsys):
    answers = tmp_path / "answers.txt"
    answers.write_text("1.1 = 1\n", encoding="utf-8")
    assert main(["grade", str(answers), "--topic", "backprop", "--seed", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["asked"] == 40


def test_topics(capsys):
    assert main(["worksheet"]) == 0
    assert "cross-entropy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (b"1.1 = 2", [], "does not say which sheet"),
        (b"", ["--topic", "full", "--seed", "1"], "holds no answers"),
        (b"\xff\xfe1.1", [], "not UTF-8"),
        (b"1.1 = 2", ["--topic", "ful", "--seed", "1"], "Did you mean full"),
        (b"77.1 = 2", ["--topic", "full", "--seed", "1"], "have a number 77.1"),
        (b"1.1 = 2", ["--topic", "full", "--seed", "-3"], "seed"),
        (b"1.1 = 2", ["--topic", "full", "--seed", "9" * 20], "seed"),
        (b"1.1 = 2", ["--topic", "full", "--seed", "9" * 5000], "--seed 999999999…999999999 has 5,000 digits"),
        (b"byhand worksheet: topic=full seed=" + b"9" * 5000 + b"\n1.1 = 2", [], "seed has more than 18 digits"),
        ("byhand worksheet: topic=full seed=١\n1.1 = 2".encode(), [], "seed '١' is not an integer"),
        (b"byhand worksheet: topic=" + b"x" * 9000 + b" seed=1\n1.1 = 2", [], "there is no topic"),
        (b"9." + b"1" * 900_000 + b" = 2", ["--topic", "full", "--seed", "1"], "have a number 9.111"),
        (b"x" * (1 << 20) + b"x", [], "more than 1,048,576 bytes"),
    ],
)
def test_wrong_answers_file(tmp_path, content, arguments, words, refusal):
    path = tmp_path / "answers.md"
    path.write_bytes(content)
    assert words in refusal("grade", str(path), *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["grade", "nowhere.md"], "cannot read nowhere.md"),
        (["worksheet", "--topic", "adamv"], "Did you mean adamw"),
        (["worksheet", "--topic", "adamw", "--seed", "seven"], "seed"),
        (["worksheet", "--topic", "adamw", "--out", __file__], "cannot write into"),
    ],
)
def test_wrong_input_is_one_line(arguments, words, refusal):
    assert words in refusal(*arguments)


@pytest.mark.parametrize(
    "answer",
    [
        *("10**100*" * 12 + "1", "((((9**100)**100)**100)**100)**100", "1+" * 20_000 + "1", "(" * 9000 + "1"),
        *("9" * 5000, "1" + " " * 200_000 + "sqrt(2", "√" * 100_000, "1," * 100_000, "0" * 100_000 + "x"),
    ],
    ids=lambda answer: answer[:8],
)
def test_a_hostile_answer_is_no_number(tmp_path, answer, capsys):
    path = tmp_path / "answers.md"
    path.write_text(f"1.1 = {answer}\n", encoding="utf-8")
    with soon(answer):
        assert main(["grade", str(path), "--topic", "full", "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert "(not a number: write 0.33, 1/3 or sqrt(2)/2)" in said
    assert max(map(len, said.splitlines())) < 300


def test_an_answer_does_not_steer_the_terminal(tmp_path, capsys):
    path = tmp_path / "answers.md"
    path.write_text("1.1 = \x1b[31m\x07\u202e\n", encoding="utf-8")
    assert main(["grade", str(path), "--topic", "full", "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert r"\x1b[31m\x07\u202e" in said
    assert "\x1b" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_a_fifo_is_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "fifo")
    assert main(["grade", str(tmp_path / "fifo")]) == 2
    assert main(["grade", "/dev/zero"]) == 2
    assert "it is not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["", "\0", "x" * 5000, "\udcff", "."])
def test_paths_of_every_kind(path, tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    said = refusal("grade", path)
    assert said.startswith("error: cannot read ")
    assert "None" not in said
    assert len(said) < 400
    if path in ("\0", "x" * 5000):
        refusal("worksheet", "--topic", "adamw", "--out", path)
