"""An entry that does not fit its equation, and an equation without an entry, are refused in one line."""

import pytest

from byhand.book.entries.contract import ENTRIES, Entry
from byhand.book.finding.search import search
from byhand.engine import Equation, Symbol, registry
from byhand.engine.terms import number
from byhand.errors import ByhandError, ConfigError
from where.index import findings

WORDS = {
    "title_zh": "", "result_zh": "", "inputs": {}, "result": [], "d_result": [], "gradients": {}, "note": "",
    "note_zh": "",
}  # fmt: skip


@pytest.fixture
def lonely():
    """An equation that has no entry."""
    symbol = Symbol("x", "x", "(...)", "any array")
    yield Equation(
        name="lonely", title="Lonely", latex="x", derivative="1", inputs=(symbol,), result=symbol,
        forward=lambda x: (x, ()), vjp=lambda saved, d: (d,), terms=lambda index, inputs, result: number(0),
    )  # fmt: skip
    del registry["lonely"]


def test_an_entry_about_no_equation_is_refused():
    with pytest.raises(ConfigError, match="'nothing' is about no equation"):
        Entry(stem="nothing", meanings_zh={}, **WORDS)
    assert "nothing" not in ENTRIES


def test_an_entry_names_every_input(lonely):
    with pytest.raises(ConfigError, match="lacks the meaning of x"):
        Entry(stem="lonely", meanings_zh={"y": "结果"}, **WORDS)
    assert "lonely" not in ENTRIES


def test_an_equation_without_an_entry_is_said_to_have_none(lonely):
    said = r"lonely has no entry in the book\. Write src/byhand/book/entries/lonely\.py, or import the entry"
    for ask in (ENTRIES.__getitem__, findings().__getitem__, search):
        with pytest.raises(ByhandError, match=said):
            ask("lonely")
