"""`byhand plot` of rows and names of every kind: what can be drawn is, without warnings."""

import json
import os
import sys
import threading
import warnings

import pytest

from byhand.cli.main import main
from byhand.cli.runs import plot
from byhand.cli.terminal import picture
from byhand.errors import ConfigError
from byhand.runs import metrics
from needs import needs_matplotlib

ROWS = [
    {"step": 1, "train/loss": 5.5, "val/loss": 5.0},
    {"step": 2, "train/loss": 5.4, "val/loss": "low"},
    {"step": 3, "train/loss": 5.3, "val/loss": [1]},
    {"step": 4, "train/loss": 5.2, "val/loss": True},
    {"step": 5, "train/loss": 5.1, "val/loss": 10**400},
    {"step": 6, "train/loss": 5.0, "val/loss": {"x": 1}},
    {"step": 10**400, "train/loss": 5.0},
    {"step": True, "train/loss": 5.0},
    {"step": 7, "train/loss": float("nan")},
    {"step": 8, "train/loss": float("inf")},
    {"step": 9, "train/loss": 1e308},
    {"step": 10, "train/loss": None},
    {"step": 11},
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(name, rows=ROWS):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(metrics, "read", lambda folder: list(rows))
        return name

    return make


def draw(name, *arguments):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        code = main(["plot", name, *arguments])
    assert not said
    return code


def test_what_is_no_number_is_left_out(run, capsys):
    name = run("odd")
    assert draw(name) == 0
    said = capsys.readouterr().out
    assert "validation loss" in said
    assert "e+" not in said  # the scale is that of the losses


@pytest.mark.parametrize("rows", [ROWS[:1], [ROWS[0]] * 2, [{"step": s, "train/loss": 1e12} for s in (1, 2)]])
def test_one_point_and_flat_curves(run, rows, capsys):
    assert draw(run("flat", rows)) == 0
    assert "loss in nats per byte" in capsys.readouterr().out


def test_nothing_to_draw_is_one_line(run, capsys):
    assert draw(run("empty", ROWS[-4:])) == 2
    assert "no metrics.jsonl with a loss that can be drawn" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["a$b", "$\\frac$", "50%", "中文", "{x}", "\u202eabc", "😀", "x" * 200, "a_b^c", "\u0e01"]
)
def test_names_of_every_kind(run, name, capsys):
    assert draw(run(name)) == 0
    said = capsys.readouterr().out
    assert "\u202e" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="no such names")
@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "a\x07", "\udcff"])
def test_names_that_steer_a_terminal(run, name, capsys):
    assert draw(run(name)) == 0
    said = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\udcff"} & set(said)
    assert "a\nb" not in said


def test_a_title_is_drawn_or_escaped_character_by_character():
    manager = pytest.importorskip("matplotlib.font_manager", reason="matplotlib is not installed")
    words, fonts = picture.title("run $x$ 中\u0e01")
    charmaps = [manager.get_font(manager.findfont(font)).get_charmap() for font in fonts]
    assert words.startswith("run $x$ ")
    assert all(any(ord(c) in charmap for charmap in charmaps) for c in words)
    installed = {font.name for font in manager.fontManager.ttflist}
    assert ("中" in words) == bool(installed & set(picture.CJK))
    assert words.endswith(r"\u0e01")


@needs_matplotlib
def test_a_cjk_font_is_taken_where_there_is_one(monkeypatch):
    monkeypatch.setattr(picture, "CJK", ("STIXGeneral",))
    monkeypatch.setattr(picture, "_characters", lambda font: {ord("中" if font == "STIXGeneral" else "a"): 1})
    assert picture.title("a中ü") == (r"a中\xfc", ["DejaVu Sans", "STIXGeneral"])


def is_picture(path):
    return path.read_bytes().startswith(b"\x89PNG")


