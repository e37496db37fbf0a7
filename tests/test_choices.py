"""Multiple choice: each likelihood against the model's own logits, and what is chosen where the answer is known."""

import json
import math

import numpy as np
import pytest

import byhand as bh
from byhand.choices import Chooser, Scored, answered, choose, interval
from byhand.config import ModelConfig
from byhand.corpus.questions import Question, questions_of
from byhand.errors import ByhandError, NonFiniteError
from byhand.runtimes.protocol import Request
from byhand.tokenizers.byte import BYTES
from byhand.tokenizers.training import of_merges
from cli.inside import byhand
from cli.process import TINY, write_text
from runtimes.registered import NAMES, SUITED, able

MODEL = bh.TinyGPT(ModelConfig(seq_len=24, d_model=16, n_layers=2, n_heads=2), seed=4)
FIVE = [
    Question("To be, or", ("not to be", "to bee", "x", "maybe"), 0, "a:1"),
    Question("", ("yes", " no"), 1, "a:2"),
    Question("ends in a space ", ("and goes on", "ends."), 0, "a:3"),
    Question("a context that is longer than the model's", ("one", "another one"), 0, "a:4"),
    Question("猫", ("是动物", "是植物"), 0, "a:5"),
]


def written(path, *lines):
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8"
    )
    return path


