"""`byhand port`: right, which mistake, or what to print next, in both languages and as JSON."""

import json

import pytest

from byhand.book.port.naming import table
from byhand.cli.main import main

RIGHT = [f"{x:.9g}" for x in table().right]
WRONGLY = next(m for m in table().mistakes if m.en == "put eps outside the root")
UNMASKED = next(m for m in table().mistakes if m.en == "forgot the mask")
WRONG = [f"{x:.7g}" for x in WRONGLY.numbers[:4]]


def run(capsys, *arguments):
    code = main(["port", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_without_numbers_it_prints_the_right_ones(capsys):
    code, said, _ = run(capsys, "--lang", "en")
    assert code == 0
    assert [line.split()[-1] for line in said.splitlines()[1:-1]] == RIGHT
    assert said.splitlines()[-1].endswith(" ".join(RIGHT[:4]))
    for model in ("llama", "microgpt"):
        assert run(capsys, "--model", model)[1].splitlines()[-1].count(f"--model {model}") == 1


@pytest.mark.parametrize(
    ("lang", "so_far", "right"),
    [("en", "Right so far. Next, print", "Right."), ("zh", "到目前为止正确。接着打印", "正确。")],
)
def test_right_numbers_are_said_to_be(capsys, lang, so_far, right):
    code, said, _ = run(capsys, *RIGHT[:2], "--lang", lang)
    assert (code, so_far in said) == (0, True)
    code, said, _ = run(capsys, *RIGHT, "--lang", lang)
    assert (code, said.splitlines()[-1]) == (0, right)


@pytest.mark.parametrize(
    ("lang", "words"),
    [("en", f"Matches: {WRONGLY.where}: {WRONGLY.en}"), ("zh", f"与此错误吻合：{WRONGLY.where}：{WRONGLY.zh}")],
)
def test_a_mistake_is_named(capsys, lang, words):
    code, said, _ = run(capsys, *WRONG, "--lang", lang)
    assert (code, said.splitlines()[-1]) == (1, words)


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", [f"Matches up to the loss: {UNMASKED.where}: {UNMASKED.en}", "One number may match by chance."]),
        ("zh", [f"到损失为止，与此错误吻合：{UNMASKED.where}：{UNMASKED.zh}", "只凭一个数，可能是巧合。"]),
    ],
)
def test_what_a_mistake_does_not_lead_to_is_said(capsys, lang, words):
    code, said, _ = run(capsys, f"{UNMASKED.numbers[0]:.9g}", "1234.567", "--lang", lang)
    assert (code, said.splitlines()[2:4]) == (1, words)
    if lang == "en":
        assert "The gradient norm does not fit its usual backward pass. Look at the backward pass." in said


@pytest.mark.parametrize(("lang", "words"), [("en", "print at least 8"), ("zh", "至少打印 8 位")])
def test_too_few_digits_are_not_called_right(capsys, lang, words):
    for numbers in (["3.92", "5.53", "2.08", "2.22"], ["3.92", "5.53"], [*RIGHT[:3], "2.2163"], ["3.9", "7.1"]):
        said = run(capsys, *numbers, "--lang", lang)[1]
        assert words in said
        assert not {"Right.", "正确。"} & set(said.splitlines()[len(numbers) :])


def test_what_is_not_known_says_where_to_look(capsys):
    code, said, _ = run(capsys, RIGHT[0], "1234.567", "--lang", "en")
    assert code == 1
    assert "The forward pass is right. Look at the backward pass." in said
    assert said.splitlines()[-1] == "Next, print the loss after one update."


def test_several_mistakes_are_listed(capsys):
    said = run(capsys, "3.8", "--lang", "en")[1].splitlines()
    assert any(line.startswith("Matches") and line.endswith(":") for line in said)
    assert run(capsys, "nan", "--lang", "en")[1].splitlines()[-1] == "Next, print the gradient norm."


def test_json_has_places_words_and_what_follows(capsys):
    code, said, _ = run(capsys, *WRONG, "--json")
    answer = json.loads(said)
    assert (code, answer["first_wrong"], answer["nearest"], answer["next"]) == (1, 0, None, None)
    assert (answer["fits"], answer["few_digits"]) == (4, False)
    assert answer["matches"] == [[{"where": WRONGLY.where, "en": WRONGLY.en, "zh": WRONGLY.zh}]]
    answer = json.loads(run(capsys, RIGHT[0], "--json")[1])
    assert (answer["first_wrong"], answer["matches"], answer["next"]) == (None, [], 1)


@pytest.mark.parametrize("word", ["nan", "-nan", "-nan(ind)", "inf", "-Infinity"])
def test_what_c_prints_for_no_number_is_taken(capsys, word):
    code, said, _ = run(capsys, *RIGHT[:4], word, "--lang", "en")
    assert code == 1
    assert "equations/cross_entropy.py:forward: did not subtract the maximum" in said


@pytest.mark.parametrize(
    ("words", "why"), [(["3,9"], "'3,9' is not a number"), (["1"] * 7, "7 numbers. Give at most 6")]
)
def test_a_bad_call_is_one_line(capsys, words, why):
    code, said, wrong = run(capsys, *words)
    assert (code, said, wrong.count("\n")) == (2, "", 1)
    assert why in wrong
