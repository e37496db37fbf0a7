"""`byhand work --plot` and `byhand explain --plot`: where the picture goes, and when it is refused."""

import json
import os
from xml.etree import ElementTree

import pytest

from byhand import ModelConfig, TrainConfig
from byhand.book.lessons.examples import TITLES
from byhand.book.pictures.canvas import WIDTH, text_width
from byhand.book.pictures.of_lessons import OF_LESSONS, svg
from cli.inside import byhand, write_run
from cli.process import error_line

SVG = "{http://www.w3.org/2000/svg}"
TARGET = "blocks.0.attn.weights[0,0,2,1]"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = TrainConfig(model=ModelConfig(seq_len=16, d_model=8, n_layers=1, n_heads=2), steps=10)
    return write_run(tmp_path_factory.mktemp("runs") / "small", config)


def test_a_lesson_as_a_byhand(tmp_path):
    done = byhand("work", "softmax", "--plot", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[-1] == "wrote work-softmax.svg"
    root = ElementTree.fromstring((tmp_path / "work-softmax.svg").read_bytes())
    assert root.tag.endswith("svg")
    assert os.listdir(tmp_path) == ["work-softmax.svg"]


def test_a_number_as_a_byhand(run, tmp_path):
    done = byhand("explain", run, TARGET, "--plot", "here.svg", "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[-1] == "已写入 here.svg"
    drawn = (tmp_path / "here.svg").read_text(encoding="utf-8")
    assert "因果 softmax" in drawn
    assert drawn.count(">0 &apos;T&apos;<") + drawn.count(">0 'T'<") == 2


@pytest.mark.parametrize("lesson", TITLES)
def test_every_lesson_has_pictures(lesson):
    for lang in ("en", "zh"):
        drawn = svg(lesson, TITLES[lesson], lang)
        root = ElementTree.fromstring(drawn)
        titles = [text.text for text in root.findall(f"{SVG}text")]
        assert titles == [picture.title.said(lang) for picture in OF_LESSONS[lesson]] != []
        assert max(text_width(title) for title in titles) < WIDTH
        groups = root.findall(f"{SVG}g")
        assert len(groups) == len(titles)
        assert all(len(group) for group in groups)


def test_a_lesson_is_drawn_in_chinese(tmp_path):
    assert byhand("work", "层归一化", "--plot", "--lang", "zh", cwd=tmp_path).returncode == 0
    drawn = (tmp_path / "work-layer-norm.svg").read_text(encoding="utf-8")
    assert drawn.endswith(svg("layer-norm", TITLES["layer-norm"], "zh"))
    assert "x_norm 的梯度" in drawn


def test_a_word_that_is_no_file_stays_what_it_was(run, tmp_path):
    assert byhand("work", "--plot", "gelu", cwd=tmp_path).returncode == 0
    assert byhand("explain", run, "--plot", TARGET, cwd=tmp_path).returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["explain-blocks.0.attn.weights.svg", "work-gelu.svg"]


def test_our_own_picture_is_replaced_and_no_other(tmp_path):
    mine = tmp_path / "mine.svg"
    mine.write_text("<svg/>")
    said = error_line(byhand("work", "gelu", "--plot", "mine.svg", cwd=tmp_path))
    assert "was not drawn by --plot" in said
    assert mine.read_text() == "<svg/>"
    mine.unlink()
    for lesson in ("gelu", "softmax"):
        assert byhand("work", lesson, "--plot", "mine.svg", cwd=tmp_path).returncode == 0
    assert "Softmax" in mine.read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_link_is_not_followed(tmp_path):
    other = tmp_path / "other.svg"
    assert byhand("work", "gelu", "--plot", other, cwd=tmp_path).returncode == 0
    before = other.read_bytes()
    (tmp_path / "link.svg").symlink_to(other)
    error_line(byhand("work", "softmax", "--plot", "link.svg", cwd=tmp_path))
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["work", "gelu", "--plot", "a.png"], "pictures are SVG"),
        (["work", "gelu", "--plot", "no/such/x.svg"], "cannot write no/such/x.svg"),
        (["work", "gelu", "--plot=a\0.svg"], "exists already|cannot write"),
        (["work", "--plot"], "--plot changes nothing without an example"),
        (["explain", "RUN", "--plot"], "--plot changes nothing without a target"),
        (["explain", "RUN", TARGET, "--plot", "a.pdf"], "pictures are SVG"),
        (["explain", "RUN", "blocks.0.attn.weights[9,9,9,9]", "--plot"], "does not exist"),
    ],
)
def test_refusals(run, tmp_path, arguments, words):
    said = error_line(byhand(*(run if a == "RUN" else a for a in arguments), cwd=tmp_path))
    assert any(word in said for word in words.split("|"))
    assert os.listdir(tmp_path) == []


def test_json_stays_json(run, tmp_path):
    done = byhand("explain", run, TARGET, "--json", "--plot", cwd=tmp_path)
    assert json.loads(done.stdout)["name"] == "blocks.0.attn.weights"
    assert b"wrote explain-blocks.0.attn.weights.svg" in done.stderr
