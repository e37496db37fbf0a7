"""`byhand work`: reading an example, and being asked."""

import io

import pytest

from byhand.cli.main import main


def answer(monkeypatch, *lines):
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_list(capsys):
    assert main(["work"]) == 0
    said = capsys.readouterr().out
    assert "paper-gpt" in said
    assert "kv-cache" in said


def test_show(capsys):
    assert main(["work", "matrix-core", "--exact"]) == 0
    said = capsys.readouterr().out
    assert "S[0,0,0,1] = (1 × 1 + 0 × 0) / √2 = √2/2" in said
    assert "equations/attention_scores.py:" in said


def test_show_in_chinese(capsys):
    assert main(["work", "cross-entropy", "--lang", "zh"]) == 0
    assert "导数：交叉熵" in capsys.readouterr().out


def test_quiz_done_right(monkeypatch, capsys):
    from byhand.book.lessons.examples import make

    numbers = [n for s in make("attention-index").steps for n in s.numbers]
    answer(monkeypatch, *(f"{n.value:.4g}" for n in numbers))
    assert main(["work", "attention-index", "--quiz"]) == 0
    said = capsys.readouterr().out
    assert f"{len(numbers)} of {len(numbers)} right at the first try." in said


def test_quiz_names_the_mistake(monkeypatch, capsys):
    # matrix-core: skip Q, K and V; then a score without its root of D; then the right one
    answer(monkeypatch, "s", "s", "s", "0", "1", "0.707", "q")
    assert main(["work", "matrix-core", "--quiz"]) == 0
    said = capsys.readouterr().out
    assert "not quite: you forgot √D" in said
    assert "1 of 2 right at the first try." in said


def test_quiz_in_chinese(monkeypatch, capsys):
    answer(monkeypatch, "s", "s", "s", "0", "1", "0.707", "q")
    assert main(["work", "matrix-core", "--quiz", "--lang", "zh"]) == 0
    assert "不对：忘了除以 √D" in capsys.readouterr().out


def test_quiz_with_nonsense_and_then_nothing(monkeypatch, capsys):
    answer(monkeypatch, "hello", "", "99")
    assert main(["work", "gelu", "--quiz"]) == 0
    said = capsys.readouterr().out
    assert "that is no number" in said
    assert "0 of 2 right" in said  # the one that was shown, and the one that was tried and missed


@pytest.mark.parametrize("arguments", [["matrix-cor"], ["nothing-like-it"], ["--quiz"], ["gelu", "--lang", "de"]])
def test_wrong_input_is_one_line(arguments, capsys):
    assert main(["work", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1


def test_a_number_that_was_tried_counts_as_asked(monkeypatch, capsys):
    answer(monkeypatch, "99")
    assert main(["work", "gelu", "--quiz"]) == 0
    assert "0 of 1 right" in capsys.readouterr().out


def test_letters_have_their_parentheses(monkeypatch, capsys):
    answer(monkeypatch, "0.2", "2", "q")
    assert main(["work", "adamw", "--quiz"]) == 0
    assert "mhat[0] = m' / (1 − beta1^t)" in capsys.readouterr().out


def test_answers_from_a_pipe_that_never_ends(monkeypatch, capsys):
    class Forever(io.StringIO):
        def readline(self, size=-1):
            return "99\n"

    monkeypatch.setattr("sys.stdin", Forever())
    assert main(["work", "attention-index", "--quiz"]) == 0
    assert "0 of 6 right at the first try" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["\0" * 1000, "9" * 5000, "(" * 100_000])
def test_after_an_answer_without_end_the_number_is_asked_for_again(line, monkeypatch, capsys):
    answer(monkeypatch, "q")
    assert main(["work", "gelu", "--quiz"]) == 0
    asked = capsys.readouterr().out.splitlines()
    answer(monkeypatch, line, "q")
    assert main(["work", "gelu", "--quiz"]) == 0
    again = capsys.readouterr().out.splitlines()
    assert len(again) == len(asked) + 2  # why not, and the question
    assert again.count("   ? ") == 1
    assert sum("that is no number" in said for said in again) == 1


def test_an_answer_from_a_pipe_without_a_line_end(monkeypatch, capsys):
    class Forever(io.StringIO):
        def readline(self, size=-1):
            return "9" * min(size, 1000)

    monkeypatch.setattr("sys.stdin", Forever())
    assert main(["work", "gelu", "--quiz"]) == 0
    assert "that is no number" in capsys.readouterr().out


@pytest.mark.parametrize(
    "written", ["((((9**100)**100)**100)**100)**100", "1if 1", "１／０", "\ufffd\ufffd", "√" * 900]
)
def test_hostile_answers_are_no_numbers(written, monkeypatch, capsys):
    answer(monkeypatch, written, "q")
    assert main(["work", "gelu", "--quiz"]) == 0
    assert "that is no number" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["x" * 100_000, "\0", "\x1b[31m", "-", "gelu\n"])
def test_names_of_every_kind(name, capsys):
    assert main(["work", name]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert len(said) < 600
