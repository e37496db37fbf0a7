"""Pictures that follow a lesson show the lesson's numbers."""

import re
from collections import Counter

import numpy as np
import pytest
from tests.book.pictures.drawn import numbers, said, texts

from byhand.book.lessons.examples import make
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures import PICTURES
from byhand.book.pictures.cache_growing import decoded
from byhand.book.pictures.gpt_in_a_minute import LETTERS, percent, values
from byhand.book.pictures.passes import in_line, pass_of
from byhand.book.pictures.training_loop import one_update

CORE = {False: "core-forward", True: "core-backward"}


def of_lesson(name):
    """Return the numbers of a lesson by label, and those given, each as its value."""
    lesson = make(name)
    return {n.label: n.value for step in lesson.steps for n in step.numbers}, dict(lesson.given), lesson


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("back", [False, True])
def test_the_cores_graphs_show_the_lessons_values_and_gradients(back, lang):
    found, given, _ = of_lesson("matrix-core")
    shown, checked = said(CORE[back], lang), 0
    for label, value in found.items():
        if not (place := re.fullmatch(r"(∂?)(\w+)\[([\d,]+)\]", label)) or bool(place[1]) != back:
            continue
        name, index = place[1] + place[2], [int(i) for i in place[3].split(",")]
        if name in shown and name != "loss":
            *_, i, j = index
            assert shown[name][2 * i + j] == decimal(value, 4), label
            checked += 1
    assert checked == (34 if back else 26)
    if not back:
        assert shown["loss"] == [decimal(found["loss"], 4)]
        for name in ("X", "W_Q", "W_K", "W_V"):
            assert shown[name] == numbers(given[name])
    words = Counter(texts(CORE[back], lang))
    assert not Counter(n for several in shown.values() for n in several) - words


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_attention_flow_shows_the_cores_matrices(lang):
    found, _, _ = of_lesson("matrix-core")
    arrays, words = pass_of("matrix-core").trace.values, texts("attention-flow", lang)
    for name in "QKVSAO":
        for i, j in np.ndindex(2, 2):
            value = decimal(found[f"{name}[0,0,{i},{j}]"], 4)
            assert value in words
            assert value == in_line(arrays[name]).replace("[", "").replace("]", "").split(", ")[2 * i + j]


def test_the_front_picture_shows_the_paper_gpts_probabilities():
    _, chances, drawn = values()
    lesson = make("paper-gpt")
    logits = next(step for step in lesson.steps if step.results and step.results[0][0] == "logits")
    last = np.array([n.value for n in logits.numbers if n.label.startswith("logits[0,2,")])
    np.testing.assert_allclose(chances, np.exp(last) / np.exp(last).sum(), rtol=1e-12)
    words = texts("gpt-in-a-minute")
    for letter, chance in zip(LETTERS, chances, strict=True):
        assert f"{letter} {percent(chance)}" in words
    assert chances[drawn] == max(chances)
    assert words.count(LETTERS[drawn]) == 2  # in the text, and where it is appended


def test_the_cache_holds_the_lessons_keys_and_values():
    found, _, lesson = of_lesson("kv-cache")
    results = {name: numbers(text) for step in lesson.steps for name, text in step.results}
    for position, step in enumerate(decoded()):
        name = f"token{position}.blocks.0.attn."
        qkv = results[name + "qkv"]
        for rows, first in ((step.keys, 4), (step.values, 8)):  # q, k, v of four columns; head 0 has two
            for mine, theirs in zip(rows[-1], qkv[first : first + 2], strict=True):
                assert float(mine.replace("−", "-")) == pytest.approx(float(theirs.replace("−", "-")), rel=5e-3)
        assert len(step.keys) == len(step.values) == len(step.scores) == position + 1
        for s, score in enumerate(step.scores):
            assert score == decimal(found[f"{name}scores[0,0,0,{s}]"], 3)
    counted = {n.label.en: n.value for step in lesson.steps for n in step.numbers if hasattr(n.label, "en")}
    total = texts("cache-growing")[-1]
    assert numbers(total) == [str(counted["rows with the cache"]), str(counted["rows without a cache"])]


@pytest.mark.parametrize(("name", "marked"), [("memory-rows", "[1,2,3]"), ("memory-heads", "q[1,0,2,1]")])
def test_offsets_are_those_of_the_lessons(name, marked):
    lesson = make("attention-index" if "heads" in name else "memory-layout")
    found = {n.label.en: n for step in lesson.steps for n in step.numbers if hasattr(n.label, "en")}
    place = marked if marked.startswith("q") else f"x{marked}"
    number = found[f"offset of {place}"]
    assert f"{place}: {number.expression} = {number.value:g}" in texts(name)
    assert str(int(number.value)) in texts(name)


def test_the_way_back_is_the_lessons():
    lesson = make("memory-layout")
    back = {n.label: n.value for n in lesson.steps[-1].numbers}
    line = texts("memory-batch")[-1]
    assert line.endswith(f"[{back['b']},{back['t']},{back['c']}]")
    assert line.startswith(f"{numbers(lesson.steps[-1].title.en)[0]} =")


def test_the_loop_shows_the_lessons_loss_before_and_nearly_after():
    losses = [n.value for s in make("paper-gpt-4").steps for n in s.numbers if n.label == "loss"]
    update = one_update()
    assert update.before == decimal(losses[0], 4)
    assert float(update.after) == pytest.approx(losses[1], abs=1e-3)  # AdamW's first step hardly knows the norm
    assert update.after in PICTURES["training-loop"].alt("en")
