"""The worked examples: their numbers are right, their mistakes wrong, their exact forms exact."""

import math
import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from byhand.book.lessons.examples import (
    TITLES,
    classifier,
    find,
    kv_cache,
    make,
    matmul,
    next_word,
    numbers,
    paper_gpt,
    post_norm,
)
from byhand.book.lessons.letters import called
from byhand.book.lessons.naming import place
from byhand.book.lessons.text import text
from byhand.book.numbers.closed_form import value
from byhand.book.numbers.exact import Exact
from byhand.book.practice.checking import agrees, check, tidy
from byhand.book.words.language import say
from byhand.engine import registry
from byhand.equations.softmax import softmax
from byhand.errors import ByhandError
from every import every


def found(name, label, nth=-1, exact=False):
    """The value of a label; by default the last, which is the total where shares were added up."""
    return [n.value for s in make(name, exact).steps for n in s.numbers if say(n.label, "en") == label][nth]


def shows(name, letter, expected, digits=6):
    """Every element of an array of the lesson is the stated one, to the stated digits."""
    for index, x in np.ndenumerate(np.array(expected)):
        label = f"{letter}[{','.join(map(str, index))}]"
        assert abs(found(name, label) - x) <= 0.5000001 * 10**-digits, label


def test_matrix_core():
    name = "matrix-core"
    shows(name, "P", [[0.330238, 0.669762], [0.669762, 0.330238]])
    shows(name, "O", [[0.330238, 1], [0.669762, 1]])
    assert found(name, "L") == pytest.approx(1.083083, abs=5e-7)
    shows(name, "∂z", [-0.661450, 0.661450])
    shows(name, "∂W_Q", [[0.103450, -0.103450], [0, 0]])
    shows(name, "∂W_K", [[-0.103450, 0], [0.103450, 0]])
    shows(name, "∂W_V", [[-0.218436, 0.218436], [-0.443014, 0.443014]])
    shows(name, "W_Q'", [[1 - 0.010345, 0.010345], [0, 1]])
    assert found(name, "L'") < found(name, "L")


def test_matrix_core_with_both_rows():
    name = "matrix-core-rows"
    assert found(name, "L") == pytest.approx(0.812341, abs=5e-7)
    shows(name, "∂W_Q", [[0.051725, -0.051725], [-0.032702, 0.032702]])
    shows(name, "∂W_K", [[-0.051725, 0.032702], [0.051725, -0.032702]])
    shows(name, "∂W_V", [[0.030823, -0.030823], [-0.152457, 0.152457]])


def test_two_tokens_have_the_matrix_cores_numbers_without_the_shift():
    plain, core = make("two-tokens").steps, make("matrix-core").steps
    for one, other in zip(plain, core, strict=True):
        for array, same in zip(one.arrays, other.arrays, strict=True):
            assert np.array_equal(array.data, same.data), array.label
    said = [say(n.expression, "en") for step in plain for n in step.numbers]
    assert "1 / 3.028115" in said
    assert "−ln(0.33855)" in said
    assert not any("− m" in say(step.formula, "en") for step in plain if not step.is_derivative)
    assert registry["softmax"] is softmax, "the equation itself stays"


def test_matrix_core_exercise():
    name = "matrix-core-exercise"
    assert found(name, "L") == pytest.approx(0.356675, abs=5e-7)
    shows(name, "∂z", [-0.3, 0.3])
    shows(name, "W_V'", [[1.0099, 0.9901], [0.0201, 0.9799]], digits=4)


def test_paper_gpt_begins_as_the_walk_through():
    name = "paper-gpt"
    shows(name, "X", [[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, -1]], digits=12)
    shows(name, "H", [[1, -1, -1, 1], [-(3**-0.5), 3**0.5, -(3**-0.5), -(3**-0.5)], [2**0.5, 0, 0, -(2**0.5)]])


