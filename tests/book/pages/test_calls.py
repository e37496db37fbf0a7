"""Pages pair a formula with the call that computes it, wherever the call stands, and fail if another one does."""

import ast
from pathlib import Path

import pytest

from byhand.book.finding import source
from byhand.errors import ByhandError
from byhand.layers.block import Block
from pages.answers import steps
from pages.blocks.markdown import link
from where import syntax

PAGE = Path(__file__)
FILE = source.PACKAGE / "layers" / "block.py"


@pytest.fixture
def edited(monkeypatch):
    """Return a function that runs the model with an edited Block, as if its file read so."""

    def edit(*changes):
        text = FILE.read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        there = {"__name__": "byhand.layers.block"}
        exec(compile(text, FILE, "exec"), there)
        monkeypatch.setattr(
            syntax, "tree", lambda path, tree=syntax.tree: ast.parse(text) if path == FILE else tree(path)
        )
        for name in ("apply", "sublayer"):
            if hasattr(there["Block"], name):
                monkeypatch.setattr(Block, name, getattr(there["Block"], name), raising=False)
        return list(steps.lines_of(("block",)))

    steps._pass.cache_clear()
    yield edit
    steps._pass.cache_clear()


def called(lines):
    return [line.call for line in lines]


def where(lines):
    """The definitions that contain the calls."""
    return [link(PAGE, line.where).partition("](")[0] for line in lines]


FIRST = 'h = self.norm.apply(p["ln_1"], x, "ln_1")'
SECOND = 'h = self.norm.apply(p["ln_2"], x, "ln_2")'


def test_every_line_has_its_own_call():
    assert called(list(steps.lines_of(("block",)))) == [
        'self.norm.apply(p["ln_1"], x, "ln_1")',
        'self.attention.apply(p["attn"], h)',
        'residual(x, a, name="x_mid")',
        'self.norm.apply(p["ln_2"], x, "ln_2")',
        'self.mlp.apply(p["mlp"], h)',
        'residual(x, self.mlp.apply(p["mlp"], h), name="x_out")',
    ]


def test_two_norms_that_change_places_are_found_out(edited):
    with pytest.raises(ByhandError, match=r"as made from x, but the model makes blocks.0.ln_1 from blocks.0.x_mid"):
        edited((FIRST, "h = 0"), (SECOND, FIRST), ("h = 0", SECOND))


def test_a_norm_that_reads_something_else_is_found_out(edited):
    other = 'h = self.norm.apply(p["ln_2"], h, "ln_2")'
    with pytest.raises(
        ByhandError, match=r"made from blocks.0.x_mid, but the model makes blocks.0.ln_2 from blocks.0.ln_1"
    ):
        edited((SECOND, other))


def test_the_order_of_branches_changes_no_pair(edited):
    """Another norm's call above them all: the ordinal of each call moves, its name does not."""
    unused = """if start is kept is self:
            x = self.norm.apply(p["ln_1"], x, "ln_0")
        if self.pre_norm:"""
    before = list(steps.lines_of(("block",)))
    steps._pass.cache_clear()
    lines = edited(("if self.pre_norm:", unused))
    assert (called(lines), where(lines)) == (called(before), where(before))


def test_a_helper_of_the_block_is_pointed_at(edited):
    """Both sublayers in one helper: the page shows the helper's calls."""
    text = FILE.read_text(encoding="utf-8")
    before_norm = text[text.index(f"            {FIRST}") : text.index("\n        a, kept =") + 1]
    applied = """            x = self.sublayer(p, x, "ln_1", lambda h: self.attention.apply(p["attn"], h)[0], "x_mid")
            return self.sublayer(p, x, "ln_2", lambda h: self.mlp.apply(p["mlp"], h), "x_out"), None
"""
    helper = """    def sublayer(self, p, x, norm, inner, name):
        return residual(x, inner(self.norm.apply(p[norm], x, norm)), name=name)

    def apply("""
    table = edited((before_norm, applied), ("    def apply(", helper))
    assert where(table)[0] == where(table)[3] == "[src/byhand/layers/block.py:Block.sublayer"
    assert where(table)[1] == where(table)[4] == "[src/byhand/layers/block.py:Block.apply"
    assert called(table)[3] == "self.norm.apply(p[norm], x, norm)"
