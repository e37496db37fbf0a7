"""Pictures that follow a lesson show the lesson's numbers."""

from collections import Counter

import numpy as np
import pytest

from book.pictures.drawn import numbers, said, texts
from byhand.book.lessons.examples import make
from byhand.book.numbers.arithmetic import decimal
from byhand.book.pictures.paper_gpt import SHOWN, VOCABULARY, decoded, one_update, percent, values
from pictures import PICTURES

CORE = {False: "core-forward", True: "core-backward"}


def arrays_of(lesson):
    """Return the arrays of a lesson's steps by name."""
    return {array.name: np.asarray(array.data, float) for step in lesson.steps for array in step.arrays}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("back", [False, True])
def test_the_cores_graphs_show_the_lessons_values_and_gradients(back, lang):
    lesson = make("matrix-core")
    arrays, given, shown = arrays_of(lesson), dict(lesson.given), said(CORE[back], lang)
    for name, found in shown.items():
        if name in ("X", "W_Q", "W_K", "W_V"):
            assert found == numbers(given[name])
        elif name != "∂L":
            array = arrays["loss" if name == "L" else name]
            assert found == [decimal(value, 5) for value in array.ravel().tolist()], name
    assert len(shown) == (11 if back else 12)
    words = Counter(texts(CORE[back], lang))
    assert not Counter(n for several in shown.values() for n in several) - words


def test_the_front_picture_shows_the_paper_gpts_probabilities():
    _, chances, drawn = values()
    last = arrays_of(make("paper-gpt"))["logits"][-1]
    np.testing.assert_allclose(chances, np.exp(last) / np.exp(last).sum(), rtol=1e-12)
    words = texts("gpt-in-a-minute")
    for word, chance in zip(VOCABULARY, chances, strict=True):
        assert f"{word.en} {percent(chance)}" in words
    assert chances[drawn] == max(chances)
    assert words.count(VOCABULARY[drawn].en) == 1  # where it is appended: the text has it no more than once


def test_the_cache_holds_the_lessons_keys_and_values():
    lesson = make("kv-cache")
    arrays = arrays_of(lesson)
    for position, step in enumerate(decoded()):
        k, v, scores = (arrays[f"token{position}.attn.{name}"].ravel().tolist() for name in ("k", "v", "scores"))
        assert not any(k[SHOWN:] + v[SHOWN:])
        k, v = k[:SHOWN], v[:SHOWN]
        for mine, theirs in ((step.keys[-1], k), (step.values[-1], v), (step.scores, scores)):
            assert mine == [decimal(number, 3) for number in theirs]
        assert len(step.keys) == len(step.values) == len(step.scores) == position + 1
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
    arrays = arrays_of(make("paper-gpt"))
    before, after, *_ = one_update()
    assert before == decimal(arrays["loss"].item(), 4)
    # AdamW's first step hardly knows the norm.
    assert float(after) == pytest.approx(arrays["after.loss"].item(), abs=1e-3)
    assert after in PICTURES["training-loop"].alt("en")