def test_next_word_has_the_scores_of_the_gpt_on_paper():
    name = "next-word"
    (z,) = [s for s in make("paper-gpt").steps if any(say(n.label, "en") == "Z[2,0]" for n in s.numbers)][:1]
    last = [n.value for n in z.numbers if say(n.label, "en").startswith("Z[2,")]
    assert [round(x, 2) for x in last] == [value(x) for x in next_word.SCORES]
    e = np.exp([-0.15, -0.17, 1.56])
    p = e / e.sum()
    shows(name, "p", p, digits=12)
    assert found(name, "L'") < found(name, "L") == pytest.approx(-math.log(p[2]))
    shows(name, "∂z", p - [0, 0, 1], digits=12)
    shows(name, "z'", [-0.15 - p[0], -0.17 - p[1], 1.56 - (p[2] - 1)], digits=12)


def test_softmax():
    name = "softmax"
    shows(name, "p", [1 / 8, 1 / 4, 5 / 8], digits=12)
    assert [found(name, f"∂z[{i}]") for i in range(3)] == pytest.approx([7 / 8, -1 / 4, -5 / 8])
    assert [found(name, f"∂z_3[{i}]") for i in range(3)] == [0, 0, 0]
    e = np.exp([-1.0, 0.0, -2.0])
    shows(name, "p_2", e / e.sum(), digits=12)


def test_attention():
    name = "attention"
    shows(name, "P", [[1, 0, 0], [1 / 4, 3 / 4, 0], [1 / 4, 1 / 8, 5 / 8]], digits=12)
    shows(name, "Y", [[4, 0], [7, 6], [2, 6]], digits=12)
    shows(name, "∂S", [[0, 0, 0], [-1.5, 1.5, 0], [0.5, 0.75, -1.25]], digits=12)
    shows(name, "∂V", [[5 / 4, -3 / 4], [1 / 8, 3 / 4], [5 / 8, 0]], digits=12)


def test_residual():
    name = "residual"
    shows(name, "X'", [4, -0.5], digits=12)
    shows(name, "∂X", [1 + 2.5, 2 + 2], digits=12)
    assert found(name, "∂g_0[0]") == pytest.approx(0.01)
    assert found(name, "∂h_0[0]") == pytest.approx(1.21)


def test_rotary():
    name = "rotary"
    shows(name, "y", [[math.cos(t), math.cos(t / 2), math.sin(t), math.sin(t / 2)] for t in range(3)], digits=12)
    shows(name, "S", [[(math.cos(t - s) + math.cos((t - s) / 2)) / 2 for s in range(3)] for t in range(3)], 12)
    shows(name, "y_2", [[math.cos(t) - math.sin(t), math.cos(t) + math.sin(t), 0, 0] for t in range(3)], digits=12)
    shows(name, "S_2", [[math.cos(t - s) for s in range(3)] for t in range(3)], digits=12)
    differences = [n for s in make(name).steps for n in s.numbers if say(n.label, "en").startswith("Δ")]
    assert [n.value for n in differences] == [0] * 6
    sin, cos = math.sin(1), math.cos(1)  # pair 0 of row 1 turned back by 1, pair 1 of row 2 by 2 / 2
    shows(name, "∂x", [[1, 0, 0, 0], [sin, 0, cos, 0], [0, sin, 0, cos]], digits=12)


def test_embedding():
    name = "embedding"
    shows(name, "X", [[2.5, 5], [1, 4.5], [1.5, 6]], digits=12)
    shows(name, "∂W_te", [[0, 0], [3, 4], [6, -4], [0, 0]], digits=12)
    shows(name, "E", [[2, 5], [1, 4], [2, 5]], digits=12)  # the last ones: by one-hot rows


def test_matmul():
    name = "matmul"
    a, b, d = (np.array(x, dtype=float) for x in (matmul.A, matmul.B, matmul.D_Y))
    shows(name, "Y", a @ b, digits=12)
    shows(name, "∂A", d @ b.T, digits=12)
    shows(name, "∂B", a.T @ d, digits=12)
    rows, d_z = (np.array(x, dtype=float) for x in (matmul.ROWS, matmul.D_Z))
    shows(name, "∂W", rows.T @ d_z, digits=12)
    shows(name, "∂b", d_z.sum(0), digits=12)


