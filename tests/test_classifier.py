"""The example program: it learns as well as it says, and its network is the one that is worked on paper."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from byhand.book.lessons.examples import classifier as lesson
from byhand.book.numbers.closed_form import array
from byhand.engine import Tensor, gradcheck

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "examples" / "classifier.py"
STATED = dict(re.findall(r"(digits|alphabet): more than (\d+) %", PROGRAM.read_text(encoding="utf-8")))


@pytest.fixture
def example(monkeypatch):
    """Import a file of examples/ as its programs do."""
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    yield importlib.import_module
    for name in ("classifier", "glyphs"):
        sys.modules.pop(name, None)


def run(*arguments):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def percentages(said):
    return [float(x) for x in re.search(r"(\S+) % of \S+ new pictures .*: (\S+) %", said).groups()]


@pytest.mark.parametrize(
    ("alphabet", "stated", "names"),
    [
        ("digits", "digits", "0123456789"),
        pytest.param("letters", "alphabet", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", marks=pytest.mark.slow),
    ],
)
def test_it_reads_new_pictures_as_well_as_it_says(alphabet, stated, names):
    code, said, errors = run(alphabet)
    assert (code, errors) == (0, "")
    right, best = percentages(said)
    assert float(STATED[stated]) < right < best
    table = re.search(rf"^ ( +{' +'.join(names)})\n((?:.+\n)+)", said, re.MULTILINE)
    rows = [[0 if n == "." else int(n) for n in row[1:].split()] for row in table[2].splitlines()]
    assert [row[0] for row in table[2].splitlines()] == list(names)
    assert [sum(row) for row in rows] == [200] * len(names)
    assert 100 * np.trace(rows) / np.sum(rows) == pytest.approx(right, abs=0.05)
    if alphabet == "digits":
        for page in ("classifier.md", "classifier.zh-CN.md"):
            shown = percentages((ROOT / "docs" / "guides" / page).read_text(encoding="utf-8"))
            assert shown == pytest.approx([right, best], abs=1)


def test_it_shows_where_a_number_comes_from():
    said = run("--steps", "30")[1]
    drawn, read = re.search(r"a picture of (\d), read as (\d):", said).groups()
    assert drawn != read
    parts, total = re.search(r"^z\[0,\d\] = .*?\n  terms, largest first\n(.*?)  made from", said, re.M | re.S)[
        1
    ].rsplit("\n    ", 1)
    amounts = [float(line.split()[0].replace("−", "-")) for line in parts.splitlines()]
    assert sum(amounts) == pytest.approx(float(total.split()[0].replace("−", "-")), abs=1e-4)
    assert f"∂y = ∂loss/∂z[0,{drawn}] = " in said


def test_a_seed_decides_everything():
    first, again, other = (run("--steps", "3", "--seed", seed)[1] for seed in ("1", "1", "2"))
    assert first == again != other


@pytest.mark.parametrize("arguments", [("--steps", "-1"), ("--seed", "-1"), ("runes",)])
def test_a_wrong_argument_is_refused(arguments):
    code, said, errors = run(*arguments)
    assert (code, said) == (2, "")
    assert errors.splitlines()[-1].startswith("classifier.py: error: ")


def test_the_whole_network_has_right_gradients(example, monkeypatch):
    program, glyphs = example("classifier"), example("glyphs")
    monkeypatch.setattr(program, "HIDDEN", 4)
    rng = np.random.default_rng(3)
    digits, labels = glyphs.ALPHABETS["digits"], np.array([3, 8, 8, 0])
    pictures = digits.draw(labels, 0.1, rng)
    p = program.initial(10, rng)

    def loss(*arrays):
        return program.loss(dict(zip(p, arrays, strict=True)), pictures, labels)

    assert gradcheck(loss, *(tensor.data for tensor in p.values()), d=np.asarray(1.0)) < 1e-6


def test_the_network_is_the_one_on_paper(example):
    program = example("classifier")
    on_paper, p = lesson.given_weights(array), lesson.given_weights(array)
    worked = lesson.loss_of(on_paper, array)
    computed = program.loss(p, array(lesson.PICTURES), np.asarray(lesson.CLASSES))
    assert computed.item() == worked.item()
    for loss in (worked, computed):
        loss.backward()
    for name, tensor in on_paper.items():
        np.testing.assert_array_equal(p[name].grad, tensor.grad)
        assert isinstance(tensor, Tensor)


def test_glyphs_are_distinct_at_every_place(example):
    for alphabet in example("glyphs").ALPHABETS.values():
        every = alphabet.clean.reshape(-1, alphabet.clean.shape[-1])
        assert len(np.unique(every, axis=0)) == len(every) == 9 * len(alphabet.names)
        labels = np.repeat(np.arange(len(alphabet.names)), 9)
        assert (alphabet.nearest(every) == labels).all()


def test_an_8_differs_from_three_digits_in_three_dots(example):
    centred = example("glyphs").ALPHABETS["digits"].clean[:, 4]
    differing = np.abs(centred - centred[8]).sum(axis=1)
    assert [digit for digit in range(10) if differing[digit] == 3] == [3, 6, 9]
    assert sorted(differing)[1] == 3


def test_noise_flips_pixels_as_often_as_it_says(example):
    digits, rng = example("glyphs").ALPHABETS["digits"], np.random.default_rng(5)
    labels = np.tile(np.arange(10), 300)
    clean = digits.draw(labels, 0.0, rng)
    assert all(
        any((picture == c).all() for c in digits.clean[label]) for picture, label in zip(clean, labels, strict=True)
    )
    noisy = digits.draw(labels, 0.05, rng)
    nearest = np.abs(noisy[:, None] - digits.clean[labels]).sum(axis=2).min(axis=1)
    assert nearest.mean() / noisy.shape[1] == pytest.approx(0.05, abs=0.005)
    assert set(np.unique(noisy)) == {0.0, 1.0}