@needs_matplotlib
@pytest.mark.skipif(sys.platform == "win32", reason="needs links and FIFOs")
def test_a_loss_png_that_plot_did_not_draw_stays(run, tmp_path, monkeypatch, capsys):
    """No link is followed or replaced, no reader waited for, and no picture of the owner's lost."""
    png, mine = tmp_path / run("mine") / "loss.png", tmp_path / "mine.png"
    monkeypatch.setattr(plot, "is_run", lambda folder: True)
    mine.write_bytes(b"mine")
    for make in (lambda: os.symlink(mine, png), lambda: os.mkfifo(png), lambda: png.write_bytes(b"mine"), png.mkdir):
        make()
        before = os.lstat(png)
        assert draw("mine") == 0
        said = capsys.readouterr()
        assert "+" in said.out
        assert "wrote" not in said.out
        assert "mine/loss.png was not drawn by `byhand plot`, so it is kept" in said.err
        after = os.lstat(png)
        assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, before.st_size)
        assert mine.read_bytes() == b"mine"
        png.rmdir() if png.is_dir() else png.unlink()
    assert draw("mine") == 0
    first = png.read_bytes()
    monkeypatch.setattr(
        metrics, "read", lambda folder: [{"step": 1, "train/loss": 1.0}, {"step": 2, "train/loss": 2.0}]
    )
    assert draw("mine") == 0  # its own picture is replaced
    assert is_picture(png)
    assert png.read_bytes() != first


@needs_matplotlib
def test_a_loss_png_that_cannot_be_written_leaves_the_drawing(run, monkeypatch, capsys):
    def full(*arguments, **settings):
        raise ConfigError("cannot write loss.png: No space left on device. Choose another file with --png.")

    monkeypatch.setattr(plot, "is_run", lambda folder: True)
    monkeypatch.setattr(plot, "save", full)
    name = run("run")
    assert draw(name) == 0
    assert "cannot write loss.png: No space left on device" in capsys.readouterr().err
    assert draw(name, "--png", "loss.png") == 2


@needs_matplotlib
@pytest.mark.skipif(sys.platform == "win32", reason="needs FIFOs")
def test_a_named_fifo_that_nobody_reads_is_not_waited_for(run, tmp_path, capsys):
    os.mkfifo(tmp_path / "fifo")
    assert draw(run("run"), "--png", "fifo") == 2
    assert "cannot write fifo: nobody reads this FIFO" in capsys.readouterr().err


@needs_matplotlib
@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="names descriptors by /dev/fd")
def test_a_picture_goes_into_a_pipe_that_is_read(run):
    reader, writer = os.pipe()
    read = []

    def read_all():
        with os.fdopen(reader, "rb") as file:
            read.append(file.read())

    thread = threading.Thread(target=read_all)
    thread.start()
    try:
        assert draw(run("run"), "--png", f"/dev/fd/{writer}") == 0
    finally:
        os.close(writer)
        thread.join()
    assert read[0].startswith(b"\x89PNG")


@needs_matplotlib
@pytest.mark.skipif(sys.platform == "win32", reason="needs links")
def test_a_named_picture_is_written_through_a_link_and_over_a_file(run, tmp_path):
    file, link = tmp_path / "file.png", tmp_path / "link.png"
    file.write_bytes(b"x" * 10**6)
    link.symlink_to(file)
    assert draw(run("run"), "--png", "link.png") == 0
    assert link.is_symlink()
    assert is_picture(file)
    assert file.stat().st_size < 10**6


@needs_matplotlib
@pytest.mark.parametrize("png", [".", "no/such/x.png", "\0.png", "x" * 5000])
def test_a_png_that_cannot_be_written(run, png, capsys):
    assert draw(run("run"), "--png", png) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: cannot write ")
    assert "None" not in said
    assert len(said) < 500


def test_rows_of_a_real_file(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + '\n{"step": 1\n[[[[\n')
    assert draw(str(tmp_path)) == 0
    assert "train loss" in capsys.readouterr().out