@every(TITLES)
def test_a_step_says_what_it_is_for_and_why(name):
    """Every step, in both languages, but those that only list what other lessons work out."""
    for step in make(name).steps:
        if step.title is kv_cache.ALONE:
            continue
        for words in (step.goal, step.why):
            assert words, step.title.en
            assert re.search(r"[\u4e00-\u9fff]", words.zh)
            assert not re.search(r"[\u4e00-\u9fff]", words.en)


def test_a_reason_is_told_once():
    said = text(make("paper-gpt"))
    assert said.count("     Why: X_norm[t,i] (row t, column i) is multiplied by W_lm[i,j] in Z[t,j]") == 1
    assert said.count("Backward: Linear layer") == 5


def test_a_reason_is_about_what_the_step_makes():
    said = [step.why.en for step in make("matrix-core").steps if step.is_derivative and step.why]
    assert "In column j of the result, O[k,j] is multiplied by e_0[k], so ∂O[k,j] = e_0[k] × ∂z[j]." in said
    assert not [words for words in said if "∂X" in words or "∂e_0" in words or "bias" in words]


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("cross-entropy", "cross-entropy"), ("cross_entropy", "cross-entropy"), ("Cross Entropy", "cross-entropy"),
        ("交叉熵", "cross-entropy"), ("交叉熵及其梯度", "cross-entropy"), ("注意力", "attention"),
        ("残差", "residual"), ("嵌入", "embedding"), ("矩阵乘法", "matmul"), ("层归一化", "layer-norm"),
        ("LayerNorm", "layer-norm"), ("Softmax", "softmax"), ("纸上的 GPT", "paper-gpt"),
        ("Rotary positions", "rotary"), ("旋转位置编码", "rotary"), ("键值缓存", "kv-cache"),
        ("Two steps of AdamW", "adamw"),
    ],
)  # fmt: skip
def test_titles_in_both_languages_are_names(asked, name):
    assert find(asked) == name


@every(TITLES)
def test_every_title_leads_to_its_lesson(name):
    assert find(TITLES[name].en) == find(TITLES[name].zh) == name


def test_a_part_of_several_titles():
    with pytest.raises(ByhandError, match=r"several worked examples\. Use one of matrix-core, matrix-core-rows"):
        find("2 × 2")


def test_classifier():
    name = "classifier"
    shows(name, "h", [[0, 3], [3, 0], [1, 1], [1, 1]], digits=12)
    shows(name, "z", [[math.log(8), 0]] * 2 + [[math.log(4), 0]] * 2, digits=12)
    assert found(name, "L") == pytest.approx((math.log(9 / 8) + math.log(5)) / 2, rel=1e-12)
    shows(name, "∂b_2", [31 / 90, -31 / 90], digits=12)
    shows(name, "∂W_2", [[19 / 60, -19 / 60]] * 2, digits=12)
    wrong, right = 1 / 5, 1 / 36  # the gradient of a picture classified wrongly, and of one classified correctly
    shows(name, "∂b_1", [(2 * wrong - right) * math.log(2)] * 2, digits=12)
    shows(name, "∂W_1", np.array([[wrong, wrong - right], [wrong - right, wrong]] * 2) * math.log(2), digits=12)
    shows(name, "W_1'", [[-1.1, 0.9], [0.9, -1.1]] * 2, digits=12)
    assert found(name, "L'") < found(name, "L")


def test_no_linear_layer_can_tell_the_bars_apart():
    left, right, top, bottom = np.array(classifier.PICTURES)
    assert (left + right == top + bottom).all()
    assert classifier.CLASSES == [0, 0, 1, 1]


def test_cross_entropy():
    shows("cross-entropy", "p", [0.643914, 0.236883, 0.087144, 0.032059])
    assert found("cross-entropy", "L") == pytest.approx(1.440190, abs=5e-7)
    assert found("cross-entropy", "L_2") == pytest.approx((math.log(8 / 5) + math.log(4)) / 2, rel=1e-12)


