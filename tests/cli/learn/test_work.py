"""`byhand work`: reading an example, and being asked."""

import io
import json
import re

import pytest

from byhand.book.lessons.examples import TITLES, make
from byhand.book.practice.selection import questions
from byhand.book.words.language import say
from byhand.cli.main import main
from byhand.cli.terminal import interrupts
from byhand.files.user_cache import cache_folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Where a quiz is kept that was left."""
    monkeypatch.setenv("BYHAND_CACHE", str(tmp_path / "cache"))


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
    assert "S[0,0] = (Q[0,0] × K[0,0] + Q[0,1] × K[0,1]) / √D = (1 × 0 + 0 × 1) / √2 = 0" in said
    assert "S[0,1] = (1 × 1 + 0 × 0) / √2 = √2/2" in said
    assert "equations/attention_scores.py:" in said


def test_show_in_chinese(capsys):
    assert main(["work", "cross-entropy", "--lang", "zh"]) == 0
    assert "反向：交叉熵" in capsys.readouterr().out
    assert main(["work", "sampling", "--set", "k=3", "--lang", "zh"]) == 0
    assert "   抽到的词元: 0 → 1\n" in capsys.readouterr().out


def test_quiz_done_right(monkeypatch, capsys):
    numbers = [n for s in make("attention-index").steps for n in s.numbers]
    answer(monkeypatch, *(f"{n.value:.4g}" for n in numbers))
    assert main(["work", "attention-index", "--quiz"]) == 0
    said = capsys.readouterr().out
    assert f"{len(numbers)} of {len(numbers)} right at the first try." in said


def test_quiz_names_the_mistake(monkeypatch, capsys):
    # matrix-core: skip Q, K and V; then a score without its root of D; then the right one
    answer(monkeypatch, "s", "s", "s", "0", "1", "0.707", "q")
    assert main(["work", "matrix-core", "--quiz", "--all"]) == 0
    said = capsys.readouterr().out
    assert "not quite: you forgot √D" in said
    assert "1 of 2 right at the first try." in said


def test_quiz_in_chinese(monkeypatch, capsys):
    answer(monkeypatch, "s", "s", "s", "0", "1", "0.707", "q")
    assert main(["work", "matrix-core", "--quiz", "--all", "--lang", "zh"]) == 0
    assert "不对：忘了除以 √D" in capsys.readouterr().out


@pytest.mark.parametrize("written", ["0,707", "√2/2", "sqrt(2)/2", "０．７０７", "√２／２", "S[0,1] = 1/√2", "1：√2"])
def test_a_quiz_takes_numbers_as_people_write_them(written, monkeypatch, capsys):
    answer(monkeypatch, "0", written, "q")
    assert main(["work", "matrix-core", "--quiz", "--all", "--from", "4"]) == 0
    assert "2 of 2 right at the first try." in capsys.readouterr().out


def test_a_quiz_asks_for_what_teaches():
    """About 30 numbers: of each equation forward and back, of its parts, of sums, of an update."""
    lesson = make("paper-gpt")
    chosen = questions(lesson)
    labels = {say(n.label, "en") for numbers in chosen for n in numbers}
    assert 25 <= sum(map(len, chosen)) <= 40
    kinds = {(s.stem, s.is_derivative) for s in lesson.steps if s.numbers}
    asked = {(s.stem, s.is_derivative) for s, numbers in zip(lesson.steps, chosen, strict=True) if numbers}
    copies = {("residual", True), ("add_positional", True)}  # the same number again
    assert kinds - asked <= copies | {("embedding", True)}
    assert {"y[0]", "L"} <= labels
    assert any(label.startswith("μ[") for label in labels)
    assert sum(abs(n.value) > 1e-4 for numbers in chosen[1:] for n in numbers) >= sum(map(len, chosen[1:])) - 3


@pytest.mark.parametrize("name", TITLES)
def test_all_asks_for_everything_and_a_quiz_for_no_more_than_is_there(name):
    lesson = make(name)
    assert questions(lesson, every=True) == [step.numbers for step in lesson.steps]
    chosen = questions(lesson)
    assert 5 <= sum(map(len, chosen)) <= 40
    for step, numbers in zip(lesson.steps, chosen, strict=True):
        there = iter(step.numbers)
        assert all(n in there for n in numbers)  # in the step's order


def test_a_quiz_gives_its_data_before_it_asks(monkeypatch, capsys):
    answer(monkeypatch, "q")
    assert main(["work", "paper-gpt", "--quiz"]) == 0
    said = capsys.readouterr().out
    before = said[: said.index("?")]
    assert "text = [0, 1, 0, 2]" in before
    assert "   y " not in before
    assert re.search(r"\d+ of \d+ numbers", before)


def test_a_quiz_begins_at_a_step_with_what_is_known_by_then(monkeypatch, capsys):
    answer(monkeypatch, "q")
    assert main(["work", "paper-gpt", "--quiz", "--all", "--from", "12"]) == 0
    said = capsys.readouterr().out
    assert "\n12. Residual connection" in said
    assert "\n11. " not in said
    assert said.count("   A = [[") == said.count("   X = [[") == 1
    assert "W_qkv" not in said
    assert "   ? " in said


def test_an_example_is_shown_from_a_step_on(capsys):
    assert main(["work", "gelu", "--from", "2"]) == 0
    said = capsys.readouterr().out
    assert "\n2. Backward: GELU" in said
    assert "\n1. " not in said


def test_a_changed_example_says_what_the_change_changes(capsys):
    assert main(["work", "matrix-core", "--set", "W_K=W_Q", "--set", "rate=0.2", "--from", "30"]) == 0
    said = capsys.readouterr().out
    assert "Changed: W_K=W_Q, rate=0.2." in said
    assert "   L: 1.08308279 → 0.871837086" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("gelu", "--set", "x=1"),
            "--set cannot change gelu. Use it with next-word, two-tokens, paper-gpt, matrix-core, matrix-core-rows",
        ),
        (("--set", "x=1"), "--set changes nothing without an example"),
        (("matrix-core", "--set", "rate=1", "--plot"), "Leave out --plot or --set"),
        (("matrix-core", "--quiz", "--resume", "--set", "rate=1"), "--set changes nothing with --resume"),
        (("sampling", "--set", "u=1"), "u is 1, but a draw takes a number from 0 up to 1"),
    ],
)
def test_a_change_that_has_no_place_is_one_line(arguments, said, capsys):
    assert main(["work", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_quiz_on_changed_numbers_goes_on_by_a_command_with_them(monkeypatch, capsys):
    answer(monkeypatch, "q")
    assert main(["work", "matrix-core", "--quiz", "--set", "X[1]=X[0]"]) == 0
    assert 'byhand work matrix-core --set "X[1]=X[0]" --quiz --from 1' in capsys.readouterr().out
    assert not list(cache_folder().rglob("*.json"))


class Answers(io.StringIO):
    """Lines of answers, then Ctrl-C."""

    def readline(self, size=-1):
        line = super().readline(size)
        if not line:
            list(interrupts._close())  # as the thread that receives the signal does
            raise SystemExit(130)
        return line


@pytest.mark.parametrize("leave", ["q", "end", "Ctrl-C"])
def test_a_quiz_is_left_and_goes_on(leave, monkeypatch, capsys):
    numbers = [f"{n.value:.4g}" for s in make("gelu").steps for n in s.numbers]
    lines = [*numbers[:4], "99", "99", *(["q"] if leave == "q" else [])]  # the last one twice wrong
    text = "".join(f"{line}\n" for line in lines)
    monkeypatch.setattr("sys.stdin", Answers(text) if leave == "Ctrl-C" else io.StringIO(text))
    assert main(["work", "gelu", "--quiz"]) == (130 if leave == "Ctrl-C" else 0)
    said = capsys.readouterr().out
    assert "4 of 5 right at the first try." in said
    assert "byhand work gelu --quiz --resume" in said
    answer(monkeypatch, *numbers[4:])
    assert main(["work", "gelu", "--quiz", "--resume"]) == 0
    said = capsys.readouterr().out
    assert "Continuing at step 1: 4 of 4 right so far." in said
    assert f"{len(numbers)} of {len(numbers)} right at the first try." in said
    assert main(["work", "gelu", "--quiz", "--resume"]) == 2  # it is done
    assert "no quiz of gelu was left" in capsys.readouterr().err


def test_a_quiz_of_everything_goes_on_as_one(monkeypatch, capsys):
    answer(monkeypatch, "s", "q")
    assert main(["work", "attention", "--quiz", "--all"]) == 0
    answer(monkeypatch, "q")
    assert main(["work", "attention", "--quiz", "--resume", "--lang", "zh"]) == 0
    said = capsys.readouterr().out
    assert "只问其中" not in said
    assert "\n2. 因果 softmax" in said
    assert "\n   P[0,0]\n   ? " in said


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"step": 99}', b'{"step": "1"}', b'{"steps": 1}', b'{"done": -1}', b"\xff", b"9" * 5000]
)
def test_a_quiz_that_was_kept_badly_does_not_go_on(content, capsys):
    path = cache_folder() / "quiz" / "gelu.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert main(["work", "gelu", "--quiz", "--resume"]) == 2
    assert capsys.readouterr().err.startswith("error: no quiz of gelu was left unfinished.")


def test_where_nothing_can_be_kept_the_step_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BYHAND_CACHE", str(tmp_path / "file"))
    answer(monkeypatch, "s", "q")
    assert main(["work", "gelu", "--quiz"]) == 0
    assert "byhand work gelu --quiz --from 2" in capsys.readouterr().out


def test_what_is_kept(monkeypatch):
    answer(monkeypatch, "1", "q")
    assert main(["work", "gelu", "--quiz"]) == 0
    kept = json.loads((cache_folder() / "quiz" / "gelu.json").read_text())
    assert kept == {"step": 1, "done": 0, "asked": 0, "right": 0, "every": False}


def test_quiz_with_nonsense_and_then_nothing(monkeypatch, capsys):
    answer(monkeypatch, "hello", "", "99")
    assert main(["work", "gelu", "--quiz"]) == 0
    said = capsys.readouterr().out
    assert "not a number" in said
    assert "0 of 2 right" in said  # one number was shown, another tried and missed


@pytest.mark.parametrize(
    "arguments",
    [
        ["matrix-cor"], ["nothing-like-it"], ["--quiz"], ["gelu", "--lang", "de"], ["--from", "2"],
        ["gelu", "--quiz", "--from", "0"], ["gelu", "--quiz", "--from", "3"], ["gelu", "--all"], ["gelu", "--resume"],
        ["gelu", "--quiz", "--resume", "--from", "2"], ["adamw", "--quiz", "--resume"], ["2 × 2"],
    ],
)  # fmt: skip
def test_wrong_input_is_one_line(arguments, refusal):
    refusal("work", *arguments)


def test_a_number_that_was_tried_counts_as_asked(monkeypatch, capsys):
    answer(monkeypatch, "99")
    assert main(["work", "gelu", "--quiz"]) == 0
    assert "0 of 1 right" in capsys.readouterr().out


def test_a_wrong_number_is_answered_by_a_hint_and_the_next_by_a_larger_one(monkeypatch, capsys):
    answer(monkeypatch, "0.2", "77", "77", "78", "q")
    assert main(["work", "adamw", "--quiz"]) == 0
    first, second, third = capsys.readouterr().out.partition("m̂_t[0]\n")[2].split("\n   m̂_t[0]\n")[:3]
    assert first.splitlines()[1].strip() == "in letters: m̂_t[0] = m_t / (1 − β_1ᵗ)"
    assert "you gave this number before" in second
    assert second.splitlines()[1].strip() == "in numbers: 0.2 / 0.1"
    assert "not quite" in third
    assert len(third.splitlines()) == 1


def test_a_step_in_the_middle_is_given_what_it_reads_and_no_more(monkeypatch, capsys):
    """Also arrays that the forward pass saved; an array is printed once."""
    answer(monkeypatch, *"ssq")
    assert main(["work", "paper-gpt", "--quiz", "--from", "21"]) == 0
    said = capsys.readouterr().out
    printed = re.findall(r"(?m)^   (\S+)\s+= \[", said)
    assert printed == ["p", "y", "X_norm", "W_lm", "rstd_t"]


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
    assert sum("not a number" in said for said in again) == 1


def test_an_answer_from_a_pipe_without_a_line_end(monkeypatch, capsys):
    class Forever(io.StringIO):
        def readline(self, size=-1):
            return "9" * min(size, 1000)

    monkeypatch.setattr("sys.stdin", Forever())
    assert main(["work", "gelu", "--quiz"]) == 0
    assert "not a number" in capsys.readouterr().out


@pytest.mark.parametrize(
    "written", ["((((9**100)**100)**100)**100)**100", "1if 1", "１／０", "\ufffd\ufffd", "√" * 900]
)
def test_hostile_answers_are_no_numbers(written, monkeypatch, capsys):
    answer(monkeypatch, written, "q")
    assert main(["work", "gelu", "--quiz"]) == 0
    assert "not a number" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["x" * 100_000, "\0", "\x1b[31m", "-", "gelu\n"])
def test_names_of_every_kind(name, refusal):
    refusal("work", name)