def log_likelihood(model, before, after):
    """Return ln p of bytes after others by the model's own logits, in float64, without batches and padding."""
    ids = (before + after)[-model.config.seq_len - 1 :]
    z = model.forward_logits([list(ids[:-1])]).data[0].astype(np.float64)
    log_p = z - z.max(-1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
    return sum(log_p[i - 1, ids[i]] for i in range(len(ids) - len(after), len(ids)))


@pytest.mark.parametrize("runtime", SUITED)
def test_likelihoods_are_those_of_the_models_logits(runtime):
    joined = [  # each context with the ending to score
        [("To be, or", f" {ending}") for ending in FIVE[0].endings],
        [("\n", "yes"), ("\n", " no")],
        [("ends in a space", " and goes on"), ("ends in a space", " ends.")],
        [(FIVE[3].context, " one"), (FIVE[3].context, " another one")],
        [("猫", " 是动物"), ("猫", " 是植物")],
    ]
    request = Request("evaluate", MODEL.config, runtime)
    chooser = Chooser(MODEL, BYTES)
    session = able(request).session(MODEL, None, request)
    found = {answer.question.where: answer for answer in answered(session, FIVE, chooser)}
    for question, pairs in zip(FIVE, joined, strict=True):
        answer = found[question.where]
        expected = [log_likelihood(MODEL, a.encode(), b.encode()) for a, b in pairs]
        assert answer.sums == pytest.approx(expected, abs=2e-4)
        assert answer.counts == [len(b.encode()) for _, b in pairs]
    assert chooser.cut == 3


@pytest.mark.parametrize("runtime", NAMES)
def test_rows_are_summed_where_they_are_marked(runtime):
    rng = np.random.default_rng(2)
    tokens, targets = rng.integers(0, 256, (2, 5, 24))
    counted = rng.random((5, 24)) < 0.4
    counted[3] = False
    request = Request("evaluate", MODEL.config, runtime)
    session = able(request).session(MODEL, None, request)
    z = MODEL.forward_logits(tokens).data.astype(np.float64)
    losses = np.log(np.exp(z).sum(-1)) - np.take_along_axis(z, targets[..., None], -1)[..., 0]
    sums = session.row_losses(tokens, targets, counted)
    np.testing.assert_allclose(sums, (losses * counted).sum(1), atol=1e-4)
    assert session.loss(tokens, targets) == pytest.approx(losses.mean(), rel=1e-5)


def test_the_chosen_ending_by_each_measure():
    answer = Scored(Question("", ("aaaa", "bb", "é"), 0, ""), [-4.0, -3.0, -2.5], [4, 1, 1])
    assert answer.chosen == (2, 0, 0)
    answer = Scored(Question("", ("a" * 6, "é" * 4), 0, ""), [-4.0, -4.0], [6, 4])
    assert answer.chosen == (0, 0, 1)  # of equals the first; é has two bytes


def test_tokens_that_reach_over_the_boundary_go_by_the_count_of_the_context():
    tokenizer = of_merges([(ord("c"), ord("a")), (256, ord("t")), (ord(" "), 257)], "gpt2")  # ca, cat, " cat"
    chooser = Chooser(MODEL, tokenizer, separator="")
    assert chooser.encoded("a ", "cat") == ([ord("a"), 258], 1)
    assert chooser.encoded("ca", "t") == ([257], 1)  # one token is both
    assert chooser.encoded("c", "ats") == ([257, ord("s")], 1)
    ids, count = Chooser(MODEL, BYTES).encoded("ab \n", "cd")
    assert (bytes(ids), count) == (b"ab \ncd", 4)
    ids, count = Chooser(MODEL, BYTES, [0]).encoded("  ", "cd")
    assert (bytes(ids), count) == (b"\0  cd", 4)
    assert Chooser(MODEL, BYTES, separator="").encoded("猫", "是")[1] == 3


ARC = {"question": "1 + 1?", "choices": {"text": ["1", "2"], "label": ["1", "2"]}, "answerKey": "2"}


@pytest.mark.parametrize(
    ("line", "context", "label"),
    [
        ({"ctx": "a", "endings": ["b", "c"], "label": 1}, "a", 1),
        ({"ctx": "a", "endings": ["b", "c"], "label": "1", "source_id": "x"}, "a", 1),
        (ARC, "Question: 1 + 1?\nAnswer:", 1),
        ({"question": "q", "choices": ["b", "c"], "answer": "B"}, "Question: q\nAnswer:", 1),
        ({"question": "q", "choices": ["1", "0"], "answer": "0"}, "Question: q\nAnswer:", 1),
        ({"context": "a", "options": ["b", "c"], "gold": 0}, "a", 0),
    ],
)
def test_common_forms_are_read(tmp_path, line, context, label):
    (found,) = questions_of(written(tmp_path / "a.jsonl", line))
    assert (found.context, found.label, len(found.endings)) == (context, label, 2)


GOOD = {"ctx": "a", "endings": ["b", "c"], "label": 1}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "is not valid JSON"),
        ('["a"]', "is not an object of JSON"),
        ('{"ctx": "a", "ctx": "b"}', "the key 'ctx' twice"),
        ({**GOOD, "ctx": 3}, "ctx is not a text"),
        ({"endings": ["b", "c"], "label": 1}, "has none of the fields ctx, context, query, question"),
        ({**GOOD, "endings": ["b"]}, "endings is not a list of two or more texts"),
        ({**GOOD, "endings": ["b", " "]}, "endings is not a list of two or more texts"),
        ({**GOOD, "endings": {"text": ["b", "c"], "label": ["A"]}}, "endings is not a list"),
        ({**GOOD, "label": 2}, "label names none of its 2 endings"),
        ({**GOOD, "label": True}, "label names none of its 2 endings"),
        ({**GOOD, "label": ""}, "label names none of its 2 endings"),
        ({**GOOD, "label": ["b"]}, "label names none of its 2 endings"),
        ({"ctx": "a", "endings": ["b", "c"]}, "has none of the fields label"),
        ({**GOOD, "ctx": "\ud800"}, "half a character"),
        ({**GOOD, "passage": "p"}, "'passage' is not read, but may change the question"),
        ({**GOOD, "question": "q"}, "'question' beside 'ctx' is not read"),
        ({**GOOD, "answer": 0}, "'answer' beside 'label' is not read"),
        ({**GOOD, "endings": ["b", "c" * 30]}, "ending 1 has 31 tokens, but the model's seq_len is 24"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(tmp_path, line, said):
    path = written(tmp_path / "a.jsonl", GOOD, "", line)
    with pytest.raises(ByhandError, match=said) as refused:
        choose(MODEL, Chooser(MODEL, BYTES), path, "numpy")
    assert str(refused.value).startswith(f"{path}:3")


def test_weights_that_are_damaged_choose_nothing(tmp_path):
    arrays = {name: p.data.copy() for name, p in MODEL.parameters().items()}
    arrays["wte"][:] = np.nan
    model = bh.TinyGPT(MODEL.config, arrays=arrays)
    with pytest.raises(NonFiniteError):
        choose(model, Chooser(model, BYTES), written(tmp_path / "a.jsonl", GOOD), "numpy")


def test_the_command_says_how_often_the_right_ending_is_the_likeliest(tmp_path):
    """After fox the text always continues in one way, which the model has learned."""
    write_text(tmp_path / "text.txt")
    run = [
        "--data",
        "text.txt",
        "--steps",
        "150",
        "--eval-interval=0",
        "--save-interval=0",
        "--runtime=numpy",
        "--out",
        "run",
    ]
    assert byhand("train", *TINY, *run, cwd=tmp_path).returncode == 0
    right = {"ctx": "the quick brown fox", "endings": ["jumps over", "xqzvk wwkq", "0000 00000"], "label": 0}
    wrong = {**right, "label": 2}
    written(tmp_path / "a.jsonl", right, right, right, wrong)
    done = byhand("eval", "run", "--choices", "a.jsonl", "--json", "--runtime", "numpy", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["questions"] == 4
    assert found["acc"] == found["acc_tokens"] == found["acc_bytes"] == 0.75
    assert found["acc_stderr"] == pytest.approx(math.sqrt(0.75 * 0.25 / 3))
    assert found["chance"] == pytest.approx(1 / 3)
    assert found["cut"] == 12
    done = byhand("eval", "run", "--choices", "a.jsonl", "--runtime", "numpy", cwd=tmp_path)
    assert b"a.jsonl: 4 questions, by chance 33.3%; 12 contexts cut" in done.stdout
    assert "likeliest   75.0% (30–95%)" in done.stdout.decode()
    assert done.stderr.decode().count("loses its beginning") == 1
    written(tmp_path / "a.jsonl", right)
    alone = json.loads(
        byhand("eval", "run", "--choices", "a.jsonl", "--json", "--runtime", "numpy", cwd=tmp_path).stdout
    )
    assert (alone["acc"], alone["acc_stderr"]) == (1.0, None)
    for flags, said in (
        ([], b"--data with a text, --chat with conversations, or --choices"),
        (["--choices", "a.jsonl", "--data", "text.txt"], b"Give one of them"),
        (["--choices", "a.jsonl", "--stride", "3"], b"--stride changes nothing with --choices"),
        (["--data", "text.txt", "--separator", ""], b"--separator changes nothing without --choices"),
        (["--choices", "none.jsonl"], b"cannot read none.jsonl"),
        (["--choices", "empty.jsonl"], b"empty.jsonl holds no question"),
    ):
        (tmp_path / "empty.jsonl").write_text("\n")
        done = byhand("eval", "run", *flags, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_intervals_are_wilsons(right, n, low, high):
    """Source: Newcombe 1998, doi:10.1002/(SICI)1097-0258(19980430)17:8<857::AID-SIM777>3.0.CO;2-E, method 3."""
    assert interval(right / n, n) == pytest.approx((low, high), abs=6e-5)
    assert interval(1 - right / n, n) == pytest.approx((1 - high, 1 - low), abs=6e-5)