@pytest.mark.oracle
@every([paper_gpt, post_norm], lambda m: m.__name__.rpartition(".")[2])
def test_gradients_are_what_pytorch_says(module):
    from oracle import torch_reference  # which skips where there is no PyTorch

    name = module.__name__.rpartition(".")[2].replace("_", "-")
    arrays = {n: numbers(False)(w) for n, w in module.WEIGHTS.items()}
    tokens, targets = np.array([paper_gpt.TEXT[:-1]]), np.array([paper_gpt.TEXT[1:]])
    if module is post_norm:
        tokens, targets = np.array(post_norm.TOKENS), np.array(post_norm.TARGETS)
    loss, gradients = torch_reference.gradients(arrays, tokens, targets, module.CONFIG)
    assert found(name, "L", nth=0) == pytest.approx(loss, rel=1e-12)
    for parameter, gradient in gradients.items():
        for index, expected in np.ndenumerate(gradient):
            shown = found(name, place(called(f"∂{parameter}"), index, gradient.shape))
            assert shown == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_one_update_lowers_the_loss():
    name = "paper-gpt"
    assert found(name, "L'") < found(name, "L_head") < found(name, "L")


def test_an_update_is_named_by_its_parameter_not_by_the_value_it_reads():
    assert [step.title.en for step in make("adamw").steps] == ["AdamW, update 1: θ", "AdamW, update 2: θ"]


def test_the_cache_begins_from_what_is_shown():
    """Every array that a step reads is given, or the result of an earlier step."""
    lesson = make("kv-cache")
    known = {called(say(name, "en")) for name, _ in lesson.given}
    for step in lesson.steps:
        assert known.issuperset(array.label for array in step.inputs if array.name and not array.name.isdigit()), (
            step.title.en
        )
        known |= {name for name, _ in step.results}


def test_cached_logits_agree():
    differences = [
        n.value for s in make("kv-cache").steps for n in s.numbers if say(n.label, "en").startswith("Δ logits")
    ]
    assert len(differences) == 9
    assert max(map(abs, differences)) == 0
    assert found("kv-cache", "rows without a cache") == 6
    assert found("kv-cache", "rows with the cache") == 3


@pytest.mark.parametrize(("name", "ending"), [("kv-cache", ".weights"), ("post-norm", ".weights")])
def test_attention_weights_tell_the_keys_apart(name, ending):
    """No row of weights over several keys is uniform: a wrong order, or a head that does nothing, would show."""
    for step in make(name).steps:
        for label, _ in step.results:
            if label.endswith(ending) and step.title.en.endswith("oftmax") and "Derivative" not in step.title.en:
                rows: dict[str, list[float]] = {}
                for n in step.numbers:
                    rows.setdefault(say(n.label, "en").rpartition(",")[0], []).append(n.value)
                for row in rows.values():
                    seen = [p for p in row if p]
                    assert len(seen) == 1 or max(seen) - min(seen) > 0.01, (name, row)


def test_offsets_are_those_of_the_memory():
    x = np.arange(24).reshape(2, 3, 4)
    scores = np.arange(36).reshape(2, 2, 3, 3)
    for name, array in (("x", x), ("scores", scores)):
        for index, offset in np.ndenumerate(array):
            label = f"offset of {name}[{','.join(map(str, index))}]"
            shown = [n.value for s in make("memory-layout").steps for n in s.numbers if say(n.label, "en") == label]
            assert shown in ([], [offset])
    assert [found("memory-layout", k) for k in "btc"] == [*map(int, np.unravel_index(17, (2, 3, 4)))]


@every(["paper-gpt", "adamw"])
def test_what_is_shown_is_what_is_used(name):
    """No product of two numbers that are not 0 is shown as 0, and what v' shows is what vhat is made of."""
    step = [s for s in make(name).steps if s.stem == "adamw"]
    for a, b in ((a, b) for s in step for a, b in pairwise(s.numbers)):
        if say(a.label, "en").startswith(("m_t", "v_t")):
            assert (a.shown == "0") == (a.value == 0)
            assert b.expression.startswith(f"{a.shown} / ") or a.value == 0


@every([False, True])
def test_rounding_is_settled(exact):
    """The gradient of a key's bias is 0 on paper, so that AdamW leaves it where it is."""
    name, width = "paper-gpt", 4
    for c in range(width, 2 * width):
        assert found(name, f"∂b_qkv[{c}]", exact=exact) == 0
        assert found(name, f"b_qkv'[{c}]", exact=exact) == 0
    assert found(name, "∂b_qkv[0]", exact=exact) != 0


@every(TITLES)
def test_exact_and_decimal_are_the_same_numbers(name):
    decimal, exact = (
        [(say(n.label, "en"), n.value) for s in make(name, e).steps for n in s.numbers] for e in (False, True)
    )
    assert [label for label, _ in decimal] == [label for label, _ in exact]
    for (label, a), (_, b) in zip(decimal, exact, strict=True):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-9), label


@every(TITLES)
def test_exact_forms_have_the_value_that_they_show(name):
    for step in make(name, exact=True).steps:
        for number in step.numbers:
            if number.exact:
                assert value(tidy(number.exact)) == pytest.approx(number.value, rel=1e-9, abs=1e-12), number


def test_fractions_and_roots_are_shown():
    shown = {say(n.label, "en"): n.exact for s in make("matrix-core", exact=True).steps for n in s.numbers}
    assert shown["S[0,1]"] == "√2/2"
    assert {n.exact for s in make("layer-norm", exact=True).steps for n in s.numbers} >= {"−7/5", "13/250"}


def test_sums_and_multiples_of_logarithms_are_logarithms():
    shown = {say(n.label, "en"): n.exact for s in make("classifier", exact=True).steps[:6] for n in s.numbers}
    assert [shown[label] for label in ("z[0,0]", "z[2,0]", "loss[0]", "loss[2]")] == [
        "ln(8)", "ln(4)", "ln(9/8)", "ln(5)"
    ]  # fmt: skip
    assert [shown[label] for label in ("∂z[0,0]", "∂W_2[0,0]", "∂b_2[1]")] == ["−1/36", "19/60", "−31/90"]


@pytest.mark.parametrize(("times", "odds"), [(3, 8), (-2, Fraction(1, 4)), (10, None), (Fraction(1, 2), None)])
def test_only_a_few_whole_logarithms_stay_exact(times, odds):
    product = Exact.fraction(Fraction(times)) * Exact.of(math.log(2))
    assert product.odds == odds
    assert product.value == pytest.approx(float(times) * math.log(2), rel=1e-15)


def test_fractions_come_back_out_of_logarithms():
    shown = {say(n.label, "en"): n.exact for s in make("cross-entropy", exact=True).steps for n in s.numbers}
    assert [shown[f"∂z_2[0,{v}]"] for v in range(3)] == ["1/16", "1/8", "−3/16"]
    assert shown["∂z_2[1,0]"] == "−3/8"


@every(TITLES)
def test_every_right_answer_is_accepted_and_every_known_mistake_named(name):
    named = 0
    for step in make(name).steps:
        for number in step.numbers:
            if not math.isfinite(number.value):
                continue
            assert check(number, repr(number.value)).right
            for mistake in number.mistakes:
                if math.isfinite(mistake.value) and not agrees(mistake.value, number.value):
                    verdict = check(number, repr(mistake.value))
                    assert not verdict.right, (number, mistake)
                    assert verdict.mistake is not None
                    assert agrees(mistake.value, verdict.mistake.value)
                    named += 1
    assert named or name == "kv-cache"


@every([(name, lang) for name in TITLES for lang in ("en", "zh")])
def test_both_languages_say_everything(name, lang):
    lesson = make(name)
    assert lesson.title.said(lang)
    assert lesson.intro.said(lang)
    assert all(step.title.said(lang) for step in lesson.steps)
    has_chinese = any("\u4e00" <= c <= "\u9fff" for c in lesson.intro.said(lang))
    assert has_chinese == (lang == "zh")


@pytest.mark.parametrize(
    ("written", "number"),
    [("1/3", 1 / 3), ("−0.5", -0.5), ("√2/2", 0.5**0.5), ("3√2", 3 * 2**0.5), ("0,25", 0.25), ("e^-1", math.exp(-1)),
     ("ln(2)", math.log(2)), ("2 × 3", 6.0), ("-∞", -math.inf), ("２．５", 2.5), ("sqrt(2)/2", 0.5**0.5),
     ("０，５", 0.5), ("－√２／２", -(0.5**0.5)), ("1：3", 1 / 3), ("1 : 3", 1 / 3), ("6 ÷ 4", 1.5), ("½", 0.5),
     ("x[0,1] = 0,5", 0.5), ("y[0]：－１／３", -1 / 3), ("0。5", 0.5), ("√(2)/2", 0.5**0.5), ("√½", 0.5**0.5),
     ("–1", -1.0), ("+0.5", 0.5), ("3²", 9.0)],
)  # fmt: skip
def test_answers_as_people_write_them(written, number):
    assert value(tidy(written)) == pytest.approx(number)


@every(["", "two", "0.3.3", "__import__('os')", "1/0"])
def test_what_is_no_answer(answer):
    number = make("gelu").steps[0].numbers[0]
    with pytest.raises(ByhandError):
        check(number, answer)


def test_rounding_is_no_mistake():
    assert agrees(0.33, 0.330238)
    assert agrees(0.056, 0.055807)
    assert not agrees(0.34, 0.330238)
    assert not agrees(0.0, 0.001)
    assert agrees(0.0, 0.0)


def test_one_digit_is_too_few():
    p = next(n for s in make("cross-entropy").steps for n in s.numbers if say(n.label, "en") == "p[1]")
    verdict = check(p, "0.24")
    assert not verdict.right
    assert verdict.mistake.en.startswith("rounded it too far")
    assert check(p, "0,24") == verdict
    assert check(p, "0.237").right
    assert check(p, "0.25").mistake is None


@pytest.mark.parametrize(
    ("label", "answer", "named"),
    [("m̂_t[0]", "0.2", "forgot the bias correction"), ("θ'[0]", "0.9", "forgot the weight decay")],
)
def test_the_particular_mistake_is_named_before_the_general_one(label, answer, named):
    number = next(n for s in make("adamw").steps for n in s.numbers if say(n.label, "en") == label)
    assert check(number, answer).mistake.en == named


@every([n for n in TITLES if n != "memory-layout"])
def test_what_is_given_is_said(name):
    assert make(name).given
    assert len({n for n, _ in make(name).given}) == len(make(name).given)


def test_a_wrong_name():
    with pytest.raises(ByhandError, match="Did you mean matrix-core"):
        make("matrixcore")


@pytest.mark.parametrize(("lang", "here", "and_"), [("en", "here ", ", "), ("zh", "这里 ", "，")])
def test_steps_are_in_their_own_letters_and_say_what_these_are_in_code(lang, here, and_):
    said = [line for s in make("paper-gpt").steps for line in say(s.formula, lang).splitlines()]
    for line in (
        "QKV = H W_qkv + b_qkv",
        f"{here}H = ln_1{and_}W_qkv = attn.w_qkv{and_}b_qkv = attn.b_qkv",
        "S[t,s] = (Q_t · K_s) / √D",
        f"{here}Q = attn.q{and_}K = attn.k{and_}D = 4",
        "∂W_lm = X_normᵀ ∂Z",
        "∂X_mid = ∂₁X_mid + ∂₂X_mid",
    ):
        assert line in said
    said = [say(s.formula, lang).partition("\n")[0] for s in make("matrix-core").steps]
    for formula in ("Q = X W_Q", "∂W_V = Xᵀ ∂V", "ΔW_Q = −rate · ∂W_Q", "W_Q' = W_Q + ΔW_Q", "z = e_0 O"):
        assert formula in said


@every(TITLES)
def test_a_chinese_lesson_names_parts_in_chinese(name):
    shown = text(make(name), "zh")
    assert not re.search(
        r"(?<![\w./])(mean|var|avg|mhat|vhat|xhat|slope|offset of|flat|masked|dropped)(?![\w.])", shown
    )
